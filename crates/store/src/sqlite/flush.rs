//! The flush: writes the rows of the journal into the tables, in the background, rarely, in key order, the newest row of
//! each key.
//!
//! A random row written into a table dirties a page. Many rows in key order share pages, and of a key that was written often
//! only the last state is written. So the flush waits until there are many rows, or until no more come. Then:
//!
//! 1. The writer rotates to another journal file, and the active memtable becomes the immutable one (`rotation`). The old
//!    file is synced before the new one takes a batch.
//! 2. Its rows go into the tables in transactions of bounded size. The first one stores up to which batch some rows may be
//!    there, the last one up to which all are. A crash in between flushes everything again, and states may be written twice.
//! 3. The last commit was synced, so the tables alone hold all rows. If the checkpoint of the tables' log also met no disk
//!    error, the immutable memtable is dropped, and its journal file is emptied for reuse.
//!
//! A failed flush keeps memtable and file and tries again. Meanwhile writers go on until there is no more room. Not here:
//! slowing writers (`stall`), and recovery after a kill (`recover`).

use super::crash_points::reach;
use super::flush_worker::{Reason, Worker};
use super::memtable::Memtable;
use super::meta;
use super::options::Background;
use super::rotation::Rotation;
use super::run::Held;
use super::stall::Stall;
use super::state::Shared;
use crate::{StoreError, ThrottledLog};
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of rows in one transaction of a busy flush, so that other writers of the tables get a turn in between.
pub(super) const TRANSACTION_ROWS: usize = 10_000;

/// The name of the operation in the log.
const WHAT: &str = "bring the journal into the tables";

/// The pause before a failed flush is tried again.
const REST: Duration = Duration::from_millis(200);

/// A journal file may grow to this multiple of its limit before writers wait, to leave room while the flush fails.
const JOURNAL_TIMES: u64 = 4;

/// The state that the flush shares with writers and with threads that wait for it.
#[derive(Debug, Default)]
pub(super) struct Flusher {
    pub(super) state: Mutex<FlushState>,
    pub(super) wake: Condvar,
    pub(super) done: Condvar,
    pub(super) wanted: AtomicBool,
    /// The worker of a store without threads.
    by_hand: Option<Mutex<Worker>>,
    log: ThrottledLog<String>,
    pub(super) rotation: Rotation,
    pub(super) stall: Stall,
    pub(super) flushes: AtomicU64,
    pub(super) rows: AtomicU64,
    pub(super) last_micros: AtomicU64,
    pub(super) failures: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct FlushState {
    /// The tickets of the last request, of the last one that a flush served, and of the last one that failed.
    pub(super) requested: u64,
    pub(super) served: u64,
    pub(super) failed: u64,
    /// The last request that wants all journal files removed.
    pub(super) settle: u64,
    error: Option<StoreError>,
    pub(super) stop: bool,
    pub(super) ended: bool,
}

impl Flusher {
    pub(super) fn new(background: Background) -> Self {
        let by_hand = (background == Background::ByHand).then(Mutex::default);
        Self { by_hand, ..Self::default() }
    }

