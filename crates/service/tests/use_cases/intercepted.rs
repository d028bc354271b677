//! A store before a real one, whose clock, revisions and reads of leaderboards the test controls.
//!
//! Not here: transactions and processes that end (`wallets/histories/dying`).

use crate::wrapped::{Difference, Wrapped};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tally_rules::PlayerId;
use tally_store::{
    Bans, BoardNo, BoardRef, BoardState, Committed, Loaded, ReadSet, Revisions, Store, StoreError, WriteSet,
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
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Wrapped<Self>> {
        Arc::new(Wrapped(Self {
            inner,
            newer: AtomicU64::new(0),
            attempts: AtomicUsize::new(0),
            clock_ahead: AtomicI64::new(0),
            gate: Mutex::default(),
            waiting: AtomicUsize::new(0),
            bans_read: Mutex::default(),
            whole_reads: AtomicUsize::new(0),
        }))
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

impl Difference for Intercepted {
    fn inner(&self) -> &dyn Store {
        &*self.inner
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

    fn board(&self, name: BoardRef<'_>, known: Option<&Revisions>) -> Result<Option<BoardState>, StoreError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(self.hold_boards());
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        let state = self.inner.board(name, known)?;
        let read = state.iter().map(|state| (state.row.no, state.bans.clone()));
        self.bans_read.lock().unwrap().extend(read);
        Ok(state)
    }

    fn clock_ahead(&self) -> i64 {
        self.clock_ahead.load(Ordering::SeqCst)
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        self.whole_reads.fetch_add(1, Ordering::SeqCst);
        self.inner.bans(board)
    }
}
