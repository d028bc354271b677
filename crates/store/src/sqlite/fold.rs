//! Brings what is in the journal into the tables: in the background, seldom, in key order, the newest row of each key.
//!
//! A random row written into a table dirties a page; many rows in key order share pages, and of a key that was written
//! often only the last state is written. So the fold waits until there is much, or until nothing more comes. Then:
//!
//! 1. The writer changes over to another journal file, and the fresh generation becomes the one that is folded
//!    (`rotation`). The old file is synced before the new one takes a batch.
//! 2. Its rows go into the tables in transactions of bounded size. The first says up to which batch some may be there,
//!    the last up to which all are. A crash in between folds everything once more, and states may be written twice.
//! 3. The last commit was synced, so the tables alone hold them all. If folding the tables' log into their file found no
//!    error of the disk either, the generation leaves the overlay and its journal file is emptied for the next time.
//!
//! A fold that fails keeps generation and file and tries again; meanwhile writers go on until there is no more room.
//! Not here: when writers are slowed (`pace`), and what is done after a kill (`recover`).

use super::journal::Journal;
use super::meta;
use super::overlay::Generation;
use super::pace::Pace;
use super::points::reach;
use super::rotation::{Rotation, Taken};
use super::run::Held;
use super::state::Shared;
use crate::StoreError;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Rows in one transaction where much waits: others may write tables in between.
const TRANSACTION_ROWS: usize = 10_000;

/// And where there is time: what a commit syncs at once is what the journal's sync behind it waits for.
const UNHURRIED_ROWS: usize = 250;

/// The rest after a transaction where there is time, in times of what it took: most of the disk is for the journal.
const UNHURRIED_REST: u32 = 4;

/// The longest such rest.
const UNHURRIED_REST_MAX: Duration = Duration::from_millis(50);

/// Between two tries when a fold failed.
const REST: Duration = Duration::from_millis(200);

/// What the fold's thread shares with writers and with those who wait for it.
#[derive(Debug, Default)]
pub(super) struct Folding {
    state: Mutex<State>,
    wake: Condvar,
    done: Condvar,
    wanted: AtomicBool,
    pub(super) rotation: Rotation,
    pub(super) pace: Pace,
    pub(super) folds: AtomicU64,
    pub(super) rows: AtomicU64,
    pub(super) last_micros: AtomicU64,
    pub(super) failures: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    asked: u64,
    served: u64,
    failed: u64,
    /// Whoever asked last so wants no journal to be left.
    settle: u64,
    error: Option<StoreError>,
    stop: bool,
    ended: bool,
}

