//! The state that several servers share: the change feed, the outbox, task leases.

use super::lease::Lease;
use super::{MySqlStore, batches, meta, outbox, revisions, tasks};
use crate::plan::{BatchId, BoardNo};
use crate::servers::{
    BoardRef, BoardState, FeedPage, FeedPosition, LostCommits, OutboxEntry, Revisions, Task,
};
use crate::{CommitTap, Coordination, StoreError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

impl Coordination for MySqlStore {
    fn board(&self, name: BoardRef<'_>, known: Option<&Revisions>) -> Result<Option<BoardState>, StoreError> {
        revisions::read_board(&self.pool, name, known.map(|known| known.of(0)))
    }

    fn change_feed(&self, after: &[FeedPosition]) -> Result<FeedPage, StoreError> {
        let after = after.first().copied().unwrap_or_default();
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        revisions::change_feed(&self.pool, self.lease.as_ref(), &mut follower, after)
    }

    fn id(&self) -> Result<Option<[u8; 16]>, StoreError> {
        meta::id(&self.pool).map(Some)
    }

    fn clock_ahead(&self) -> i64 {
        self.lease.as_ref().map_or(0, Lease::clock_ahead)
    }

    fn generation(&self) -> u64 {
        self.lease.as_ref().map_or(0, Lease::generation)
    }

    fn lease_time(&self) -> Duration {
        self.pool.options.lease
    }

    fn swap_meta(&self, name: &str, old: Option<&[u8]>, new: &[u8]) -> Result<bool, StoreError> {
        Ok(self.pool.query(&meta::swap(name, old, new)?)?.affected() > 0)
    }

    fn lease_task(&self, task: Task, time: Duration) -> Result<bool, StoreError> {
        Ok(!self.follows() && self.pool.query(&tasks::take(task, &self.name, time))?.affected() > 0)
    }

    fn published(&self, batch: BatchId) {
        self.pool.witnesses.settle([batch]);
    }

    fn outbox(&self, age: Duration, after: Option<BatchId>) -> Result<Vec<OutboxEntry>, StoreError> {
        if self.follows() {
            return Ok(Vec::new());
        }
        batches::delete_settled(&self.pool)?;
        outbox::read(self.pool.query(&outbox::find(age, after))?)
    }

    fn merge_outbox(&self, batches: &[BatchId]) -> Result<Option<BatchId>, StoreError> {
        outbox::compact(&self.pool, batches).map(Some)
    }

    fn clear_outbox(&self, batches: &[BatchId]) -> Result<(), StoreError> {
        let script = outbox::take_off(batches);
        if script.len() == 0 { Ok(()) } else { self.pool.query(&script).map(drop) }
    }

    fn may_answer(&self) -> bool {
        self.pool.witnesses.is_intact() && self.lease.as_ref().is_none_or(Lease::may_answer)
    }

    fn lost(&self) -> Option<LostCommits> {
        self.pool.witnesses.lost()
    }

    fn tap(&self, tap: Arc<dyn CommitTap>) -> Option<u64> {
        let lease = self.lease.as_ref().filter(|lease| lease.is_alone())?;
        self.tapped.set(tap);
        Some(lease.token())
    }

    fn tapped_in_doubt(&self) -> Vec<BatchId> {
        self.tapped.all_in_doubt()
    }

    fn board_revisions(&self) -> Result<Vec<(BoardNo, u64)>, StoreError> {
        revisions::all(&self.pool)
    }

    fn renewed(&self) -> u64 {
        self.lease.as_ref().map_or(0, Lease::expires_at)
    }

    fn marks(&self) -> Duration {
        self.pool.options.marks.unwrap_or_default()
    }
}
