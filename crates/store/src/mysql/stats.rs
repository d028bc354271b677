//! Counters of the connections, for status and metrics.

use crate::damage::Damages;
use crate::slow::Slows;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that only grow, except `open`.
#[derive(Debug, Default)]
pub(super) struct Stats {
    /// Open connections.
    pub(super) open: AtomicU64,
    /// Connections that were opened.
    pub(super) connects: AtomicU64,
    /// Round trips.
    pub(super) messages: AtomicU64,
    /// The number of waits for a connection, and their total duration.
    pub(super) waits: AtomicU64,
    pub(super) wait_micros: AtomicU64,
    /// Transactions that began again on a new connection.
    pub(super) again: AtomicU64,
    /// Commits whose answer was lost, and those of them that could not be resolved at once.
    pub(super) lost: AtomicU64,
    pub(super) unresolved: AtomicU64,
    /// Slow transactions.
    pub(super) slows: Slows,
    /// Corrupt rows.
    pub(super) damages: Damages,
}

impl Stats {
    pub(super) fn gauges(&self) -> Vec<(&'static str, f64)> {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        vec![
            ("slow_transactions", self.slows.count()),
            ("connections", number(&self.open)),
            ("connects", number(&self.connects)),
            ("round_trips", number(&self.messages)),
            ("connection_waits", number(&self.waits)),
            ("connection_wait_seconds", number(&self.wait_micros) / 1e6),
            ("transactions_again", number(&self.again)),
            ("commits_lost", number(&self.lost)),
            ("commits_unresolved", number(&self.unresolved)),
            ("damaged_rows", self.damages.count() as f64),
        ]
    }
}