impl Folding {
    /// Waits while there is no room for more; an error says why there will be none.
    pub(super) fn wait_for_room(&self) -> Result<(), StoreError> {
        if !self.pace.is_full() {
            return Ok(());
        }
        let mut state = self.state();
        while self.pace.is_full() {
            if let Some(error) = &state.error {
                return Err(StoreError::Away(format!("what was written cannot be folded: {error}")));
            }
            if state.ended {
                return Err(ended());
            }
            state = self.done.wait_timeout(state, REST).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// After a batch: wakes the fold where there is enough, and slows the caller where there is too much.
    pub(super) fn after_put(&self, shared: &Shared, held: &Held, journal_used: u64, rows: usize) {
        let options = &shared.options;
        self.pace.set(held.bytes, options.overlay_bytes_max);
        let enough = held.fresh_bytes >= self.pace.fold_at() || journal_used >= options.journal_bytes_max;
        if (enough && !self.wanted.swap(true, Ordering::Relaxed)) || held.first {
            // Under its lock, so that the thread is not between looking and sleeping.
            drop(self.state());
            self.wake.notify_one();
        }
        self.pace.slow(rows);
    }

    /// Folds everything written so far and waits for it.
    pub(super) fn fold_now(&self) -> Result<(), StoreError> {
        self.ask(false)
    }

    /// The same, and leaves no journal.
    pub(super) fn settle(&self) -> Result<(), StoreError> {
        self.ask(true)
    }

    fn ask(&self, settle: bool) -> Result<(), StoreError> {
        let mut state = self.state();
        state.asked += 1;
        let ticket = state.asked;
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

    /// Whether nobody waits for the fold, and there is room for what comes meanwhile.
    fn has_time(&self) -> bool {
        let state = self.state();
        self.pace.is_calm() && !state.stop && state.asked <= state.served.max(state.failed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ended() -> StoreError {
    StoreError::Away("the store is closing".into())
}

/// Rows of a transaction where nobody else is at the disk.
pub(super) fn all_at_once() -> usize {
    TRANSACTION_ROWS
}

/// What is done in one transaction of a fold.
pub(super) type Step<'a> = dyn FnMut(&Connection) -> Result<(), StoreError> + 'a;

/// Writes all rows of a generation into the tables; `write` runs one transaction, of so many rows as `rows` says.
pub(super) fn into_tables(
    generation: &Generation,
    rows: &dyn Fn() -> usize,
    write: &mut dyn FnMut(&mut Step<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut layers: Vec<_> = generation.layers().map(|layer| layer.folder()).collect();
    let (mut at, mut first) = (0, true);
    while at < layers.len() {
        write(&mut |connection| {
            if std::mem::take(&mut first) {
                meta::set_folding(connection, generation.last)?;
            }
            let mut left = rows();
            while left > 0 && at < layers.len() {
                left -= layers[at](connection, left)?;
                at += usize::from(left > 0);
            }
            if at == layers.len() {
                meta::set_folded(connection, generation.last)?;
            }
            reach("fold");
            Ok(())
        })?;
        reach("folded some");
    }
    Ok(())
}

/// What the fold's thread has for itself.
struct Worker {
    shared: Arc<Shared>,
    /// A generation whose fold has not succeeded yet.
    taken: Option<Taken>,
    /// An emptied file for the next time.
    spare: Option<Journal>,
}

enum Reason {
    Fold { ticket: u64, settle: bool },
    Stop,
}

impl Worker {
    fn work(&mut self) {
        let shared = Arc::clone(&self.shared);
        let folding = &shared.folding;
        while let Reason::Fold { ticket, settle } = self.next() {
            let started = Instant::now();
            let done = self.fold(settle);
            let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
            folding.last_micros.store(micros, Ordering::Relaxed);
            let mut state = folding.state();
            match done {
                Ok(()) => (state.served, state.error) = (ticket, None),
                Err(error) => {
                    folding.failures.fetch_add(1, Ordering::Relaxed);
                    (state.failed, state.error) = (ticket, Some(error));
                    // To be tried again, by itself.
                    folding.wanted.store(true, Ordering::Relaxed);
                }
            }
            folding.done.notify_all();
            if state.error.is_some() && !state.stop && state.asked == ticket {
                drop(folding.wake.wait_timeout(state, REST));
            }
        }
    }

    /// Sleeps until there is a reason to fold.
    fn next(&self) -> Reason {
        let (folding, options) = (&self.shared.folding, &self.shared.options);
        let mut state = folding.state();
        loop {
            if state.stop {
                return Reason::Stop;
            }
            let age_left = {
                let overlay = self.shared.overlay();
                let fresh = overlay.fresh.born.zip(overlay.fresh.touched);
                fresh.map(|(born, touched)| {
                    let idle = options.fold_idle.saturating_sub(touched.elapsed());
                    idle.min(options.fold_age_max.saturating_sub(born.elapsed()))
                })
            };
            let asked = state.asked > state.served.max(state.failed);
            let old = age_left.is_some_and(|left| left.is_zero());
            if folding.wanted.swap(false, Ordering::Relaxed) || asked || old {
                let settle = state.settle > state.served;
                return Reason::Fold { ticket: state.asked, settle };
            }
            state = match age_left {
                Some(left) => {
                    folding.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => folding.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn fold(&mut self, settle: bool) -> Result<(), StoreError> {
        if self.taken.is_some() {
            self.fold_taken(false)?;
        }
        if !settle && self.shared.overlay().fresh.is_empty() {
            return Ok(());
        }
        self.taken = Some(self.take(settle)?);
        self.fold_taken(settle)?;
        if settle {
            self.spare.take().map_or(Ok(()), Journal::delete)?;
            self.shared.tables().empty_log(&self.shared.counters);
        }
        Ok(())
    }

    /// Makes the fresh generation the one that is folded.
    fn take(&mut self, settle: bool) -> Result<Taken, StoreError> {
        let shared = &self.shared;
        // Without one the writer makes its own with the next batch.
        let new = || Journal::create(&shared.path, shared.options.busy_wait).ok();
        let next = if settle { None } else { self.spare.take().or_else(new) };
        let taken = shared.folding.rotation.ask(shared, next).map_err(|(error, next)| {
            self.spare = next;
            error
        })?;
        reach("rotated");
        Ok(taken)
    }

    fn fold_taken(&mut self, settle: bool) -> Result<(), StoreError> {
        let Some(taken) = &self.taken else { return Ok(()) };
        let (shared, generation) = (&self.shared, &taken.generation);
        if !generation.is_empty() {
            let folding = &shared.folding;
            let rows = || if folding.has_time() { UNHURRIED_ROWS } else { TRANSACTION_ROWS };
            into_tables(generation, &rows, &mut |rows| {
                let started = Instant::now();
                shared.write_tables(|connection| rows(connection))?;
                if folding.has_time() {
                    std::thread::sleep((started.elapsed() * UNHURRIED_REST).min(UNHURRIED_REST_MAX));
                }
                Ok(())
            })?;
            shared.tables().fold_log(&shared.counters)?;
            reach("folded");
        }
        shared.folding.folds.fetch_add(1, Ordering::Relaxed);
        shared.folding.rows.fetch_add(generation.rows() as u64, Ordering::Relaxed);
        let bytes = {
            let mut overlay = shared.overlay_mut();
            overlay.folding = None;
            overlay.fresh.bytes()
        };
        shared.folding.pace.set(bytes, shared.options.overlay_bytes_max);
        let Some(Taken { journal: Some(journal), .. }) = self.taken.take() else { return Ok(()) };
        if settle {
            journal.delete()?;
        } else if let Some(spare) = journal.empty()? {
            self.spare = Some(spare);
        }
        reach("emptied");
        Ok(())
    }
}

/// The thread; it ends when this is dropped, without folding what is left.
#[derive(Debug)]
pub(super) struct Folder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Folder {
    pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<Self> {
        let mut worker = Worker { shared: Arc::clone(shared), taken: None, spare: None };
        let thread = std::thread::Builder::new().name("store-fold".into()).spawn(move || {
            let _ends = Ends(Arc::clone(&worker.shared));
            worker.work();
        })?;
        Ok(Self { shared: Arc::clone(shared), thread: Some(thread) })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.shared.folding.state().stop = true;
        self.shared.folding.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // Its panic was reported by the hook when it happened; the journal is folded by whoever opens the store next.
            let _ = thread.join();
        }
    }
}

/// Tells those who wait that there is no thread any more, however it ended.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.folding.state().ended = true;
        self.0.folding.done.notify_all();
    }
}
