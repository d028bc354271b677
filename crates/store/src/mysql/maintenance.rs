//! Maintenance: expiry, purges, figures.

use super::lease::Lease;
use super::{MySqlStore, meta, purge, requests};
use crate::plan::{ScoreKey, WindowKey};
use crate::{CorruptRow, Maintenance, Slow, StoreError};
use tally_rules::Micros;

impl Maintenance for MySqlStore {
    fn name(&self) -> &'static str {
        self.flavour.name()
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        self.may_write()?;
        requests::expire(&self.pool, before, limit)
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        self.may_write()?;
        purge::some(&self.pool, limit)
    }

    fn unpurged(&self, windows: &[WindowKey], _shard: usize) -> Result<Vec<WindowKey>, StoreError> {
        purge::unpurged(&self.pool, windows)
    }

    fn purge_window(&self, window: WindowKey, limit: usize) -> Result<bool, StoreError> {
        self.may_write()?;
        purge::window(&self.pool, window, limit)
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.may_write()?;
        self.pool.query(&meta::put(name, value)?).map(drop)
    }

    /// The database checkpoints by itself.
    fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn corrupt_rows(&self) -> Vec<CorruptRow> {
        self.pool.stats.damages.list()
    }

    fn corrupt_row_count(&self) -> u64 {
        self.pool.stats.damages.count()
    }

    fn is_corrupt(&self, key: &ScoreKey) -> bool {
        self.pool.stats.damages.has("scores", key)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.pool.gauges().into_iter().chain(self.lease.iter().flat_map(Lease::gauges)).collect()
    }

    fn slow(&self) -> Vec<Slow> {
        self.pool.stats.slows.list()
    }
}
