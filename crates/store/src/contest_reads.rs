//! Reads of contests without a transaction.
//!
//! A method with `list_` is for display: it leaves out corrupt rows and names them. The one without `list_` is for work,
//! which may leave none out: it fails. Not here: what a transaction reads (`contests`).

use crate::contests::EntrantKey;
use crate::payments::PaymentReads;
use crate::series::SeriesReads;
use crate::{Listing, StoreError};
use tally_rules::contest::state::ContestState;
use tally_rules::contest::{Application, ContestId, ContestPlayer, ContestRecord, Payout, Status};
use tally_rules::ledger::Uuid;
use tally_rules::{Micros, PlayerId};

/// Due contests or series, each with the time since when it is due, in order of that time and of names.
pub type Due = Vec<(Micros, ContestId)>;

/// The position after which a list of due contests continues.
pub type DueAfter<'a> = Option<(Micros, &'a str)>;

/// Reads of contests without a transaction.
pub trait ContestReads: SeriesReads + PaymentReads {
    /// A contest.
    fn contest(&self, id: &ContestId) -> Result<Option<ContestRecord>, StoreError>;

    /// At most `limit` contests in order of names, from the first one after `after`: of one state, or of all.
    fn list_contests(
        &self,
        state: Option<ContestState>,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, ContestRecord)>, StoreError>;

    /// Like [`list_contests`](Self::list_contests), for work that may leave none out: fails if a row is corrupt.
    fn contests(
        &self,
        state: Option<ContestState>,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Vec<(ContestId, ContestRecord)>, StoreError> {
        self.list_contests(state, after, limit)?.whole()
    }

    /// At most `limit` contests that are due for the scheduler at `now` or before, in order of time, from the first one
    /// after `after`.
    fn due_contests(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError>;

    /// The number of contests in each state, in the order of [`ContestState::ALL`]. At most `most` of each are counted.
    fn count_contests(&self, most: usize) -> Result<Vec<usize>, StoreError>;

    /// At most `limit` applications of a contest in one status, by their places, from the first one above `above`. One large
    /// page is cheaper than many: a page may cost as much as all recently changed ones.
    fn list_applications(
        &self,
        contest: Uuid,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Listing<(PlayerId, Application)>, StoreError>;

    /// Like [`list_applications`](Self::list_applications), for work that may leave none out: fails if a row is corrupt.
    fn applications(
        &self,
        contest: Uuid,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, StoreError> {
        self.list_applications(contest, status, above, limit)?.whole()
    }

    /// The first applications of a contest in order of players, in any status: at most `limit`, from the first one after
    /// `after`. A caller that removes them page by page passes the last one as `after`, so that removed ones are not scanned
    /// again.
    fn first_applications(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, StoreError>;

    /// The application of each key. The keys ascend.
    fn applications_of(&self, keys: &[EntrantKey]) -> Result<Vec<Option<Application>>, StoreError>;

    /// At most `limit` members of a contest in order of players, from the first one after `after`.
    fn list_members(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Listing<(PlayerId, ContestPlayer)>, StoreError>;

    /// Like [`list_members`](Self::list_members), for work that may leave none out: fails if a row is corrupt.
    fn contest_members(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Vec<(PlayerId, ContestPlayer)>, StoreError> {
        self.list_members(contest, after, limit)?.whole()
    }

    /// The member of each key. The keys ascend. A member is never changed.
    fn enrolled(&self, keys: &[EntrantKey]) -> Result<Vec<Option<ContestPlayer>>, StoreError>;

    /// At most `limit` prizes of a contest with their numbers, from `from` on. A cancelled contest has refunded fees
    /// instead.
    fn list_payouts(
        &self,
        contest: Uuid,
        from: u32,
        limit: usize,
    ) -> Result<Listing<(u32, Payout)>, StoreError>;

    /// Like [`list_payouts`](Self::list_payouts), for work that may leave none out: fails if a row is corrupt.
    fn payouts(&self, contest: Uuid, from: u32, limit: usize) -> Result<Vec<(u32, Payout)>, StoreError> {
        self.list_payouts(contest, from, limit)?.whole()
    }
}
