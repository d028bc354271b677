//! The connection that writes the tables, and the checkpoints of its log into the file.
//!
//! The tables are written in the background: by the flush, by expiry and purges, and when a value is stored. The same thread
//! makes a checkpoint when a fraction of the log's limit is waiting, so no request waits for one. A reader with an old
//! snapshot can keep the log from starting over. Past the limit the thread waits for that reader, briefly. The result of
//! every checkpoint is checked and counted.
//!
//! Not here: SQLite's automatic checkpoint, which is off, and the contents of the writes.

use super::Options;
use super::files::{self, Files};
use super::log::{self, NOOP, PASSIVE, RESTART, TRUNCATE};
use super::seeded_faults::{SeededFault, is_seeded};
use super::sync_failure::SyncFailure;
use crate::StoreError;
use crate::plan::BatchId;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A checkpoint begins when this fraction of the log's limit is waiting: little, because other syncs wait for its sync.
const CHECKPOINT_DIVISOR: u64 = 64;

/// How long a thread waits for readers when the log has grown past its limit.
const READERS_WAIT: Duration = Duration::from_millis(100);

/// The multiple of its limit that the log may reach while a reader keeps it from starting over. Past it the tables are not
/// written: changes wait in the journal, and when that has no room, writes are refused.
const HELD_TIMES: u64 = 16;

/// Counters for status and metrics.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// The length of the log when it was last read, in bytes.
    pub(super) log_bytes: AtomicU64,
    /// The number of checkpoints.
    pub(super) checkpoints: AtomicU64,
    /// The number of checkpoints that failed or were incomplete.
    pub(super) hindered: AtomicU64,
    /// The duration of the last checkpoint, in microseconds.
    pub(super) last_micros: AtomicU64,
    busy: AtomicU8,
    /// When the last of each of [`WORKS`] ended.
    ended: Mutex<[Option<Instant>; WORKS.len()]>,
}

const WRITES: u8 = 1;
const CHECKPOINTS: u8 = 2;

/// What uses the tables, with the name of each.
const WORKS: [(u8, &str); 2] = [(WRITES, "flush"), (CHECKPOINTS, "checkpoint")];

impl Counters {
    /// What uses the tables at this moment.
    pub(super) fn busy(&self) -> Option<&'static str> {
        let busy = self.busy.load(Ordering::Relaxed);
        WORKS.iter().find(|(work, _)| *work == busy).map(|(_, name)| *name)
    }

    /// What has used the tables at some moment since then.
    pub(super) fn worked_since(&self, since: Instant) -> Vec<&'static str> {
        // Read first: work that ends in between is then found by its end.
        let busy = self.busy();
        let ended = *self.ended();
        let worked = |(at, (_, name)): (usize, &(u8, &'static str))| {
            (busy == Some(*name) || ended[at].is_some_and(|ended| ended >= since)).then_some(*name)
        };
        WORKS.iter().enumerate().filter_map(worked).collect()
    }

    fn ended(&self) -> MutexGuard<'_, [Option<Instant>; WORKS.len()]> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn while_busy<T>(&self, with: u8, work: impl FnOnce() -> T) -> T {
        self.busy.store(with, Ordering::Relaxed);
        let done = work();
        if let Some(at) = WORKS.iter().position(|(work, _)| *work == with) {
            self.ended()[at] = Some(Instant::now());
        }
        self.busy.store(0, Ordering::Relaxed);
        done
    }
}

/// The connection that writes.
#[derive(Debug)]
pub(super) struct Tables {
    connection: Connection,
    files: Files,
    sync_failure: Arc<SyncFailure>,
    log: PathBuf,
    page_bytes: u64,
    log_bytes_max: u64,
    busy_wait: Duration,
}

