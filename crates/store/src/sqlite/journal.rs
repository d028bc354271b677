//! One file of the journal: each batch is one row, appended and synced.
//!
//! It is an SQLite file of its own beside the tables, `<store>.journal-<n>`, with one table. Its write-ahead log is the
//! journal in fact: rows are never folded into the file itself, because they live for seconds; so each is written
//! once. Syncing a log that grows also writes the file system's own journal, which measured several times slower than writing
//! over bytes that are there. So the log is made longer ahead of its end, a large piece of zeros at a time, which SQLite
//! takes for no log at all; and a file whose batches are in the tables is emptied and used again instead of deleted.
//! Emptying it is left to SQLite, whose checkpoint says whether nobody reads it any more; only then it is written over.
//!
//! A row carries its batch's number, the number of the last batch that was synced when it was written, and a digest of
//! these and of its bytes. Not here: what the bytes mean (`batch`), and when files change (`fold`).

use super::connect;
use super::fault;
use super::files::{self, beside};
use super::identity;
use super::log::{self, RESTART, TRUNCATE};
use super::migrate;
use crate::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What is appended at once to a log that has come to its end.
const EXTEND_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(4 << 20);

const PIECE: [u8; 4096] = [0; 4096];

/// What is used of a log is looked up again when it may have grown by so much: what a row may need is far more than it mostly takes.
const LOOK_BYTES: u64 = 4 << 20;

/// Pages that a row may change beside those that hold its bytes, at most.
const OTHER_PAGES: u64 = 12;

/// What a page takes in a log, and what a log takes at its beginning. The page size is set below.
const FRAME_BYTES: u64 = connect::PAGE_BYTES as u64 + 24;

/// How long readers of a file are waited for when it is to be used again.
const READERS_WAIT: Duration = Duration::from_millis(100);

/// Memory for pages: only the last few are looked at again.
const CACHE_BYTES: u64 = 1 << 20;

const TABLE: &str = "CREATE TABLE batches (
    no     INTEGER NOT NULL PRIMARY KEY,
    synced INTEGER NOT NULL, -- the last batch that was on the disk when this one was written
    digest BLOB NOT NULL,    -- of no, synced and body
    body   BLOB NOT NULL     -- rows by table, see the `batch` module of tally-store
) STRICT;";
const APPEND: &str = "INSERT INTO batches (no, synced, digest, body) VALUES (?1, ?2, ?3, ?4)";
const AFTER: &str = "SELECT no, synced, digest, body FROM batches WHERE no > ?1 ORDER BY no";
const SPAN: &str = "SELECT min(no), max(no) FROM batches WHERE no > ?1";
const EMPTY: &str = "DELETE FROM batches";

/// A batch as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) no: u64,
    pub(super) synced: u64,
    pub(super) body: Vec<u8>,
}

/// One file that is written to.
#[derive(Debug)]
pub(super) struct Journal {
    connection: Connection,
    path: Box<Path>,
    busy_wait: Duration,
    log: Arc<File>,
    syncs: bool,
    /// At least what is used of the log, in bytes.
    used: u64,
    /// The same when it was looked up.
    looked: u64,
    /// How long the log is.
    length: u64,
}

impl Journal {
    /// Makes a new file beside the store: complete, or not there.
    pub(super) fn create(store: &Path, busy_wait: Duration) -> Result<Self, StoreError> {
        let path = (1..).map(|n| files::journal(store, n)).find(|path| !path.exists());
        let path = path.expect("there are fewer than 2^32 files");
        let unfinished = beside(&path, files::UNFINISHED);
        files::remove(&unfinished)?;
        {
            let new = Connection::open(&unfinished)?;
            new.pragma_update(None, "page_size", connect::PAGE_BYTES)?;
            // It has its name when it is on the disk, so nothing in between has to be safe.
            new.pragma_update(None, "synchronous", "OFF")?;
            new.pragma_update(None, "application_id", identity::JOURNAL_ID)?;
            new.pragma_update(None, "user_version", migrate::version(migrate::MIGRATIONS))?;
            new.execute_batch(TABLE)?;
            connect::set_log_ahead(&new)?;
            new.close().map_err(|(_, error)| error)?;
        }
        files::sync(&unfinished)?;
        let log =
            File::create(beside(&path, files::LOG)).map_err(|error| fault::file("create", &path, &error))?;
        files::rename(&unfinished, &path)?;
        files::sync_folder(&path)?;
        let connection = open(&path, OpenFlags::SQLITE_OPEN_READ_WRITE, busy_wait)?;
        Ok(Self {
            connection,
            path: path.into(),
            busy_wait,
            log: Arc::new(log),
            syncs: true,
            used: 0,
            looked: 0,
            length: 0,
        })
    }

    /// Its connection, to look at its settings.
    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Appends a batch that there is room for; synced, it is on the disk with all before it.
    pub(super) fn append(
        &mut self,
        no: u64,
        synced: u64,
        body: &[u8],
        syncs: bool,
    ) -> Result<(), StoreError> {
        if self.syncs != syncs {
            self.connection.pragma_update(None, "synchronous", if syncs { "FULL" } else { "OFF" })?;
            self.syncs = syncs;
        }
        let digest = digest(no, synced, body);
        let mut statement = self.connection.prepare_cached(APPEND)?;
        statement.execute(params![no.cast_signed(), synced.cast_signed(), digest, body])?;
        Ok(())
    }

