//! One file of the journal that is written to: each batch is one row, appended and synced.
//!
//! It is an SQLite file of its own beside the tables, `<store>.journal-<n>`, with one table. Its write-ahead log is the
//! journal in fact: rows are never flushed into the file itself, because they live for seconds; so each is written
//! once. Syncing a log that grows also writes the file system's own journal, which measured several times slower than writing
//! over bytes that are there. So the log is made longer ahead of its end, a large piece of zeros at a time, which SQLite
//! takes for no log at all; and a file whose batches are in the tables is emptied and used again instead of deleted.
//! SQLite's checkpoint empties the log: it reports whether any reader is left, and only then the log is written over.
//!
//! From its creation until it is deleted, a file has a log that is not empty, and the tables list it (`manifest`). So a
//! file or a log that is missing at a start was lost.
//!
//! Not here: reading rows back (`journal_rows`), what the bytes mean (`batch`), and when files change (`flush`).

use super::connect;
use super::fault;
use super::files::{self, Files, beside};
use super::identity;
use super::journal_rows::{self, Identity};
use super::log::{self, RESTART};
use super::migrate;
use super::plants::{Plant, is_planted};
use crate::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tally_disk::DiskFile;

/// What is appended at once to a log that has come to its end.
const EXTEND_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(4 << 20);

const PIECE: [u8; 4096] = [0; 4096];

/// What is used of a log is looked up again when it may have grown by so much: what a row may need is far more than it mostly takes.
const LOOK_BYTES: u64 = 4 << 20;

/// Pages that a row may change beside those that hold its bytes, at most.
const OTHER_PAGES: u64 = 12;

/// The header of a log. Without it SQLite reads nothing of the log.
const LOG_HEADER: [u8; 32] = [0; 32];

/// What a page takes in a log, and what a log takes at its beginning. The page size is set below.
const FRAME_BYTES: u64 = connect::PAGE_BYTES as u64 + 24;

/// How long readers of a file are waited for when it is to be used again.
const READERS_WAIT: Duration = Duration::from_millis(100);

/// Memory for pages: only the last few are looked at again.
const CACHE_BYTES: u64 = 1 << 20;

const TABLE: &str = "CREATE TABLE batches (
    no     INTEGER NOT NULL PRIMARY KEY,
    synced INTEGER NOT NULL, -- the last batch that was on the disk when this one was written
    digest BLOB NOT NULL,    -- of the journal, no, synced and body
    body   BLOB NOT NULL     -- rows by table, see the `batch` module of tally-store
) STRICT;
CREATE TABLE journal (
    store  BLOB NOT NULL,    -- the id of the store that it belongs to
    number INTEGER NOT NULL  -- its number there, never given twice
) STRICT;";
const IDENTITY: &str = "INSERT INTO journal (store, number) VALUES (?1, ?2)";
const APPEND: &str = "INSERT INTO batches (no, synced, digest, body) VALUES (?1, ?2, ?3, ?4)";
const EMPTY: &str = "DELETE FROM batches";

/// One file that is written to.
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
    /// At least what is used of the log, in bytes.
    used: u64,
    /// The same when it was looked up.
    looked: u64,
    /// How long the log is.
    length: u64,
}

