//! The trait [`Maintenance`]: expiry, purges, corrupt rows and figures.

use crate::plan::{ScoreKey, WindowKey};
use crate::{CorruptRow, Slow, StoreError};
use std::time::Instant;
use tally_rules::Micros;

/// The gauges of [`Maintenance::gauges`] that only grow while a store is open: counters, in the terms of Prometheus.
pub const COUNTERS: &[&str] = &[
    "checkpoints",
    "checkpoints_hindered",
    "commits_lost",
    "commits_unresolved",
    "connection_wait_seconds",
    "connection_waits",
    "connects",
    "flush_failures",
    "flush_rows",
    "flushes",
    "round_trips",
    "slow_transactions",
    "slowed_seconds",
    "transactions_again",
];

/// Background work and figures. Every method that returns a `Result` blocks.
///
/// Expiry and purges are bounded steps: each deletes at most `limit` rows, and the caller repeats them. Stopping between two steps
/// is harmless.
pub trait Maintenance: Send + Sync {
    /// The name of the backend, for messages, metrics and the contract suite.
    fn name(&self) -> &'static str;

    /// Deletes at most `limit` stored requests older than `before`. Returns their number.
    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError>;

    /// Deletes at most `limit` rows of deleted boards. Returns their number. Zero means that none are left.
    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError>;

    /// The windows of `windows` of which this shard has rows or archives to purge. A window with the same number must not be stored
    /// before: it would see the old rows, and the purge would delete the new ones.
    fn unpurged(&self, windows: &[WindowKey], shard: usize) -> Result<Vec<WindowKey>, StoreError>;

    /// Purges at most `limit` rows of one window. Returns whether nothing of it is left.
    fn purge_window(&self, window: WindowKey, limit: usize) -> Result<bool, StoreError>;

    /// Stores a small value durably, such as the fingerprint of the secret.
    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError>;

    /// Brings the store to its simplest form on the disk, for the end of a process. The store can still be used afterwards.
    fn checkpoint(&self) -> Result<(), StoreError>;

    /// The corrupt rows that were read since the store was opened: some thousands at most.
    fn corrupt_rows(&self) -> Vec<CorruptRow> {
        Vec::new()
    }

    /// The number of corrupt rows. Cheap.
    fn corrupt_row_count(&self) -> u64 {
        0
    }

    /// Whether the record of a key is corrupt. Cheap if there is none.
    fn is_corrupt(&self, _key: &ScoreKey) -> bool {
        false
    }

    /// Rows, bytes and times of the backend, for status and metrics: (name, value).
    fn gauges(&self) -> Vec<(&'static str, f64)>;

    /// The last transactions that took longer than [`crate::SLOW`], the newest last.
    fn slow(&self) -> Vec<Slow> {
        Vec::new()
    }

    /// The background work that has used the same files at some moment since then: `flush`, `checkpoint`.
    fn worked_since(&self, _since: Instant) -> Vec<&'static str> {
        Vec::new()
    }
}