impl Tables {
    pub(super) fn new(
        files: Files,
        path: &Path,
        connection: Connection,
        options: &Options,
    ) -> Result<Self, StoreError> {
        let sync_failure = Arc::new(SyncFailure::of(path));
        let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        Ok(Self {
            connection,
            files,
            sync_failure,
            log: files::beside(path, files::LOG),
            page_bytes: page_bytes.into(),
            log_bytes_max: options.wal_bytes_max,
            busy_wait: options.busy_wait,
        })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs one transaction, synced, and makes a checkpoint if needed.
    pub(super) fn write<T>(
        &mut self,
        counters: &Counters,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_log(counters)?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // An error drops the transaction, which rolls it back.
        let done = counters.while_busy(WRITES, || work(&transaction))?;
        if let Err(error) = counters.while_busy(WRITES, || transaction.commit()) {
            // A failed sync rolls the transaction back, but its pages may be complete at the end of the log. A start after a
            // crash would take them for committed. So the log is emptied, or the commit is in doubt.
            let of_disk = [Some(ErrorCode::SystemIoFailure), Some(ErrorCode::DiskFull)];
            if of_disk.contains(&error.sqlite_error_code()) && !self.empty_log(counters) {
                let batch = BatchId::default();
                return Err(StoreError::InDoubt { batch, why: error.to_string() });
            }
            return Err(error.into());
        }
        self.after_commit(counters);
        Ok(done)
    }

    /// Flushes what can be flushed now. An error is one of the disk; a blocking reader is none.
    pub(super) fn flush_log(&self, counters: &Counters) -> Result<(), StoreError> {
        self.checkpoint(counters, PASSIVE).map(drop)
    }

    /// Flushes everything and empties the log file, synced. Returns whether it succeeded.
    pub(super) fn empty_log(&self, counters: &Counters) -> bool {
        // SQLite syncs the flushed pages but not the length of the log, so a power cut could bring the log back.
        let emptied = self.checkpoint(counters, TRUNCATE).is_ok_and(|log| !log.busy)
            && (is_seeded(SeededFault::CutUnsynced) || self.files.sync(&self.log).is_ok());
        self.keep_log(!emptied);
        emptied
    }

    /// Sets whether closing the connection keeps the log. By default SQLite flushes and removes it then. A log that may hold
    /// rows that are not on the disk is kept: half of them in the file would be worse than none.
    fn keep_log(&self, keep: bool) {
        if keep {
            self.sync_failure.mark();
        }
        // Only a wrong argument could fail.
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep);
    }

    /// The sync-failure marker of this store, for other code that syncs.
    pub(super) fn sync_failure(&self) -> Arc<SyncFailure> {
        Arc::clone(&self.sync_failure)
    }

    /// For a start: flushes the log of a killed process, and begins a new one. After a failed sync such a log may be
    /// readable and not on the disk, and so would be everything appended to it. A blocking reader (a backup) is no error:
    /// the contents of the log are in the file then, synced.
    pub(super) fn begin_log(&self) -> Result<(), StoreError> {
        let begun = log::checkpoint(&self.connection, TRUNCATE).and_then(|log| match log.busy {
            true => Ok(()),
            false => self.files.sync(&self.log),
        });
        self.keep_log(begun.is_err());
        begun
    }

    /// Refuses to write while a reader keeps the log many times longer than its limit.
    fn check_log(&self, counters: &Counters) -> Result<(), StoreError> {
        let bytes = counters.log_bytes.load(Ordering::Relaxed);
        if bytes > self.log_bytes_max * HELD_TIMES && !self.restart_log(counters) {
            let mib = bytes >> 20;
            return Err(StoreError::Unavailable(format!(
                "a reader (a backup, a shell) holds the write-ahead log of the tables, which has {mib} MiB: end it"
            )));
        }
        Ok(())
    }

    /// Never fails: the transaction is committed, and what cannot be flushed now is flushed later.
    fn after_commit(&self, counters: &Counters) {
        let Some(log) = self.log_state(counters) else { return };
        if log.pages * self.page_bytes > self.log_bytes_max {
            self.restart_log(counters);
        } else if (log.pages - log.flushed) * self.page_bytes >= self.log_bytes_max / CHECKPOINT_DIVISOR {
            let _counted = self.checkpoint(counters, PASSIVE);
        }
    }

    fn log_state(&self, counters: &Counters) -> Option<log::Log> {
        let Ok(log) = log::checkpoint(&self.connection, NOOP) else {
            counters.hindered.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        counters.log_bytes.store(log.pages * self.page_bytes, Ordering::Relaxed);
        Some(log)
    }

    /// Lets the next write start the log over. Returns whether it will. Waits for blocking readers, but briefly: a backup
    /// may read for minutes.
    fn restart_log(&self, counters: &Counters) -> bool {
        let _unchanged = self.connection.busy_timeout(READERS_WAIT);
        let done = self.checkpoint(counters, RESTART);
        let _unchanged = self.connection.busy_timeout(self.busy_wait);
        done.is_ok_and(|log| !log.busy && log.flushed == log.pages)
    }

    fn checkpoint(&self, counters: &Counters, how: &str) -> Result<log::Log, StoreError> {
        let started = Instant::now();
        let done = counters.while_busy(CHECKPOINTS, || log::checkpoint(&self.connection, how));
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        counters.last_micros.store(micros, Ordering::Relaxed);
        match &done {
            Ok(log) if !log.busy && log.flushed == log.pages => {
                counters.checkpoints.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                counters.hindered.fetch_add(1, Ordering::Relaxed);
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_known_while_it_runs_and_by_its_end() {
        let counters = Counters::default();
        let before = Instant::now();
        assert!(counters.worked_since(before).is_empty());
        counters.while_busy(WRITES, || assert_eq!(counters.worked_since(Instant::now()), ["flush"]));
        counters.while_busy(CHECKPOINTS, || ());
        assert_eq!(counters.worked_since(before), ["flush", "checkpoint"]);
        let after = Instant::now() + Duration::from_secs(1);
        assert!(counters.worked_since(after).is_empty());
    }
}
