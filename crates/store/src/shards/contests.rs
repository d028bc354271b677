//! Contests are on the first shard, beside members and money.

use super::Shards;
use crate::contest_reads::{ContestReads, Due, DueAfter};
use crate::contests::EntrantKey;
use crate::payments::PaymentReads;
use crate::series::SeriesReads;
use crate::{Listing, StoreError, WindowKey};
use tally_rules::contest::application::Status;
use tally_rules::contest::{
    Application, ContestId, ContestPlayer, ContestRecord, ContestState, Payout, SeriesRecord,
};
use tally_rules::ledger::Uuid;
use tally_rules::period::PeriodPayment;
use tally_rules::{Micros, PlayerId};

impl SeriesReads for Shards {
    fn series(&self, id: &ContestId) -> Result<Option<SeriesRecord>, StoreError> {
        self.of_first(|first| first.series(id))
    }

    fn list_series(
        &self,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, SeriesRecord)>, StoreError> {
        self.of_first(|first| first.list_series(after, limit))
    }

    fn due_series(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError> {
        self.of_first(|first| first.due_series(now, after, limit))
    }
}

impl PaymentReads for Shards {
    fn payment(&self, key: WindowKey) -> Result<Option<PeriodPayment>, StoreError> {
        self.of_first(|first| first.payment(key))
    }

    fn payments(
        &self,
        open: bool,
        after: Option<WindowKey>,
        limit: usize,
    ) -> Result<Vec<WindowKey>, StoreError> {
        self.of_first(|first| first.payments(open, after, limit))
    }
}

impl ContestReads for Shards {
    fn contest(&self, id: &ContestId) -> Result<Option<ContestRecord>, StoreError> {
        self.of_first(|first| first.contest(id))
    }

    fn list_contests(
        &self,
        state: Option<ContestState>,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, ContestRecord)>, StoreError> {
        self.of_first(|first| first.list_contests(state, after, limit))
    }

    fn due_contests(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError> {
        self.of_first(|first| first.due_contests(now, after, limit))
    }

    fn count_contests(&self, most: usize) -> Result<Vec<usize>, StoreError> {
        self.of_first(|first| first.count_contests(most))
    }

    fn list_applications(
        &self,
        contest: Uuid,
        status: Status,
        above: u64,
        limit: usize,
    ) -> Result<Listing<(PlayerId, Application)>, StoreError> {
        self.of_first(|first| first.list_applications(contest, status, above, limit))
    }

    fn first_applications(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Vec<(PlayerId, Application)>, StoreError> {
        self.of_first(|first| first.first_applications(contest, after, limit))
    }

    fn applications_of(&self, keys: &[EntrantKey]) -> Result<Vec<Option<Application>>, StoreError> {
        self.of_first(|first| first.applications_of(keys))
    }

    fn list_members(
        &self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Result<Listing<(PlayerId, ContestPlayer)>, StoreError> {
        self.of_first(|first| first.list_members(contest, after, limit))
    }

    fn enrolled(&self, keys: &[EntrantKey]) -> Result<Vec<Option<ContestPlayer>>, StoreError> {
        self.of_first(|first| first.enrolled(keys))
    }

    fn list_payouts(
        &self,
        contest: Uuid,
        from: u32,
        limit: usize,
    ) -> Result<Listing<(u32, Payout)>, StoreError> {
        self.of_first(|first| first.list_payouts(contest, from, limit))
    }
}
