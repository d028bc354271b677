//! A store that records the duration of transactions, by caller: the score lane, or the close of periods.
//!
//! It wraps the store of the service and changes nothing. A duration includes the wait for the other caller.

use super::{AFTER, Phase};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};
use tally_store::sqlite::SqliteStore;
use tally_store::{
    BatchId, BlockKey, BoardNo, BoardRow, Committed, Coordination, ImportKey, ImportRow, KeyRow, Ledger,
    Listing, Loaded, Maintenance, ReadSet, Reads, ScoreKey, StoreError, StoredBlock, Transactions, Window,
    WindowKey, WindowRow, WriteSet,
};

/// The store with its durations.
pub(super) struct Timed {
    inner: SqliteStore,
    phase: Arc<Phase>,
    batches_ns: [AtomicU64; 3],
    steps: AtomicU64,
    steps_ns: AtomicU64,
}

impl Timed {
    pub(super) fn new(inner: SqliteStore, phase: Arc<Phase>) -> Self {
        let (batches_ns, steps, steps_ns) = Default::default();
        Self { inner, phase, batches_ns, steps, steps_ns }
    }

    /// The slowest transaction of the lane in each phase, in milliseconds.
    pub(super) fn slowest_batch_ms(&self) -> [f64; 3] {
        [0, 1, 2].map(|phase| milliseconds(&self.batches_ns[phase]))
    }

    /// The number of transactions that closed the period, and the slowest in milliseconds.
    pub(super) fn steps(&self) -> (u64, f64) {
        (self.steps.load(Ordering::Relaxed), milliseconds(&self.steps_ns))
    }
}

fn milliseconds(ns: &AtomicU64) -> f64 {
    ns.load(Ordering::Relaxed) as f64 / 1e6
}

impl Transactions for Timed {
    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        let began = Instant::now();
        // A close changes archive blocks and windows; a batch of submits changes records.
        let (mut records, mut pieces) = (false, false);
        let done = self.inner.run(plan, &mut |loaded| {
            let changes = decide(loaded);
            records = !changes.scores.is_empty();
            pieces = !changes.blocks.is_empty() || !changes.garbage.is_empty();
            changes
        });
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match (records, pieces) {
            (false, true) => {
                self.steps.fetch_add(1, Ordering::Relaxed);
                self.steps_ns.fetch_max(took, Ordering::Relaxed);
            }
            (true, _) => {
                let phase = self.phase.now().min(AFTER);
                self.batches_ns[phase].fetch_max(took, Ordering::Relaxed);
            }
            (false, false) => {}
        }
        done
    }

    fn resolve(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        self.inner.resolve(batch)
    }
}

impl Reads for Timed {
    fn ledger(&self) -> &dyn Ledger {
        self.inner.ledger()
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        self.inner.boards()
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        self.inner.keys()
    }

    fn list_audit(
        &self,
        before: AuditId,
        limit: usize,
    ) -> Result<Listing<(AuditId, AuditEntry)>, StoreError> {
        self.inner.list_audit(before, limit)
    }

    fn had_keys(&self) -> Result<bool, StoreError> {
        self.inner.had_keys()
    }

    fn scan_versions(
        &self,
        board: BoardNo,
        window: Window,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        self.inner.scan_versions(board, window, after, limit, each)
    }

    fn windows(&self, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
        self.inner.windows(board)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<StoredBlock>, StoreError> {
        self.inner.block(key)
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.records(keys)
    }

    fn count_scores(&self, board: BoardNo, window: Window) -> Result<u64, StoreError> {
        self.inner.count_scores(board, window)
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        self.inner.import_progress(key)
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        self.inner.bans(board)
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        self.inner.profiles(players)
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.meta(name)
    }
}

impl Coordination for Timed {}

impl Maintenance for Timed {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        self.inner.expire_requests(before, limit)
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        self.inner.purge_deleted(limit)
    }

    fn unpurged(&self, windows: &[WindowKey], shard: usize) -> Result<Vec<WindowKey>, StoreError> {
        self.inner.unpurged(windows, shard)
    }

    fn purge_window(&self, window: WindowKey, limit: usize) -> Result<bool, StoreError> {
        self.inner.purge_window(window, limit)
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.inner.set_meta(name, value)
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        self.inner.checkpoint()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.inner.gauges()
    }
}
