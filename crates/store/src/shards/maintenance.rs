//! Maintenance of all shards.

use super::Shards;
use super::directory::Delta;
use super::split::FIRST;
use crate::plan::{ScoreKey, WindowKey};
use crate::{CorruptRow, Maintenance, Slow, StoreError, Transactions};
use std::time::Instant;
use tally_rules::Micros;

impl Maintenance for Shards {
    fn name(&self) -> &'static str {
        "shards"
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        self.inner.up_to(0, limit, |store, limit| store.expire_requests(before, limit))
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        self.inner.purge_deleted(limit)
    }

    fn unpurged(&self, windows: &[WindowKey], shard: usize) -> Result<Vec<WindowKey>, StoreError> {
        self.inner.query(shard, |store| store.unpurged(windows, FIRST))
    }

    fn purge_window(&self, window: WindowKey, limit: usize) -> Result<bool, StoreError> {
        // The first shard is purged last: the rows that it has to purge list what is deleted.
        let _changing = self.inner.directory.change();
        let one = |shard| {
            if shard != FIRST && self.inner.shared {
                // The server that forgot the period may have ended before the other shards had it.
                self.inner.sync(shard, &Delta { deleted_windows: [window].into(), ..Delta::default() })?;
            }
            self.inner.query(shard, |store| store.purge_window(window, limit))
        };
        (0..self.inner.all.len()).rev().try_fold(true, |done, shard| Ok(done && one(shard)?))
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.inner.query(FIRST, |store| store.set_meta(name, value))
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        self.inner.all.iter().try_for_each(|store| store.checkpoint())
    }

    fn corrupt_rows(&self) -> Vec<CorruptRow> {
        // A board is on every shard, so a corrupt one is listed once.
        let mut all: Vec<CorruptRow> = self.inner.all.iter().flat_map(|store| store.corrupt_rows()).collect();
        all.sort_unstable_by(|a, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
        all.dedup();
        all
    }

    fn corrupt_row_count(&self) -> u64 {
        self.inner.all.iter().map(|store| store.corrupt_row_count()).sum()
    }

    fn is_corrupt(&self, key: &ScoreKey) -> bool {
        self.inner.all[self.shard_of(&key.player)].is_corrupt(key)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.inner.gauges()
    }

    fn slow(&self) -> Vec<Slow> {
        let mut all: Vec<_> = self.inner.all.iter().flat_map(|store| store.slow()).collect();
        all.sort_by_key(|slow| slow.at);
        all
    }

    fn worked_since(&self, since: Instant) -> Vec<&'static str> {
        let mut all: Vec<_> = self.inner.all.iter().flat_map(|store| store.worked_since(since)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
