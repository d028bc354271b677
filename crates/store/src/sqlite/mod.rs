//! The truth in SQLite: tables in one file, and beside it a journal of what is not in them yet.
//!
//! A random row written into a table dirties a page, some eight kilobytes on the disk. So a transaction is appended to
//! the journal as one row and synced, its rows are kept in memory, and much later, with many others, they are folded
//! into the tables in key order. Both are SQLite files: at rest there is one file of plain tables that any client
//! reads; while a server runs it is some seconds behind.
//!
//! - `run`: the write path; `journal`: a file of the journal; `batch`: what a row of it means
//! - `overlay`: what is not folded, in memory; `state`: reading it and the tables at one moment; `reads`
//! - `fold`, `fold_worker`: from the overlay into the `tables`; `rotation`: the next file, the next generation; `pace`: how much may wait for it; `unsynced`: relaxed transactions
//! - `journal`: a file of it that is written; `registry`: which files there are; `journal_rows`: reading one back
//! - `backup`: a copy beside a running server; `recover`: after a kill; `damage`: whether it was one; `repair`: going on after damage
//! - a file for each table, with its statements and the one place where its rows become types
//!
//! Not here: more than one process (see `lock`), and reading one's own uncommitted writes.

mod backup;
mod bans;
mod batch;
mod boards;
mod books;
pub(crate) mod codec;
mod connect;
mod contest_reads;
mod contests;
mod damage;
mod directory;
mod doubt;
mod events;
mod fault;
mod files;
mod fold;
mod fold_worker;
mod holds;
mod identity;
mod imports;
mod journal;
mod journal_rows;
mod keys;
mod laid;
mod ledger;
mod lock;
mod log;
mod log_frames;
mod members;
mod meta;
mod migrate;
mod options;
mod overlay;
mod pace;
mod parts;
mod payments;
mod plants;
mod points;
mod profiles;
mod purge;
mod reads;
mod recover;
mod registry;
mod repair;
mod requests;
mod rotation;
mod run;
mod score_books;
mod scores;
mod series;
mod state;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod transfers;
mod trouble;
mod unsynced;
mod wallets;

pub use backup::{Copied, backup, backup_on, restore, restore_on};
pub(crate) use boards::{encode_prizes, put_board, take_board, take_period_prizes};
pub use options::{Background, Options};
pub use repair::{Repaired, repair};

use crate::damage::Damages;
use crate::plan::{
    BatchId, Block, BlockKey, BoardNo, BoardRow, Changes, Committed, ImportKey, ImportRow, KeyRow, Loaded,
    Part, PartKey, PartRow, Plan, ScoreKey,
};
use crate::{DamagedRow, Ledger, Slow, Store, StoreError};
use connect::Readers;
use directory::Directory;
use doubt::Doubt;
use files::Files;
use fold_worker::Folder;
use overlay::Overlay;
use run::Writer;
use state::Shared;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tables::Tables;
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};
use unsynced::Syncs;

/// A store in one SQLite file and a journal beside it.
#[derive(Debug)]
pub struct SqliteStore {
    // The order of the fields is the order in which they are dropped: the threads stop first, then all connections close,
    // and only then is the lock released.
    _folder: Folder,
    _syncs: Syncs,
    shared: Arc<Shared>,
    lock: Mutex<lock::Lock>,
}

impl SqliteStore {
    /// Opens the store at `path`, making it where there is none and migrating it where it is older.
    pub fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        Self::open_with(path, options, migrate::MIGRATIONS)
    }

    /// Says at which address this process answers, for the message of a second process that finds the store locked.
    pub fn announce(&self, address: &str) -> Result<(), StoreError> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).write(Some(address))
    }

    /// Where the file is, with links resolved.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Does what threads do in the background, where the store has none: syncs what is not synced, and folds.
    pub fn work(&self) -> Result<(), StoreError> {
        self.shared.unsynced.sync_now();
        self.shared.folding.fold_now(&self.shared)
    }

    fn open_with(path: &Path, options: &Options, migrations: &[&str]) -> Result<Self, StoreError> {
        let path = identity::resolve(path)?;
        let files = Files::on(&options.disk);
        let (lock, mut tables) = at_rest(&files, &path, options, migrations)?;
        let last = recover::recover(&files, &path, &mut tables, options.busy_wait)?;
        tables.doubt().clear();
        let damages = Damages::default();
        let boards = Directory::load(tables.connection(), &damages)?;
        let next_key = keys::last(tables.connection())?.saturating_add(1);
        let readers = Readers::open(&files, &path, options)?;
        let writer =
            Writer::new(connect::reader(&files, &path, options, options.cache_bytes)?, last, next_key);
        let overlay = Overlay { boards, ..Overlay::default() };
        let shared = Arc::new(Shared::new(path, options, readers, overlay, tables, (writer, damages)));
        let no_thread = |error| StoreError::Away(format!("start a thread of the store: {error}"));
        let folder = Folder::start(&shared).map_err(no_thread)?;
        let syncs = Syncs::start(&shared).map_err(no_thread)?;
        Ok(Self { _folder: folder, _syncs: syncs, shared, lock: Mutex::new(lock) })
    }
}