impl Journal {
    /// Makes a new file beside the store: complete, or not there. The tables must list it before it takes a batch.
    pub(super) fn create(
        files: &Files,
        store: &Path,
        identity: Identity,
        busy_wait: Duration,
    ) -> Result<Self, StoreError> {
        let path = files::journal(store, identity.number);
        let unfinished = beside(&path, files::UNFINISHED);
        // A file of this number may have been made and not listed.
        delete(files, &path)?;
        files.remove(&unfinished)?;
        {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            let new = connect::open(&unfinished, flags, files.vfs())?;
            new.pragma_update(None, "page_size", connect::PAGE_BYTES)?;
            // It has its name when it is on the disk, so nothing in between has to be safe.
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
            looked: 0,
            length,
        })
    }

    /// Its connection, to look at its settings.
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Its number in the store.
    pub(super) fn number(&self) -> u32 {
        self.identity.number
    }

    /// Appends a batch that there is room for; synced, it is on the disk with all before it.
    pub(super) fn append(
        &mut self,
        no: u64,
        synced: u64,
        body: &[u8],
        syncs: bool,
    ) -> Result<(), StoreError> {
        self.set_syncs(syncs)?;
        let digest = journal_rows::digest(Some(&self.identity), no, synced, body);
        let mut statement = self.connection.prepare_cached(APPEND)?;
        statement.execute(params![no.cast_signed(), synced.cast_signed(), digest, body])?;
        Ok(())
    }

    fn set_syncs(&mut self, syncs: bool) -> Result<(), StoreError> {
        if self.syncs != syncs {
            self.connection.pragma_update(None, "synchronous", if syncs { "FULL" } else { "OFF" })?;
            self.syncs = syncs;
        }
        Ok(())
    }

    /// How many bytes of the log are used, about.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The log, for the thread that syncs what was appended without a sync.
    pub(super) fn log(&self) -> Arc<dyn DiskFile> {
        Arc::clone(&self.log_of_syncs)
    }

    /// Waits until everything appended is on the disk.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.log.sync().map_err(|error| fault::file("sync", &self.path, &error))
    }

    /// After a failure of the disk: brings every committed row into the file and voids the log, both synced. So the rows
    /// no longer depend on the sync that failed, and a row whose commit failed cannot come back.
    pub(super) fn mend(&mut self) -> Result<(), StoreError> {
        self.set_syncs(!is_planted(Plant::MendUnsynced))?;
        let log = log::checkpoint(&self.connection, RESTART)?;
        if log.busy || log.flushed < log.pages {
            let path = self.path.display();
            return Err(StoreError::Unavailable(format!(
                "a reader holds the log of `{path}`, which needs mending"
            )));
        }
        let voided = self.log.write_at(0, &LOG_HEADER);
        let voided =
            if is_planted(Plant::CutUnsynced) { voided } else { voided.and_then(|()| self.log.sync()) };
        voided.map_err(|error| fault::file("void the log of", &self.path, &error))?;
        (self.used, self.looked) = (0, 0);
        Ok(())
    }

    /// Forgets all batches and starts over; `false` where a reader keeps it from being used again.
    pub(super) fn empty(&mut self) -> Result<bool, StoreError> {
        self.set_syncs(true)?;
        self.connection.execute(EMPTY, [])?;
        // Without the empty pages a checkpoint has next to nothing to copy.
        self.connection.execute_batch("VACUUM")?;
        // A backup that reads the file keeps it.
        self.connection.busy_timeout(READERS_WAIT)?;
        let log = log::checkpoint(&self.connection, RESTART);
        self.connection.busy_timeout(self.busy_wait)?;
        let log = log?;
        (self.used, self.looked) = (0, 0);
        Ok(!log.busy && log.flushed == log.pages)
    }

    /// Closes it. Gives its path, for [`delete`] once the tables have forgotten it.
    pub(super) fn close(self) -> Box<Path> {
        self.path
    }

    /// Extends the log where a row of that length might pass its end. Where that fails, the log is as it was.
    pub(super) fn make_room(&mut self, row: usize) -> Result<(), StoreError> {
        let need = (row as u64 / u64::from(connect::PAGE_BYTES - 4) + OTHER_PAGES) * FRAME_BYTES;
        if self.used + need > self.length || self.used - self.looked > LOOK_BYTES {
            self.used = FRAME_BYTES * (1 + log::checkpoint(&self.connection, log::LOOK)?.pages);
            self.looked = self.used;
        }
        if self.used + need > self.length {
            let failed = |error| fault::file("extend", &self.path, &error);
            // Where SQLite went beyond what was foreseen, its bytes are not to be written over.
            let length = self.log.length().map_err(failed)?;
            let more = length.clamp(*EXTEND_BYTES.start(), *EXTEND_BYTES.end()).max(need);
            self.length = extend(&*self.log, length, more).map_err(failed)?;
        }
        self.used += need;
        Ok(())
    }
}

/// Appends zeros; gives the new length. Where that fails, the length is as it was.
fn extend(log: &dyn DiskFile, length: u64, more: u64) -> std::io::Result<u64> {
    // In pieces as small as those that will be written over it: of what was written at once some systems keep
    // account at once, and count megabytes for each page.
    let pieces = more.div_ceil(PIECE.len() as u64);
    let at = |piece: u64| length + piece * PIECE.len() as u64;
    if let Err(error) = (0..pieces).try_for_each(|piece| log.write_at(at(piece), &PIECE)) {
        // A disk that is full has better use for what did fit.
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
    // Its rows are never flushed into it, at its end neither.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Deletes a file that no connection has open. Its log goes first: without it the file is an empty journal.
pub(super) fn delete(files: &Files, path: &Path) -> Result<(), StoreError> {
    for name in [files::LOG, files::LOG_INDEX, ""] {
        files.remove(&beside(path, name))?;
    }
    Ok(())
}
