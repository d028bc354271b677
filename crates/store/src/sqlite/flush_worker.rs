//! The flush worker: takes the memtable, flushes it, and empties or deletes its journal file.
//!
//! A store has one worker: a dedicated thread, or the caller's thread in a store without threads (see `Background`). Not
//! here: when it works (`flush`), and the rotation to another file (`rotation`).

use super::crash_points::reach;
use super::flush::{TRANSACTION_ROWS, into_tables};
use super::follow::Followed;
use super::journal::{self, Journal};
use super::manifest;
use super::options::Background;
use super::rotation::RotatedMemtable;
use super::seeded_faults::{SeededFault, is_seeded};
use super::state::Shared;
use crate::StoreError;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of rows in one transaction of an unhurried flush. A sync of the journal waits for the sync of such a commit.
const UNHURRIED_ROWS: usize = 250;

/// The rest after such a transaction, as a multiple of its duration: most of the disk is for the journal.
const UNHURRIED_REST: u32 = 4;

/// The longest such rest.
const UNHURRIED_REST_MAX: Duration = Duration::from_millis(50);

/// The number of files that cannot be emptied or deleted now at which no more memtable is flushed.
const SPENT_MAX: usize = 2;

/// The private state of the flush.
#[derive(Debug, Default)]
pub(super) struct Worker {
    /// A memtable whose flush has not succeeded yet.
    taken: Option<RotatedMemtable>,
    /// An emptied file for reuse.
    spare: Option<Journal>,
    /// Files whose batches are in the tables, to be emptied or deleted.
    spent: Vec<Journal>,
    /// Files that the manifest does not list any more, to be deleted.
    forgotten: Vec<Box<Path>>,
}

/// Why the worker wakes.
pub(super) enum Reason {
    Flush { ticket: u64, settle: bool },
    Stop,
}

impl Worker {
    fn work(&mut self, shared: &Shared) {
        while let Reason::Flush { ticket, settle } = shared.flushing.next(shared) {
            let started = Instant::now();
            let done = self.flush(shared, settle);
            shared.flushing.ended(ticket, started, done);
        }
    }

    /// Flushes everything written so far; `settle` removes all journal files.
    pub(super) fn flush(&mut self, shared: &Shared, settle: bool) -> Result<(), StoreError> {
        self.flush_taken(shared)?;
        let cleared = self.clear(shared, false);
        if self.spent.len() + self.forgotten.len() >= SPENT_MAX {
            return cleared;
        }
        if settle || !shared.memtables().active.is_empty() {
            self.taken = Some(self.take(shared, settle)?);
            self.flush_taken(shared)?;
        }
        if settle {
            self.spent.extend(self.spare.take());
        }
        self.clear(shared, settle)?;
        if settle {
            // Files are created under this lock, so an unlisted file was left by a failure.
            let tables = shared.tables();
            manifest::remove_unlisted(tables.connection(), &shared.files, &shared.path)?;
            tables.empty_log(&shared.counters);
        }
        Ok(())
    }

    /// Makes the active memtable the immutable one.
    fn take(&mut self, shared: &Shared, settle: bool) -> Result<RotatedMemtable, StoreError> {
        let next = match settle {
            true => None,
            false => Some(self.spare.take().map_or_else(|| manifest::create(shared), Ok)?),
        };
        let taken = shared.flushing.rotation.request(shared, next).map_err(|failed| {
            let (error, next) = *failed;
            self.spare = next;
            error
        })?;
        reach("rotated");
        Ok(taken)
    }

    fn flush_taken(&mut self, shared: &Shared) -> Result<(), StoreError> {
        let Some(taken) = &self.taken else { return Ok(()) };
        let (flushing, memtable) = (&shared.flushing, &taken.memtable);
        if !memtable.is_empty() {
            let has_time = || shared.options.background == Background::Threads && flushing.has_time();
            let rows = || if has_time() { UNHURRIED_ROWS } else { TRANSACTION_ROWS };
            into_tables(memtable, &rows, &mut |rows| {
                let started = Instant::now();
                shared.write_tables(|connection| rows(connection))?;
                if has_time() {
                    std::thread::sleep((started.elapsed() * UNHURRIED_REST).min(UNHURRIED_REST_MAX));
                }
                Ok(())
            })?;
            shared.tables().flush_log(&shared.counters)?;
            reach("flushed");
        }
        flushing.flushes.fetch_add(1, Ordering::Relaxed);
        flushing.rows.fetch_add(memtable.rows() as u64, Ordering::Relaxed);
        let bytes = {
            let mut memtables = shared.memtables_mut();
            memtables.flushing = None;
            memtables.active.bytes()
        };
        flushing.stall.set(bytes, shared.options.memtable_bytes_max);
        self.spent.extend(self.taken.take().and_then(|taken| taken.journal));
        Ok(())
    }

    /// Empties a file whose batches are in the tables and keeps it for reuse; deletes the others. A file that cannot be
    /// emptied or deleted stays and is tried again.
    fn clear(&mut self, shared: &Shared, settle: bool) -> Result<(), StoreError> {
        while let Some(journal) = self.spent.last_mut() {
            let number = journal.number();
            // A process that follows has the file open, and reads it after its deletion.
            let wanted = !settle && self.spare.is_none() && !Followed::is_marked(&shared.path);
            let emptied = if wanted { journal.empty() } else { Ok(false) };
            if is_seeded(SeededFault::FlushedForgotten) && emptied.is_err() {
                self.spent.pop();
                return Ok(());
            }
            if emptied? {
                self.spare = self.spent.pop();
            } else {
                manifest::forget(&mut shared.tables(), &shared.counters, |other| other != number)?;
                self.forgotten.extend(self.spent.pop().map(Journal::close));
            }
            reach("emptied");
        }
        while let Some(path) = self.forgotten.last() {
            journal::delete(&shared.files, path)?;
            self.forgotten.pop();
        }
        Ok(())
    }
}

/// The flush thread. It ends when this is dropped, without flushing the rest.
#[derive(Debug)]
pub(super) struct FlushThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl FlushThread {
    pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<Self> {
        let thread = match shared.options.background {
            Background::ByHand => None,
            Background::Threads => {
                let of_thread = Ends(Arc::clone(shared));
                let work = move || Worker::default().work(&of_thread.0);
                Some(std::thread::Builder::new().name("store-flush".into()).spawn(work)?)
            }
        };
        Ok(Self { shared: Arc::clone(shared), thread })
    }
}

impl Drop for FlushThread {
    fn drop(&mut self) {
        self.shared.flushing.state().stop = true;
        self.shared.flushing.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported its panic; the next start flushes the journal.
            let _ = thread.join();
        }
    }
}

/// Tells waiting callers that the thread has ended, even by a panic.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.flushing.state().ended = true;
        self.0.flushing.done.notify_all();
    }
}
