//! A journal file that is written: each batch is one row, appended and synced.
//!
//! It is a separate SQLite file beside the tables, `<store>.journal-<n>`, with one table. Its write-ahead log is the real
//! journal. Rows are never flushed into the file itself, because they live for seconds; so each is written once.
//!
//! Syncing a log that grows also writes the file system's own journal, which measured several times slower than overwriting
//! existing bytes. So the log is extended ahead of its end, a large piece of zeros at a time, which SQLite does not read as
//! a log. A file whose batches are in the tables is emptied and reused instead of deleted. SQLite's checkpoint empties the
//! log: it reports whether any reader is left, and only then the log is overwritten.
//!
//! From its creation until its deletion, a file has a non-empty log, and the tables list it (`manifest`). So a file or a log
//! that is missing at a start was lost.
//!
//! Not here: reading rows back (`journal_rows`), the meaning of the bytes (`batch`), and rotation (`flush`).

use super::connect;
use super::fault;
use super::files::{self, Files, beside};
use super::identity;
use super::journal_rows::{self, Identity};
use super::log::{self, RESTART};
use super::migrate;
use super::seeded_faults::{SeededFault, is_seeded};
use crate::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tally_disk::DiskFile;
use tally_rules::Micros;

/// The number of bytes by which a full log is extended.
const EXTEND_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(4 << 20);

const PIECE: [u8; 4096] = [0; 4096];

/// The used length of a log is read again after this many reserved bytes: the reserve for a row is far more than it usually
/// takes.
const CHECK_BYTES: u64 = 4 << 20;

/// The maximum number of pages that a row may change beside those that hold its bytes.
const OTHER_PAGES: u64 = 12;

/// The header of a log. Without it SQLite reads nothing of the log.
const LOG_HEADER: [u8; 32] = [0; 32];

/// The size of a page in a log, which is more than the log takes at its beginning. The page size is set below.
const FRAME_BYTES: u64 = connect::PAGE_BYTES as u64 + 24;

/// How long a reuse of a file waits for its readers.
const READERS_WAIT: Duration = Duration::from_millis(100);

/// Memory for pages: only the last few are read again.
const CACHE_BYTES: u64 = 1 << 20;

const TABLE: &str = "CREATE TABLE batches (
    no     INTEGER NOT NULL PRIMARY KEY,
    synced INTEGER NOT NULL, -- the last batch that was on the disk when this one was written
    digest BLOB NOT NULL,    -- of the journal, no, synced and body
    body   BLOB NOT NULL,    -- rows by table, see the `batch` module of tally-store
    at     INTEGER           -- when it was written, in microseconds; not in the digest, which older versions check
) STRICT;
CREATE TABLE journal (
    store  BLOB NOT NULL,    -- the id of the store that it belongs to
    number INTEGER NOT NULL  -- its number there, never given twice
) STRICT;";
const IDENTITY: &str = "INSERT INTO journal (store, number) VALUES (?1, ?2)";
const APPEND: &str = "INSERT INTO batches (no, synced, digest, body, at) VALUES (?1, ?2, ?3, ?4, ?5)";
const EMPTY: &str = "DELETE FROM batches";

/// One file that is written.
#[derive(Debug)]
pub(super) struct Journal {
    connection: Connection,
    path: Box<Path>,
    identity: Identity,
    busy_wait: Duration,
    log: Arc<dyn DiskFile>,
    /// For the thread that syncs: Linux reports a failed write-back once per descriptor, and both must get it.
    log_of_syncs: Arc<dyn DiskFile>,
    syncs: bool,
    /// An upper bound of the used bytes of the log.
    used: u64,
    /// The same when the log was last read.
    checked: u64,
    /// The length of the log.
    length: u64,
}

impl Journal {
    /// Creates a new file beside the store: complete, or not at all. The tables must list it before it takes a batch.
    pub(super) fn create(
        files: &Files,
        store: &Path,
        identity: Identity,
        busy_wait: Duration,
    ) -> Result<Self, StoreError> {
        let path = files::journal(store, identity.number);
        let unfinished = beside(&path, files::UNFINISHED);
        // A file of this number may have been created and not listed.
        delete(files, &path)?;
        files.remove(&unfinished)?;
        {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            let new = connect::open(&unfinished, flags, files.vfs())?;
            new.pragma_update(None, "page_size", connect::PAGE_BYTES)?;
            // The file gets its name after a sync, so intermediate writes need none.
            new.pragma_update(None, "synchronous", "OFF")?;
            new.pragma_update(None, "application_id", identity::JOURNAL_ID)?;
            new.pragma_update(None, "user_version", migrate::version(migrate::MIGRATIONS))?;
            new.execute_batch(TABLE)?;
            new.execute(IDENTITY, params![identity.store, identity.number])?;
            connect::set_log_ahead(&new)?;
            new.close().map_err(|(_, error)| error)?;
        }
        files.sync(&unfinished)?;
        let log_path = beside(&path, files::LOG);
        let log = files.create(&log_path)?;
        let length =
            extend(&*log, 0, *EXTEND_BYTES.start()).map_err(|error| fault::file("extend", &path, &error))?;
        log.sync().map_err(|error| fault::file("sync", &path, &error))?;
        let log_of_syncs = files.open(&log_path)?;
        files.rename(&unfinished, &path)?;
        files.sync_folder(&path)?;
        let connection = open(files, &path, busy_wait)?;
        Ok(Self {
            connection,
            path: path.into(),
            identity,
            busy_wait,
            log,
            log_of_syncs,
            syncs: true,
            used: 0,
            checked: 0,
            length,
        })
    }

