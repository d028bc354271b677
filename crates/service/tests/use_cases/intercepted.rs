//! A store before a real one, whose clock, revisions and reads of leaderboards the test controls.
//!
//! Not here: transactions and processes that end (`wallets/histories/dying`).

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};
use tally_store::{
    Bans, BatchId, Block, BlockKey, BoardNo, BoardRef, BoardRow, BoardState, Committed, Coordination,
    CorruptRow, FeedPage, FeedPosition, ImportKey, ImportRow, KeyRow, Ledger, Loaded, LostCommits,
    Maintenance, OutboxEntry, ReadSet, Reads, Revisions, ScoreKey, ScoreState, Slow, Store, StoreError, Task,
    Transactions, Window, WindowKey, WindowRow, WriteSet,
};

/// The store.
pub(crate) struct Intercepted {
    inner: Arc<dyn Store>,
    /// Each transaction reads revisions of leaderboards that are so much newer than those stored.
    newer: AtomicU64,
    /// How often transactions with records were decided.
    attempts: AtomicUsize,
    clock_ahead: AtomicI64,
    gate: Mutex<()>,
    waiting: AtomicUsize,
    /// The bans of each leaderboard that was read.
    bans_read: Mutex<Vec<(BoardNo, Bans)>>,
    /// How often all bans of a leaderboard were read by themselves.
    whole_reads: AtomicUsize,
}

impl Intercepted {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            newer: AtomicU64::new(0),
            attempts: AtomicUsize::new(0),
            clock_ahead: AtomicI64::new(0),
            gate: Mutex::default(),
            waiting: AtomicUsize::new(0),
            bans_read: Mutex::default(),
            whole_reads: AtomicUsize::new(0),
        })
    }

    /// Other servers seem to change every leaderboard before each transaction, or not any more.
    pub(crate) fn change_always(&self, does: bool) {
        self.newer.store(u64::from(does), Ordering::SeqCst);
    }

    /// How often transactions with records were decided.
    pub(crate) fn attempts(&self) -> usize {
        self.attempts.load(Ordering::SeqCst)
    }

    /// The clock of this machine is so far ahead of the store's.
    pub(crate) fn set_clock_ahead(&self, micros: i64) {
        self.clock_ahead.store(micros, Ordering::SeqCst);
    }

    /// Reads of leaderboards wait until this is dropped.
    pub(crate) fn hold_boards(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many of them wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// The bans of the leaderboards that were read since the last call.
    pub(crate) fn take_bans_read(&self) -> Vec<(BoardNo, Bans)> {
        std::mem::take(&mut *self.bans_read.lock().unwrap())
    }

    /// How often all bans of a leaderboard were read by themselves.
    pub(crate) fn whole_reads(&self) -> usize {
        self.whole_reads.load(Ordering::SeqCst)
    }
}

impl Transactions for Intercepted {
    fn shards(&self) -> usize {
        self.inner.shards()
    }

    fn shard_of(&self, player: &PlayerId) -> usize {
        self.inner.shard_of(player)
    }

    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        self.inner.run(plan, &mut |loaded| {
            if !plan.scores.is_empty() {
                self.attempts.fetch_add(1, Ordering::SeqCst);
            }
            let newer = self.newer.load(Ordering::SeqCst);
            let mut loaded = loaded.clone();
            loaded.boards.iter_mut().flatten().for_each(|revision| *revision += newer);
            decide(&loaded)
        })
    }

    fn resolve(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        self.inner.resolve(batch)
    }
}

impl Coordination for Intercepted {
    fn board(&self, name: BoardRef<'_>, known: Option<&Revisions>) -> Result<Option<BoardState>, StoreError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(self.hold_boards());
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        let state = self.inner.board(name, known)?;
        let read = state.iter().map(|state| (state.row.no, state.bans.clone()));
        self.bans_read.lock().unwrap().extend(read);
        Ok(state)
    }

    fn change_feed(&self, after: &[FeedPosition]) -> Result<FeedPage, StoreError> {
        self.inner.change_feed(after)
    }

    fn id(&self) -> Result<Option<[u8; 16]>, StoreError> {
        self.inner.id()
    }

    fn clock_ahead(&self) -> i64 {
        self.clock_ahead.load(Ordering::SeqCst)
    }

    fn generation(&self) -> u64 {
        self.inner.generation()
    }

    fn lease_task(&self, task: Task, time: Duration) -> Result<bool, StoreError> {
        self.inner.lease_task(task, time)
    }

    fn published(&self, batch: BatchId) {
        self.inner.published(batch);
    }

    fn outbox(&self, age: Duration, after: Option<BatchId>) -> Result<Vec<OutboxEntry>, StoreError> {
        self.inner.outbox(age, after)
    }

    fn merge_outbox(&self, batches: &[BatchId]) -> Result<Option<BatchId>, StoreError> {
        self.inner.merge_outbox(batches)
    }

    fn clear_outbox(&self, batches: &[BatchId]) -> Result<(), StoreError> {
        self.inner.clear_outbox(batches)
    }

    fn may_answer(&self) -> bool {
        self.inner.may_answer()
    }

    fn lost(&self) -> Option<LostCommits> {
        self.inner.lost()
    }
}

impl Reads for Intercepted {
    fn ledger(&self) -> &dyn Ledger {
        self.inner.ledger()
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        self.inner.boards()
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        self.inner.keys()
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

    fn scan_states(
        &self,
        shard: Option<usize>,
        of: (BoardNo, Window),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
    ) -> Result<usize, StoreError> {
        self.inner.scan_states(shard, of, after, limit, each)
    }

    fn states(&self, keys: &[ScoreKey]) -> Result<Vec<Option<ScoreState>>, StoreError> {
        self.inner.states(keys)
    }

    fn windows(&self, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
        self.inner.windows(board)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<Block>, StoreError> {
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
        self.whole_reads.fetch_add(1, Ordering::SeqCst);
        self.inner.bans(board)
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        self.inner.profiles(players)
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.meta(name)
    }
}

impl Maintenance for Intercepted {
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

    fn corrupt_rows(&self) -> Vec<CorruptRow> {
        self.inner.corrupt_rows()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.inner.gauges()
    }

    fn slow(&self) -> Vec<Slow> {
        self.inner.slow()
    }
}
