//! Connections and their settings: the one that writes the tables, those of readers, and those of the journal.
//!
//! All settings that make a commit durable are made here, and a test reads them back.

use super::Options;
use super::files::Files;
use crate::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// More than the number of statements.
const STATEMENTS: usize = 64;

/// The page size of a new file. A random row dirties one page, and a whole page is written: 8192 measured slower at every
/// size of batch, 2048 no faster, with a deeper tree.
pub(super) const PAGE_BYTES: u32 = 4096;

/// Opens the connection that writes, not yet in write-ahead mode: see [`log_ahead`].
pub(super) fn writer(files: &Files, path: &Path, options: &Options) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open(path, flags, files.vfs())?;
    connection.busy_timeout(options.busy_wait)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    durable(&connection)?;
    set_cache(&connection, options.flush_cache_bytes)?;
    Ok(connection)
}

/// Turns the write-ahead log on.
pub(super) fn log_ahead(connection: &Connection, options: &Options) -> Result<(), StoreError> {
    set_log_ahead(connection)?;
    // See `tables`.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // A log that grew past its limit gives the space back when it starts over.
    let limit = i64::try_from(options.wal_bytes_max).unwrap_or(i64::MAX);
    connection.pragma_update(None, "journal_size_limit", limit)?;
    Ok(())
}

/// Sets the write-ahead mode in the file.
pub(super) fn set_log_ahead(connection: &Connection) -> Result<(), StoreError> {
    let mode = journal_mode(connection, "WAL")?;
    if mode != "wal" {
        return Err(StoreError::Unavailable(format!(
            "the file system does not allow a write-ahead log (mode {mode})"
        )));
    }
    Ok(())
}

/// Sets the journal mode and returns the new one. SQLite returns the row before it commits the change, so the statement runs
/// to its end: only there an error of the commit is seen.
pub(super) fn journal_mode(connection: &Connection, mode: &str) -> Result<String, StoreError> {
    let mut statement = connection.prepare(&format!("PRAGMA journal_mode = {mode}"))?;
    let mut rows = statement.query([])?;
    let mut now = String::new();
    while let Some(row) = rows.next()? {
        now = row.get(0)?;
    }
    Ok(now)
}

/// Opens a read-only connection.
pub(super) fn reader(
    files: &Files,
    path: &Path,
    options: &Options,
    cache_bytes: u64,
) -> Result<Connection, StoreError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, files.vfs())?;
    connection.busy_timeout(options.busy_wait)?;
    set_cache(&connection, cache_bytes)?;
    Ok(connection)
}

/// A pool of read-only connections, lent one at a time.
#[derive(Debug)]
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
}

/// A lent connection. It returns to the pool when it is dropped.
pub(super) struct Lent<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Readers {
    /// Opens all connections, so that an unreadable file is found at the start.
    pub(super) fn open(files: &Files, path: &Path, options: &Options) -> Result<Self, StoreError> {
        let mut idle = Vec::new();
        for _ in 0..options.readers.max(1) {
            idle.push(reader(files, path, options, options.reader_cache_bytes)?);
        }
        Ok(Self { idle: Mutex::new(idle), returned: Condvar::new() })
    }

    /// Lends a connection, and waits until one is idle.
    pub(super) fn lend(&self) -> Lent<'_> {
        let mut idle = self.idle();
        loop {
            if let Some(connection) = idle.pop() {
                return Lent { readers: self, connection: Some(connection) };
            }
            idle = self.returned.wait(idle).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::ops::Deref for Lent<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("lent until dropped")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.readers.idle().extend(self.connection.take());
        self.readers.returned.notify_one();
    }
}

/// Opens a connection with the settings of all; `vfs` is that of the disk, see [`Files`].
pub(super) fn open(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> Result<Connection, StoreError> {
    // Only one thread uses a connection at a time: a mutex holds it, or it is lent by value.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // A schema that is not ours is corrupt, and must not run functions.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// A commit returns when it is on the disk; on macOS that needs an extra call.
pub(super) fn durable(connection: &Connection) -> Result<(), StoreError> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(())
}

/// Sets the memory for pages.
pub(super) fn set_cache(connection: &Connection, bytes: u64) -> Result<(), StoreError> {
    let kibibytes = i64::try_from(bytes / 1024).unwrap_or(i64::MAX).max(64);
    // Negative: in KiB instead of pages.
    connection.pragma_update(None, "cache_size", -kibibytes)?;
    Ok(())
}