/// Locks a store that no process has open, and opens its tables: of the present schema, with nothing in their log. What is in
/// the journal is not looked at.
fn at_rest(
    files: &Files,
    path: &Path,
    options: &Options,
    migrations: &[&str],
) -> Result<(lock::Lock, Tables), StoreError> {
    let known = migrate::version(migrations);
    // Before the lock, so that nothing appears beside a file that is not ours; and after it, because only then is
    // it certain that no process is changing the file.
    identity::check(path, known)?;
    let lock = lock::Lock::take(files, path)?;
    files::check_no_restore(path)?;
    identity::check(path, known)?;
    Doubt::of(path).write_logs_again(files, path)?;
    let mut connection = connect::writer(files, path, options)?;
    migrate::migrate(files, &mut connection, path, migrations)?;
    connect::log_ahead(&connection, options)?;
    let tables = Tables::new(files.clone(), path, connection, options)?;
    tables.begin_log()?;
    Ok((lock, tables))
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // So that the file at rest is plain tables. What cannot be folded now is folded by the next start.
        let _ = self.settle();
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn run(&self, plan: &Plan, decide: &mut dyn FnMut(&Loaded) -> Changes) -> Result<Committed, StoreError> {
        let done = run::run(&self.shared, plan, decide);
        self.shared.damages.noted(done).map(|()| Committed::default())
    }

    fn became(&self, _batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        run::undone(&self.shared).map(|()| None)
    }

    fn ledger(&self) -> &dyn Ledger {
        self
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        Ok(self.shared.overlay().boards.all().cloned().collect())
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        reads::keys(&self.shared)
    }

    fn had_keys(&self) -> Result<bool, StoreError> {
        reads::had_keys(&self.shared)
    }

    fn walk_versions(
        &self,
        board: BoardNo,
        part: Part,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        reads::walk(&self.shared, (board, part), after, limit, &mut |player, record| each(player, record, 0))
    }

    fn count_scores(&self, board: BoardNo, part: Part) -> Result<u64, StoreError> {
        reads::count(&self.shared, board, part)
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        reads::import(&self.shared, key)
    }

    fn parts(&self, board: BoardNo) -> Result<Vec<PartRow>, StoreError> {
        reads::parts(&self.shared, board)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<Block>, StoreError> {
        reads::block(&self.shared, key)
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        reads::records(&self.shared, keys)
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        reads::hidden(&self.shared, board)
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        reads::profiles(&self.shared, players)
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        requests::expire_some(&self.shared, before, limit)
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        purge::some(&self.shared, limit)
    }

    fn unpurged(&self, parts: &[PartKey], _shard: usize) -> Result<Vec<PartKey>, StoreError> {
        purge::unpurged(&self.shared, parts)
    }

    fn purge_part(&self, part: PartKey, limit: usize) -> Result<bool, StoreError> {
        purge::part(&self.shared, part, limit)
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.shared.read(|_| (), |(), tables| meta::get(tables, name))
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.shared.write_tables(|tables| meta::put(tables, name, value))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.shared.folding.settle(&self.shared)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let shared = &self.shared;
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        let (journal_files, journal_bytes) = files::size_of_journal(&shared.path);
        let file_bytes = std::fs::metadata(&shared.path).map_or(0, |file| file.len());
        let (rows, bytes) = {
            let overlay = shared.overlay();
            let sum = |of: fn(&overlay::Generation) -> usize| overlay.generations().map(of).sum::<usize>();
            (sum(overlay::Generation::rows), sum(overlay::Generation::bytes))
        };
        let lag = shared.unsynced.lag();
        vec![
            ("file_bytes", file_bytes as f64),
            ("wal_bytes", number(&shared.counters.log_bytes)),
            ("checkpoints", number(&shared.counters.checkpoints)),
            ("checkpoints_hindered", number(&shared.counters.hindered)),
            ("checkpoint_seconds_last", number(&shared.counters.last_micros) / 1e6),
            ("journal_files", journal_files as f64),
            ("journal_bytes", journal_bytes as f64),
            ("unfolded_rows", rows as f64),
            ("unfolded_bytes", bytes as f64),
            ("folds", number(&shared.folding.folds)),
            ("fold_rows", number(&shared.folding.rows)),
            ("fold_failures", number(&shared.folding.failures)),
            ("fold_seconds_last", number(&shared.folding.last_micros) / 1e6),
            ("slowed_seconds", shared.folding.pace.slept_seconds()),
            ("unsynced_transactions", lag.transactions as f64),
            ("unsynced_bytes", lag.bytes as f64),
            ("unsynced_seconds", lag.seconds),
            ("slow_transactions", shared.slows.count()),
            ("damaged_rows", shared.damages.count() as f64),
        ]
    }

    fn damaged(&self) -> Vec<DamagedRow> {
        self.shared.damages.list()
    }

    fn damaged_count(&self) -> u64 {
        self.shared.damages.count()
    }

    fn is_damaged(&self, key: &ScoreKey) -> bool {
        self.shared.damages.has("scores", key)
    }

    fn slow(&self) -> Vec<Slow> {
        self.shared.slows.list()
    }
}

/// A limit as SQL counts.
fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
