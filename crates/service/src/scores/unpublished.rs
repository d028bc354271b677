//! Committed batches of this server that are not published, because Redis is unavailable.
//!
//! Their outbox entries stay in the store, so that another server can publish them if this one dies. Many of them are merged into
//! one, so their number stays small for any outage. Not here: publishing them.

use crate::boards::Board;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tally_ranking::RemoteRanking;
use tally_store::{BatchId, Store};

/// The number of entries that are merged.
const COMPACT_AT: usize = 256;

/// The batches with entries in the store, by database.
#[derive(Debug, Default)]
pub(crate) struct Unpublished(Mutex<BTreeMap<u8, Vec<BatchId>>>);

impl Unpublished {
    /// Notes one more.
    pub(crate) fn add(&self, store: &dyn Store, batch: BatchId) {
        let mut each = self.each();
        let all = each.entry(batch.shard).or_default();
        all.push(batch);
        if !all.len().is_multiple_of(COMPACT_AT) {
            return;
        }
        match store.merge_outbox(all) {
            Ok(None) => {}
            Ok(Some(compacted)) => {
                std::mem::replace(all, vec![compacted]).into_iter().for_each(|one| store.published(one));
            }
            Err(error) => tracing::warn!(%error, "merge unpublished outbox entries; it is tried again"),
        }
    }

    /// Releases those that were added before, if everything is published now.
    pub(crate) fn settle(&self, store: &dyn Store, is_published: impl FnOnce() -> bool) {
        let before = std::mem::take(&mut *self.each());
        if before.is_empty() {
            return;
        }
        if is_published() {
            before.into_values().flatten().for_each(|batch| store.published(batch));
        } else {
            let mut each = self.each();
            before.into_iter().for_each(|(shard, some)| each.entry(shard).or_default().extend(some));
        }
    }

    fn each(&self) -> MutexGuard<'_, BTreeMap<u8, Vec<BatchId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a ranking of a board in Redis lacks a committed change of this server, or may lack one.
pub(crate) fn has_some(board: &Board) -> bool {
    let mut lagging = false;
    board.each_ranking(|_, ranking| lagging |= ranking.remote().is_some_and(RemoteRanking::is_lagging));
    lagging
}
