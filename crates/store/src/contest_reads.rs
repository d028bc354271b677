//! What is read of contests without a transaction.
//!
//! A method that lists is for people: it leaves damaged rows out and names them. The one without `list_` is for work, which
//! may leave none out. Not here: what a transaction reads (`contests`).

use crate::contests::EntrantKey;
use crate::payments::PaymentReads;
use crate::series::SeriesReads;
use crate::{Listing, StoreError};
use tally_rules::contest::state::State;
use tally_rules::contest::{Application, ContestId, ContestMember, Payout, Record, Status};
use tally_rules::ledger::Uuid;
use tally_rules::{Micros, PlayerId};

/// What is due, with since when: in order of that and of names.
pub type Due = Vec<(Micros, ContestId)>;

/// Where a list of what is due goes on: behind that moment and name.
pub type DueAfter<'a> = Option<(Micros, &'a str)>;

/// What can be read of contests without a transaction.
pub trait Contests: SeriesReads + PaymentReads {
    /// A contest.
    fn contest(&self, id: &ContestId) -> Result<Option<Record>, StoreError>;

    /// At most `limit` contests in order of names, from the first one after `after`: of one state, or of all.
    fn list_contests(
        &self,
        state: Option<State>,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, Record)>, StoreError>;

    /// The same for work: an error where one of them is damaged.
    fn contests(
        &self,
        state: Option<State>,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Vec<(ContestId, Record)>, StoreError> {
        self.list_contests(state, after, limit)?.whole()
    }

    /// At most `limit` contests of which something happens by itself at `now` or before, first things first, from the first
    /// one behind `after`.
    fn due_contests(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError>;

    /// How many there are in each state, in the order of [`State::ALL`]. Of each at most so many are counted.
    fn count_contests(&self, most: usize) -> Result<Vec<usize>, StoreError>;

    /// At most `limit` applications of a contest in one status, by their places, from the first one above `above`. Whoever wants
    /// all of them asks once: a page may cost as much as all that were changed lately.
    fn list_applications(
        &self,
        contest: Uuid,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Listing<(PlayerId, Application)>, StoreError>;

    /// The same for work: an error where one of them is damaged.
    fn applications(
        &self,
        contest: Uuid,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, StoreError> {
        self.list_applications(contest, status, above, limit)?.whole()
    }

    /// The first applications of a contest in order of players, whatever became of them: at most `limit`, from the first one
    /// after `after`. Whoever removes them page by page says the last one, and passes none over that it has removed.
    fn first_applications(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, StoreError>;

    /// The application of each key, which ascend.
    fn applications_of(&self, keys: &[EntrantKey]) -> Result<Vec<Option<Application>>, StoreError>;

    /// At most `limit` members of a contest in order of players, from the first one after `after`.
    fn list_members(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Listing<(PlayerId, ContestMember)>, StoreError>;

    /// The same for work: an error where one of them is damaged.
    fn contest_members(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Vec<(PlayerId, ContestMember)>, StoreError> {
        self.list_members(contest, after, limit)?.whole()
    }

    /// The member of each key, which ascend. One that is there is never changed.
    fn enrolled(&self, keys: &[EntrantKey]) -> Result<Vec<Option<ContestMember>>, StoreError>;

    /// At most `limit` prizes of a contest with their numbers, from that one on; of one that was called off, fees paid back.
    fn list_payouts(
        &self,
        contest: Uuid,
        from: u32,
        limit: usize,
    ) -> Result<Listing<(u32, Payout)>, StoreError>;

    /// The same for work: an error where one of them is damaged.
    fn payouts(&self, contest: Uuid, from: u32, limit: usize) -> Result<Vec<(u32, Payout)>, StoreError> {
        self.list_payouts(contest, from, limit)?.whole()
    }
}
