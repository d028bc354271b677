//! The state that several servers share, over all shards. Tasks and the store id are on the first shard.

use super::run::batch_of;
use super::split::FIRST;
use super::{Inner, Shards};
use crate::plan::BatchId;
use crate::servers::{
    BoardRef, BoardState, FeedPage, FeedPosition, LostCommits, OutboxEntry, Revisions, Task,
};
use crate::{Coordination, StoreError};
use std::time::Duration;

impl Coordination for Shards {
    fn board(&self, name: BoardRef<'_>, known: Option<&Revisions>) -> Result<Option<BoardState>, StoreError> {
        self.inner.board(name, known)
    }

    fn change_feed(&self, after: &[FeedPosition]) -> Result<FeedPage, StoreError> {
        self.inner.change_feed(after)
    }

    fn id(&self) -> Result<Option<[u8; 16]>, StoreError> {
        self.inner.all[FIRST].id()
    }

    fn clock_ahead(&self) -> i64 {
        let all = self.inner.all.iter().map(|store| store.clock_ahead());
        all.max_by_key(|ahead| ahead.abs()).unwrap_or(0)
    }

    /// Changes when the generation of any shard changes.
    fn generation(&self) -> u64 {
        self.inner.all.iter().fold(0, |all, store| all.rotate_left(7) ^ store.generation())
    }

    fn lease_time(&self) -> Duration {
        self.inner.all[FIRST].lease_time()
    }

    fn swap_meta(&self, name: &str, old: Option<&[u8]>, new: &[u8]) -> Result<bool, StoreError> {
        self.inner.query(FIRST, |store| store.swap_meta(name, old, new))
    }

    fn lease_task(&self, task: Task, time: Duration) -> Result<bool, StoreError> {
        self.inner.query(FIRST, |store| store.lease_task(task, time))
    }

    fn published(&self, batch: BatchId) {
        let (store, batch) = self.inner.place(batch);
        store.published(batch);
    }

    fn outbox(&self, age: Duration, after: Option<BatchId>) -> Result<Vec<OutboxEntry>, StoreError> {
        self.inner.outbox(age, after)
    }

    fn merge_outbox(&self, batches: &[BatchId]) -> Result<Option<BatchId>, StoreError> {
        // Only outbox entries of one shard are merged: several shards would need several merged entries.
        let mut places = Inner::places(batches).into_iter();
        let (Some((shard, batches)), None) = (places.next(), places.next()) else { return Ok(None) };
        let compacted = self.inner.query(shard, |store| store.merge_outbox(&batches))?;
        Ok(compacted.map(|batch| batch_of(shard, batch)))
    }

    fn clear_outbox(&self, batches: &[BatchId]) -> Result<(), StoreError> {
        let mut places = Inner::places(batches).into_iter();
        places.try_for_each(|(shard, batches)| self.inner.query(shard, |store| store.clear_outbox(&batches)))
    }

    /// Only the lease of the first shard decides: a server writes to any shard only with it.
    fn may_answer(&self) -> bool {
        self.inner.all[FIRST].may_answer() && self.lost().is_none()
    }

    fn lost(&self) -> Option<LostCommits> {
        self.inner.all.iter().find_map(|store| store.lost())
    }
}