    /// The connection, to check its settings.
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The number of the file in the store.
    pub(super) fn number(&self) -> u32 {
        self.identity.number
    }

    /// Appends a batch that there is room for. A synced one is on the disk, with all before it.
    pub(super) fn append(
        &mut self,
        (no, at): (u64, Micros),
        synced: u64,
        body: &[u8],
        syncs: bool,
    ) -> Result<(), StoreError> {
        self.set_syncs(syncs)?;
        let digest = journal_rows::digest(Some(&self.identity), no, synced, body);
        let mut statement = self.connection.prepare_cached(APPEND)?;
        statement.execute(params![no.cast_signed(), synced.cast_signed(), digest, body, at.0])?;
        Ok(())
    }

    fn set_syncs(&mut self, syncs: bool) -> Result<(), StoreError> {
        if self.syncs != syncs {
            self.connection.pragma_update(None, "synchronous", if syncs { "FULL" } else { "OFF" })?;
            self.syncs = syncs;
        }
        Ok(())
    }

    /// The approximate number of used bytes of the log.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The log, for the thread that syncs asynchronous commits.
    pub(super) fn log(&self) -> Arc<dyn DiskFile> {
        Arc::clone(&self.log_of_syncs)
    }

    /// Waits until everything appended is on the disk.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.log.sync().map_err(|error| fault::file("sync", &self.path, &error))
    }

    /// Repairs the journal after a disk error: brings every committed row into the file and voids the log, both synced. So
    /// the rows do not depend on the failed sync any more, and a row whose commit failed cannot come back.
    pub(super) fn repair(&mut self) -> Result<(), StoreError> {
        self.set_syncs(!is_seeded(SeededFault::RewriteUnsynced))?;
        let log = log::checkpoint(&self.connection, RESTART)?;
        if log.busy || log.flushed < log.pages {
            let path = self.path.display();
            return Err(StoreError::Unavailable(format!(
                "a reader holds the log of `{path}`, which needs a repair"
            )));
        }
        let voided = self.log.write_at(0, &LOG_HEADER);
        let voided =
            if is_seeded(SeededFault::CutUnsynced) { voided } else { voided.and_then(|()| self.log.sync()) };
        voided.map_err(|error| fault::file("void the log of", &self.path, &error))?;
        (self.used, self.checked) = (0, 0);
        Ok(())
    }

    /// Deletes all batches and starts over; `false` if a reader prevents a reuse.
    pub(super) fn empty(&mut self) -> Result<bool, StoreError> {
        self.set_syncs(true)?;
        self.connection.execute(EMPTY, [])?;
        // Without the empty pages a checkpoint has almost nothing to copy.
        self.connection.execute_batch("VACUUM")?;
        // A backup that reads the file keeps it.
        self.connection.busy_timeout(READERS_WAIT)?;
        let log = log::checkpoint(&self.connection, RESTART);
        self.connection.busy_timeout(self.busy_wait)?;
        let log = log?;
        (self.used, self.checked) = (0, 0);
        Ok(!log.busy && log.flushed == log.pages)
    }

    /// Closes the file. Returns its path, for [`delete`] after the tables have removed it from the list.
    pub(super) fn close(self) -> Box<Path> {
        self.path
    }

    /// Extends the log if a row of that length might pass its end. After a failure, the log is unchanged.
    pub(super) fn make_room(&mut self, row: usize) -> Result<(), StoreError> {
        let need = (row as u64 / u64::from(connect::PAGE_BYTES - 4) + OTHER_PAGES) * FRAME_BYTES;
        if self.used + need > self.length || self.used - self.checked > CHECK_BYTES {
            self.used = FRAME_BYTES * (1 + log::checkpoint(&self.connection, log::NOOP)?.pages);
            self.checked = self.used;
        }
        if self.used + need > self.length {
            let failed = |error| fault::file("extend", &self.path, &error);
            // SQLite may have written more than was reserved. Its bytes must not be overwritten.
            let length = self.log.length().map_err(failed)?;
            let more = length.clamp(*EXTEND_BYTES.start(), *EXTEND_BYTES.end()).max(need);
            self.length = extend(&*self.log, length, more).map_err(failed)?;
        }
        self.used += need;
        Ok(())
    }
}

/// Appends zeros and returns the new length. After a failure, the length is unchanged.
fn extend(log: &dyn DiskFile, length: u64, more: u64) -> std::io::Result<u64> {
    // The pieces are as small as the later writes: some systems keep account of a large write as a whole, and then count
    // megabytes for each page.
    let pieces = more.div_ceil(PIECE.len() as u64);
    let at = |piece: u64| length + piece * PIECE.len() as u64;
    if let Err(error) = (0..pieces).try_for_each(|piece| log.write_at(at(piece), &PIECE)) {
        // A full disk needs the bytes that did fit.
        log.set_len(length)?;
        return Err(error);
    }
    Ok(at(pieces))
}

/// Opens a file for appending, or for reading its rows: SQLite writes a file beside it for both.
pub(super) fn open(files: &Files, path: &Path, busy_wait: Duration) -> Result<Connection, StoreError> {
    let connection = connect::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, files.vfs())?;
    connection.busy_timeout(busy_wait)?;
    connect::durable(&connection)?;
    connect::set_cache(&connection, CACHE_BYTES)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // Rows are never flushed into the file, not even when it closes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Deletes a file that no connection has open. Its log is deleted first: without it the file is an empty journal.
pub(super) fn delete(files: &Files, path: &Path) -> Result<(), StoreError> {
    for name in [files::LOG, files::LOG_INDEX, ""] {
        files.remove(&beside(path, name))?;
    }
    Ok(())
}
