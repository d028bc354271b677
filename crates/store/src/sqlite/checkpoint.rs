//! Folds the write-ahead log into the file, mostly without making the writer wait.
//!
//! A commit appends to the log; SQLite starts the log over when all of it was folded. Folding by the writer would put
//! tens of milliseconds into some commits, so a thread folds whenever a quarter of the bound is waiting. But while that
//! thread folds the writer appends, and a busy writer's log would never be wholly folded and never start over. So past
//! half the bound the thread folds until it has left only a little, and the writer folds that little itself; past the
//! whole bound it folds whatever there is. Only a reader that holds an old snapshot can make the log longer than that; the result of every fold is looked
//! at, and `gauges` tell.
//!
//! Not here: SQLite's automatic checkpoint, which is off.

use super::connect;
use crate::StoreError;
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The thread folds when so much of the bound is waiting.
const START_PART: u64 = 4;

/// The writer folds the rest itself when it is at most so much of what the thread starts at.
const FINISH_PART: u64 = 32;

/// How long the thread rests when it could fold nothing: a reader is in the way, or the disk is.
const REST: Duration = Duration::from_millis(50);

/// How long the writer, past the bound, waits for readers to leave the log.
const READERS_WAIT: Duration = Duration::from_millis(100);

const LOOK: &str = "PRAGMA wal_checkpoint(NOOP)";
const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// What SQLite says of the log, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Log {
    /// Whether the checkpoint was kept from doing all that it should.
    busy: bool,
    /// Pages in it.
    pages: u64,
    /// Pages of it that are folded.
    folded: u64,
}

/// Numbers for status and metrics.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Bytes of the log when it was last looked at.
    pub(super) log_bytes: AtomicU64,
    /// Folds by the thread.
    pub(super) by_thread: AtomicU64,
    /// Short folds by the writer, after the thread.
    pub(super) by_writer: AtomicU64,
    /// Folds by the writer because the log was past its bound: the writer waited.
    pub(super) forced: AtomicU64,
    /// Folds that failed or were kept from folding everything they should.
    pub(super) hindered: AtomicU64,
    /// How long the last fold of the thread took, in microseconds.
    pub(super) last_micros: AtomicU64,
}

/// The thread, its connection and the policy.
#[derive(Debug)]
pub(super) struct Checkpoints {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    /// Whoever folds holds it: SQLite answers a second folder with "busy" instead of letting it wait.
    connection: Mutex<Connection>,
    counters: Counters,
    wanted: Mutex<bool>,
    wake: Condvar,
    stop: AtomicBool,
    page_bytes: u64,
    bytes_max: u64,
}

impl Checkpoints {
    /// Starts the thread for a store whose log should not pass `bytes_max`.
    pub(super) fn start(path: &Path, page_bytes: u64, bytes_max: u64) -> Result<Self, StoreError> {
        let connection = connect::folder(path, READERS_WAIT)?;
        let shared = Arc::new(Shared {
            connection: Mutex::new(connection),
            counters: Counters::default(),
            wanted: Mutex::new(false),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
            page_bytes,
            bytes_max,
        });
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".into())
            .spawn(move || for_thread.work())
            .map_err(|error| StoreError::Away(format!("start the checkpoint thread: {error}")))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Looks at the log after a commit, while the caller still keeps other writers out. Never fails: the transaction is
    /// done, and what could not be folded now is folded later.
    pub(super) fn after_commit(&self, writer: &Connection) {
        let Ok(log) = ask(writer, LOOK) else {
            self.shared.counters.hindered.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let bytes = log.pages * self.shared.page_bytes;
        self.shared.counters.log_bytes.store(bytes, Ordering::Relaxed);
        let start = self.shared.bytes_max / START_PART;
        let waiting = (log.pages - log.folded) * self.shared.page_bytes;
        let should_start_over = bytes >= self.shared.bytes_max / 2;
        if waiting == 0 || (waiting < start && !should_start_over) {
            return;
        }
        if bytes > self.shared.bytes_max {
            self.shared.counters.forced.fetch_add(1, Ordering::Relaxed);
            self.shared.fold(&lock(&self.shared.connection), RESTART);
        } else if should_start_over
            && waiting <= start / FINISH_PART
            && let Ok(connection) = self.shared.connection.try_lock()
        {
            self.shared.counters.by_writer.fetch_add(1, Ordering::Relaxed);
            self.shared.fold(&connection, PASSIVE);
        } else {
            *lock(&self.shared.wanted) = true;
            self.shared.wake.notify_one();
        }
    }

    /// Folds everything and empties the log file, while the caller keeps other writers out; whether it succeeded.
    pub(super) fn empty_log(&self) -> bool {
        self.shared.fold(&lock(&self.shared.connection), TRUNCATE).is_some_and(|log| !log.busy)
    }

    /// Numbers for status and metrics.
    pub(super) fn counters(&self) -> &Counters {
        &self.shared.counters
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        *lock(&self.shared.wanted) = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // Its panic was reported by the hook when it happened; the log is folded by whoever opens the file next.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let mut wanted = lock(&self.wanted);
            while !*wanted {
                wanted = self.wake.wait(wanted).unwrap_or_else(PoisonError::into_inner);
            }
            *wanted = false;
            drop(wanted);
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            if !self.fold_what_waits() {
                std::thread::sleep(REST);
            }
        }
    }

    /// Whether there was something to fold and it could be folded.
    fn fold_what_waits(&self) -> bool {
        let connection = lock(&self.connection);
        let Ok(before) = ask(&connection, LOOK) else { return false };
        let started = Instant::now();
        let Some(after) = self.fold(&connection, PASSIVE) else { return false };
        self.counters.by_thread.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counters.last_micros.store(micros, Ordering::Relaxed);
        after.folded > before.folded || after.pages < before.pages
    }

    fn fold(&self, connection: &Connection, how: &str) -> Option<Log> {
        let log = ask(connection, how).ok();
        if log.is_none_or(|log| log.busy) {
            self.counters.hindered.fetch_add(1, Ordering::Relaxed);
        }
        log
    }
}

fn ask(connection: &Connection, how: &str) -> Result<Log, StoreError> {
    let log = connection.prepare_cached(how)?.query_row([], |row| {
        let pages = |column: usize| -> rusqlite::Result<u64> {
            // Minus one where there is no log yet.
            Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
        };
        Ok(Log { busy: row.get::<_, i64>(0)? != 0, pages: pages(1)?, folded: pages(2)? })
    })?;
    Ok(Log { folded: log.folded.min(log.pages), ..log })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is sound between any two statements, also after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