    /// Waits until there is room for more rows. An error says why there will be none.
    pub(super) fn wait_for_room(&self, shared: &Shared) -> Result<(), StoreError> {
        if !self.stall.is_full() {
            return Ok(());
        }
        if self.by_hand.is_some() {
            return self.flush_now(shared).map_err(|error| no_room(&error));
        }
        let mut state = self.state();
        while self.stall.is_full() {
            if let Some(error) = &state.error {
                return Err(no_room(error));
            }
            if state.ended {
                return Err(ended());
            }
            state = self.done.wait_timeout(state, REST).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// After a batch: wakes the flush when there are enough rows, and slows the caller when there are too many.
    pub(super) fn after_put(&self, shared: &Shared, held: &Held, journal_used: u64, rows: usize) {
        let options = &shared.options;
        // A player that is written again and again takes no more memory, but more of the journal.
        let journal_max = options.journal_bytes_max.saturating_mul(JOURNAL_TIMES).max(1);
        let of_journal =
            u128::from(options.memtable_bytes_max) * u128::from(journal_used) / u128::from(journal_max);
        let used = held.bytes.max(usize::try_from(of_journal).unwrap_or(usize::MAX));
        self.stall.set(used, options.memtable_bytes_max);
        if self.by_hand.is_some() {
            return;
        }
        let enough = held.fresh_bytes >= self.stall.flush_at() || journal_used >= options.journal_bytes_max;
        if (enough && !self.wanted.swap(true, Ordering::Relaxed)) || held.first {
            // The lock ensures that the thread is not between its check and its sleep.
            drop(self.state());
            self.wake.notify_one();
        }
        self.stall.slow(rows);
    }

    /// Flushes everything written so far and waits for it.
    pub(super) fn flush_now(&self, shared: &Shared) -> Result<(), StoreError> {
        self.request(shared, false)
    }

    /// Like [`Self::flush_now`], and removes all journal files.
    pub(super) fn settle(&self, shared: &Shared) -> Result<(), StoreError> {
        self.request(shared, true)
    }

    fn request(&self, shared: &Shared, settle: bool) -> Result<(), StoreError> {
        if let Some(worker) = &self.by_hand {
            let done = worker.lock().unwrap_or_else(PoisonError::into_inner).flush(shared, settle);
            self.note(&done);
            return done;
        }
        let mut state = self.state();
        state.requested += 1;
        let ticket = state.requested;
        if settle {
            state.settle = ticket;
        }
        self.wake.notify_one();
        loop {
            if state.served >= ticket {
                return Ok(());
            }
            if state.failed >= ticket {
                return Err(state.error.clone().unwrap_or_else(ended));
            }
            if state.ended {
                return Err(ended());
            }
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether no caller waits for the flush, and there is room for more rows meanwhile.
    pub(super) fn has_time(&self) -> bool {
        let state = self.state();
        self.stall.is_calm() && !state.stop && state.requested <= state.served.max(state.failed)
    }

    /// Records the end of a flush that was requested with this ticket.
    pub(super) fn ended(&self, ticket: u64, started: Instant, done: Result<(), StoreError>) {
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last_micros.store(micros, Ordering::Relaxed);
        self.note(&done);
        let mut state = self.state();
        match done {
            Ok(()) => (state.served, state.error) = (ticket, None),
            Err(error) => {
                (state.failed, state.error) = (ticket, Some(error));
                // The flush is tried again by itself.
                self.wanted.store(true, Ordering::Relaxed);
            }
        }
        self.done.notify_all();
        if state.error.is_some() && !state.stop && state.requested == ticket {
            drop(self.wake.wait_timeout(state, REST));
        }
    }

    /// Counts and logs a failure.
    fn note(&self, done: &Result<(), StoreError>) {
        match done {
            Ok(()) => self.log.works(WHAT),
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                self.log.fails(WHAT, error.to_string(), &error);
            }
        }
    }

    /// Sleeps until there is a reason to flush.
    pub(super) fn next(&self, shared: &Shared) -> Reason {
        let options = &shared.options;
        let mut state = self.state();
        loop {
            if state.stop {
                return Reason::Stop;
            }
            let age_left = {
                let memtables = shared.memtables();
                let active = memtables.active.born.zip(memtables.active.touched);
                active.map(|(born, touched)| {
                    let idle = options.flush_idle.saturating_sub(touched.elapsed());
                    idle.min(options.flush_age_max.saturating_sub(born.elapsed()))
                })
            };
            let is_requested = state.requested > state.served.max(state.failed);
            let old = age_left.is_some_and(|left| left.is_zero());
            if self.wanted.swap(false, Ordering::Relaxed) || is_requested || old {
                let settle = state.settle > state.served;
                return Reason::Flush { ticket: state.requested, settle };
            }
            state = match age_left {
                Some(left) => self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, FlushState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_room(error: &StoreError) -> StoreError {
    StoreError::Unavailable(format!("what was written cannot be flushed: {error}"))
}

fn ended() -> StoreError {
    StoreError::Unavailable("the store is closing".into())
}

/// The number of rows of a transaction when no other thread uses the disk.
pub(super) fn all_at_once() -> usize {
    TRANSACTION_ROWS
}

/// The work of one transaction of a flush.
pub(super) type Step<'a> = dyn FnMut(&Connection) -> Result<(), StoreError> + 'a;

/// Writes all rows of a memtable into the tables. `write` runs one transaction, of the number of rows that `rows` returns.
pub(super) fn into_tables(
    memtable: &Memtable,
    rows: &dyn Fn() -> usize,
    write: &mut dyn FnMut(&mut Step<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut layers: Vec<_> = memtable.layers().map(|layer| layer.flusher()).collect();
    let (mut at, mut first) = (0, true);
    while at < layers.len() {
        write(&mut |connection| {
            if std::mem::take(&mut first) {
                meta::set_flushing(connection, memtable.last)?;
            }
            let mut left = rows();
            while left > 0 && at < layers.len() {
                left -= layers[at](connection, left)?;
                at += usize::from(left > 0);
            }
            if at == layers.len() {
                meta::set_flushed(connection, memtable.last)?;
            }
            reach("flush");
            Ok(())
        })?;
        reach("flushed some");
    }
    Ok(())
}
