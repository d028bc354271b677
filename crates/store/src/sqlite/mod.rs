//! The store in SQLite: tables in one file, and beside it a journal of the rows that are not in them yet.
//!
//! A random row written into a table dirties a whole page of 4 KiB. So a transaction is one row of the journal, synced, and
//! its rows stay in a memtable. Much later a flush writes them with many others into the tables, in key order. Both are
//! SQLite files. At rest there is one file of plain tables that any client reads. While a server runs, that file is some
//! seconds behind.
//!
//! - `run`: transactions; `reads`; `maintenance`; `batch`: the rows in a row of the journal; `table`: a table, described
//!   once
//! - `memtable`: rows that are not flushed; `state`: reading it and the tables at one moment; `merge`: pages of both
//! - `flush`, `flush_worker`: from the memtable into the `tables`; `rotation`: the next journal file; `stall`: how much may
//!   wait; `unsynced`: asynchronous commits
//! - `journal`: a journal file that is written; `manifest`: which files exist; `journal_rows`: reading one back;
//!   `sync_failure`: a marker for the next start
//! - `backup`: a copy beside a running server; `archive_copies`: its archives; `follow`: one that goes on, for any instant
//! - `copying`: a copy from another store, or into one
//! - `recover`: after a kill; `damage`: whether it was one; `repair`: going on after damage
//! - a file for each table, with its statements and the one place where its rows become types
//!
//! Not here: more than one process (see `lock`), and reading one's own uncommitted writes.

mod archive_copies;
mod archives;
mod audit;
mod backup;
mod bans;
mod batch;
mod boards;
mod connect;
mod contest_reads;
mod contests;
mod copying;
mod crash_points;
mod damage;
mod directory;
mod events;
mod fault;
mod files;
mod flush;
mod flush_worker;
mod follow;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod holds;
mod identity;
mod imports;
mod journal;
mod journal_rows;
mod keys;
mod ledger;
mod lock;
mod log;
mod log_frames;
mod maintenance;
mod manifest;
mod members;
mod memtable;
mod merge;
mod meta;
mod migrate;
mod minted;
mod newest;
mod options;
mod payments;
mod profiles;
mod purge;
mod reads;
mod recover;
mod repair;
mod requests;
mod reversals;
mod rotation;
mod run;
mod score_snapshot;
mod scores;
mod seeded_faults;
mod series;
mod snapshot;
mod stall;
mod state;
mod sync_failure;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod transfers;
mod unsynced;
mod wallets;
mod webhooks;
mod windows;

pub(crate) use archive_copies::copy_files;
pub use archive_copies::{archives_beside, copy_archives};
pub use backup::{Copied, backup, backup_on, restore, restore_on};
pub(crate) use copying::check_current;
pub use files::is_there;
pub use follow::{
    FollowEvent, FollowOptions, FollowStep, Follower, Restorable, RestorePlan, followed_marker,
};
pub use options::{Background, Options};
pub use repair::{Repaired, repair};

use crate::archive::Archives;
use crate::damage::Damages;
use crate::{Maintenance, StoreError};
use connect::Readers;
use directory::Directory;
use files::Files;
use flush_worker::FlushThread;
use memtable::Memtables;
use run::Writer;
use state::Shared;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use sync_failure::SyncFailure;
use tables::Tables;
use unsynced::Syncs;

/// The folder of the archives of a store, beside its file.
pub const ARCHIVES: &str = "archive";

/// A store in one SQLite file and a journal beside it.
#[derive(Debug)]
pub struct SqliteStore {
    // The order of the fields is the order in which they are dropped. The threads stop first, then all connections close,
    // and only then is the lock released.
    _flusher: FlushThread,
    _syncs: Syncs,
    shared: Arc<Shared>,
    archives: Archives,
    lock: Mutex<lock::Lock>,
}

impl SqliteStore {
    /// Opens the store at `path`, creates it if it is missing, and migrates it if it is older.
    pub fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let store = Self::open_unfinished(path, options)?;
        store.check_finished()?;
        Ok(store)
    }

    /// Like [`Self::open`], also if a copy of another store into this one is not finished.
    pub(crate) fn open_unfinished(path: &Path, options: &Options) -> Result<Self, StoreError> {
        Self::open_with(path, options, migrate::MIGRATIONS)
    }

    /// Stores the address of this process, for the message of a second process that finds the store locked.
    pub fn announce(&self, address: &str) -> Result<(), StoreError> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).write(Some(address))
    }

    /// The path of the file, with links resolved.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Does the background work of a store without threads: syncs, and flushes.
    pub fn work(&self) -> Result<(), StoreError> {
        self.shared.unsynced.sync_now();
        self.shared.flushing.flush_now(&self.shared)
    }

    fn open_with(path: &Path, options: &Options, migrations: &[&str]) -> Result<Self, StoreError> {
        let path = identity::resolve(path)?;
        let files = Files::on(&options.disk);
        let (lock, mut tables) = at_rest(&files, &path, options, migrations)?;
        let last = recover::recover(&files, &path, &mut tables, options.busy_wait)?;
        tables.sync_failure().clear();
        let damages = Damages::default();
        let boards = Directory::load(tables.connection(), &damages)?;
        let next_key = keys::last(tables.connection())?.saturating_add(1);
        let readers = Readers::open(&files, &path, options)?;
        let writer =
            Writer::new(connect::reader(&files, &path, options, options.cache_bytes)?, last, next_key);
        let archives = Archives::new(Some(options.archives_of(&path)), Arc::clone(&options.disk));
        let memtables = Memtables { boards, ..Memtables::default() };
        let shared = Arc::new(Shared::new(path, options, readers, memtables, tables, (writer, damages)));
        let no_thread = |error| StoreError::Unavailable(format!("start a thread of the store: {error}"));
        let flusher = FlushThread::start(&shared).map_err(no_thread)?;
        let syncs = Syncs::start(&shared).map_err(no_thread)?;
        Ok(Self { _flusher: flusher, _syncs: syncs, shared, archives, lock: Mutex::new(lock) })
    }
}

/// Locks a store that no process has open, and opens its tables: of the present schema, with an empty log. The journal is
/// not read.
fn at_rest(
    files: &Files,
    path: &Path,
    options: &Options,
    migrations: &[&str],
) -> Result<(lock::Lock, Tables), StoreError> {
    let known = migrate::version(migrations);
    // Checked before the lock, so that nothing is created beside a file that is not ours. Checked again after it, because
    // only then no process can be changing the file.
    identity::check(path, known)?;
    let lock = lock::Lock::take(files, path)?;
    files::check_no_restore(path)?;
    identity::check(path, known)?;
    SyncFailure::of(path).write_logs_again(files, path)?;
    let mut connection = connect::writer(files, path, options)?;
    migrate::migrate(files, &mut connection, path, migrations)?;
    connect::log_ahead(&connection, options)?;
    let tables = Tables::new(files.clone(), path, connection, options)?;
    tables.begin_log()?;
    Ok((lock, tables))
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The file at rest is plain tables. The next start flushes what cannot be flushed now.
        let _ = self.checkpoint();
    }
}

/// A limit as an SQL integer.
fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
