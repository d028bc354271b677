//! Maintenance of the embedded store, and its coordination: it is the only process, so the defaults apply.

use super::SqliteStore;
use super::{files, memtable, meta, purge, requests};
use crate::plan::{ScoreKey, WindowKey};
use crate::{Coordination, CorruptRow, Maintenance, Slow, StoreError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tally_rules::Micros;

impl Coordination for SqliteStore {}

impl Maintenance for SqliteStore {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        requests::expire_some(&self.shared, before, limit)
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        purge::some(&self.shared, limit)
    }

    fn unpurged(&self, windows: &[WindowKey], _shard: usize) -> Result<Vec<WindowKey>, StoreError> {
        purge::unpurged(&self.shared, windows)
    }

    fn purge_window(&self, window: WindowKey, limit: usize) -> Result<bool, StoreError> {
        purge::window(&self.shared, window, limit)
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.shared.write_tables(|tables| meta::put(tables, name, value))
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        self.shared.flushing.settle(&self.shared)
    }

    fn corrupt_rows(&self) -> Vec<CorruptRow> {
        self.shared.damages.list()
    }

    fn corrupt_row_count(&self) -> u64 {
        self.shared.damages.count()
    }

    fn is_corrupt(&self, key: &ScoreKey) -> bool {
        self.shared.damages.has("scores", key)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let shared = &self.shared;
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        let (journal_files, journal_bytes) = files::size_of_journal(&shared.path);
        let file_bytes = std::fs::metadata(&shared.path).map_or(0, |file| file.len());
        let (rows, bytes) = {
            let memtables = shared.memtables();
            let sum = |of: fn(&memtable::Memtable) -> usize| memtables.each().map(of).sum::<usize>();
            (sum(memtable::Memtable::rows), sum(memtable::Memtable::bytes))
        };
        let lag = shared.unsynced.lag();
        vec![
            ("file_bytes", file_bytes as f64),
            ("wal_bytes", number(&shared.counters.log_bytes)),
            ("wal_bytes_max", shared.options.wal_bytes_max as f64),
            ("checkpoints", number(&shared.counters.checkpoints)),
            ("checkpoints_hindered", number(&shared.counters.hindered)),
            ("checkpoint_seconds_last", number(&shared.counters.last_micros) / 1e6),
            ("journal_files", journal_files as f64),
            ("journal_bytes", journal_bytes as f64),
            ("unflushed_rows", rows as f64),
            ("unflushed_bytes", bytes as f64),
            ("unflushed_ratio", shared.flushing.stall.ratio()),
            ("flushes", number(&shared.flushing.flushes)),
            ("flush_rows", number(&shared.flushing.rows)),
            ("flush_failures", number(&shared.flushing.failures)),
            ("flush_seconds_last", number(&shared.flushing.last_micros) / 1e6),
            ("slowed_seconds", shared.flushing.stall.slept_seconds()),
            ("unsynced_transactions", lag.transactions as f64),
            ("unsynced_bytes", lag.bytes as f64),
            ("unsynced_seconds", lag.seconds),
            ("slow_transactions", shared.slows.count()),
            ("damaged_rows", shared.damages.count() as f64),
        ]
    }

    fn slow(&self) -> Vec<Slow> {
        self.shared.slows.list()
    }

    fn worked_since(&self, since: Instant) -> Vec<&'static str> {
        self.shared.counters.worked_since(since)
    }
}