    /// How many bytes of the log are used, about.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The log, for whoever syncs what was appended without.
    pub(super) fn log(&self) -> Arc<File> {
        Arc::clone(&self.log)
    }

    /// Waits until everything appended is on the disk.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.log.sync_data().map_err(|error| fault::file("sync", &self.path, &error))
    }

    /// Folds the log into the file, which also drops what stands there and was not committed. `false` where it cannot
    /// be done now.
    pub(super) fn mend(&mut self) -> bool {
        let mended = log::checkpoint(&self.connection, TRUNCATE).is_ok_and(|log| !log.busy);
        if mended {
            (self.used, self.looked, self.length) = (0, 0, 0);
        }
        mended
    }

    /// Forgets all batches and starts over; gives the file back if nobody else reads it.
    pub(super) fn empty(mut self) -> Result<Option<Self>, StoreError> {
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.syncs = true;
        self.connection.execute(EMPTY, [])?;
        // Without the empty pages a checkpoint has next to nothing to copy.
        self.connection.execute_batch("VACUUM")?;
        // Whoever reads it now keeps it.
        self.connection.busy_timeout(READERS_WAIT)?;
        let log = log::checkpoint(&self.connection, RESTART)?;
        self.connection.busy_timeout(self.busy_wait)?;
        if log.busy || log.folded < log.pages {
            self.delete()?;
            return Ok(None);
        }
        (self.used, self.looked) = (0, 0);
        Ok(Some(self))
    }

    /// Deletes it.
    pub(super) fn delete(self) -> Result<(), StoreError> {
        let Self { connection, path, .. } = self;
        connection.close().map_err(|(_, error)| error)?;
        delete(&path)
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
            let length = self.log.metadata().map_err(failed)?.len();
            let more = length.clamp(*EXTEND_BYTES.start(), *EXTEND_BYTES.end()).max(need);
            let mut log = &*self.log;
            log.seek(SeekFrom::Start(length)).map_err(failed)?;
            // In pieces as small as those that will be written over it: of what was written at once some systems keep
            // account at once, and count megabytes for each page.
            let written = (0..more.div_ceil(PIECE.len() as u64)).try_for_each(|_| log.write_all(&PIECE));
            if let Err(error) = written {
                // A disk that is full has better use for what did fit.
                log.set_len(length).map_err(failed)?;
                return Err(failed(error));
            }
            self.length = log.stream_position().map_err(failed)?;
        }
        self.used += need;
        Ok(())
    }
}

/// Gives the rows of a file after a batch, in order, each checked by its digest.
pub(super) fn read(
    connection: &Connection,
    path: &Path,
    after: u64,
    each: &mut dyn FnMut(Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare(AFTER)?;
    let mut rows = statement.query(params![after.cast_signed()])?;
    while let Some(row) = rows.next()? {
        let number = |column| -> Result<u64, StoreError> { Ok(row.get::<_, i64>(column)?.cast_unsigned()) };
        let (no, synced, body) = (number(0)?, number(1)?, row.get::<_, Vec<u8>>(3)?);
        if row.get::<_, Vec<u8>>(2)? != digest(no, synced, &body) {
            return Err(damaged(path, &format!("batch {no} is not what was written")));
        }
        each(Row { no, synced, body })?;
    }
    Ok(())
}

/// The first and the last batch of a file after `after`.
pub(super) fn span(connection: &Connection, after: u64) -> Result<Option<(u64, u64)>, StoreError> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
    let (first, last) = connection.query_row(SPAN, params![after.cast_signed()], read)?;
    Ok(first.zip(last).map(|(first, last)| (first.cast_unsigned(), last.cast_unsigned())))
}

/// Opens a file for reading its rows. It is opened for writing, because SQLite needs a file beside it.
pub(super) fn open_to_read(path: &Path, busy_wait: Duration) -> Result<Connection, StoreError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, busy_wait)
}

/// Deletes a file that nobody has open. Its log goes first: without it the file is an empty journal.
pub(super) fn delete(path: &Path) -> Result<(), StoreError> {
    for name in [files::LOG, files::LOG_INDEX, ""] {
        files::remove(&beside(path, name))?;
    }
    Ok(())
}

pub(super) fn damaged(path: &Path, what: &str) -> StoreError {
    StoreError::Corrupt(format!("the journal `{}`: {what}", path.display()))
}

fn open(path: &Path, flags: OpenFlags, busy_wait: Duration) -> Result<Connection, StoreError> {
    let connection = connect::open(path, flags)?;
    connection.busy_timeout(busy_wait)?;
    connect::durable(&connection)?;
    connect::set_cache(&connection, CACHE_BYTES)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // Its rows are never folded into it, at its end neither.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

fn digest(no: u64, synced: u64, body: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&no.to_le_bytes()).update(&synced.to_le_bytes()).update(body);
    *hasher.finalize().as_bytes().first_chunk().expect("a digest is longer")
}
