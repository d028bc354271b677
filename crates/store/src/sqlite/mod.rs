//! The truth in one SQLite file: one writer, a few readers, a log that is synced at every commit.
//!
//! The file is open format: at rest it is plain tables that any SQLite client reads. One connection writes, behind a
//! mutex, because SQLite has one writer anyway and waiting for a mutex is fair game for a lane; readers see the last
//! commit. There is a file for each table, each with its statements and the one place where its rows become types.
//!
//! Not here: more than one process (see `lock`), reading one's own uncommitted writes, and any cache of rows.

mod bans;
mod boards;
mod checkpoint;
mod connect;
mod fault;
mod identity;
mod imports;
mod keys;
mod lock;
mod meta;
mod migrate;
mod parts;
mod profiles;
mod purge;
mod requests;
mod scores;
#[cfg(test)]
mod tests;

use crate::plan::{
    Block, BlockKey, BoardNo, BoardRow, Changes, ImportKey, ImportRow, KeyRow, Loaded, Part, PartRow, Plan,
    ScoreKey,
};
use crate::{Store, StoreError};
use checkpoint::Checkpoints;
use connect::Readers;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};

/// The bounds of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Memory of the writer for pages. Pages that do not fit are read again, usually from the memory of the operating
    /// system. Default: 64 MiB.
    pub cache_bytes: u64,
    /// Memory of each reader for pages. Default: 4 MiB.
    pub reader_cache_bytes: u64,
    /// How long the write-ahead log may grow before a commit waits for it to be folded into the file; also about what
    /// a start after a kill has to read again. Default: 256 MiB.
    pub wal_bytes_max: u64,
    /// Connections for reading, at least one: more reads than that at once wait for each other. Default: 4.
    pub readers: usize,
    /// How long to wait for a lock that another program (a shell, a backup) holds before it is a conflict. Default: 5 s.
    pub busy_wait: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            reader_cache_bytes: 4 << 20,
            wal_bytes_max: 256 << 20,
            readers: 4,
            busy_wait: Duration::from_secs(5),
        }
    }
}

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    // The order of the fields is the order in which they are dropped: the thread stops first, the writer closes last of
    // the connections, which removes the log, and only then is the lock released.
    checkpoints: Checkpoints,
    readers: Readers,
    writer: Mutex<Connection>,
    lock: Mutex<lock::Lock>,
    path: PathBuf,
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
        &self.path
    }

    fn open_with(path: &Path, options: &Options, migrations: &[&str]) -> Result<Self, StoreError> {
        let path = identity::resolve(path)?;
        let known = migrate::version(migrations);
        // Before the lock, so that nothing appears beside a file that is not ours; and after it, because only then is
        // it certain that nobody is changing the file.
        identity::check(&path, known)?;
        let lock = lock::Lock::take(&path)?;
        identity::check(&path, known)?;
        let mut writer = connect::writer(&path, options)?;
        migrate::migrate(&mut writer, &path, migrations)?;
        connect::log_ahead(&writer, options)?;
        let readers = Readers::open(&path, options)?;
        let page_bytes: u32 = writer.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let checkpoints = Checkpoints::start(&path, page_bytes.into(), options.wal_bytes_max)?;
        Ok(Self { checkpoints, readers, writer: Mutex::new(writer), lock: Mutex::new(lock), path })
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        // A panic inside a transaction rolled it back when it passed, so the connection is sound.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one transaction on the writer and looks at the log afterwards.
    fn write<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut writer = self.writer();
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // An error drops the transaction, which rolls it back.
        let done = work(&transaction)?;
        self.commit(transaction)?;
        self.checkpoints.after_commit(&writer);
        Ok(done)
    }

    fn commit(&self, transaction: Transaction<'_>) -> Result<(), StoreError> {
        let Err(error) = transaction.commit() else { return Ok(()) };
        // When the sync of a commit fails the transaction is rolled back, but its pages lie complete at the end of the
        // log, and whoever opens the file after a crash would take them for committed. Empty the log, or admit it.
        if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) && !self.checkpoints.empty_log() {
            return Err(StoreError::LostAtCommit(error.to_string()));
        }
        Err(error.into())
    }

    /// Runs reads on one snapshot.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let reader = self.readers.lend();
        let snapshot = reader.unchecked_transaction()?;
        let done = work(&snapshot)?;
        snapshot.commit()?;
        Ok(done)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // So that the file at rest is plain tables. What cannot be folded now is folded by the next start.
        self.checkpoints.empty_log();
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn run(&self, plan: &Plan, decide: &mut dyn FnMut(&Loaded) -> Changes) -> Result<(), StoreError> {
        plan.assert_sorted();
        self.write(|transaction| {
            let loaded = load(transaction, plan)?;
            loaded.assert_answers(plan);
            let changes = decide(&loaded);
            changes.assert_sorted();
            store(transaction, &changes)
        })
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        self.read(boards::all)
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        self.read(keys::live)
    }

    fn walk_scores(
        &self,
        board: BoardNo,
        part: Part,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record),
    ) -> Result<usize, StoreError> {
        self.read(|snapshot| scores::walk(snapshot, (board, part), after, bound(limit), each))
    }

    fn count_scores(&self, board: BoardNo, part: Part) -> Result<u64, StoreError> {
        self.read(|snapshot| scores::count(snapshot, board, part))
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        self.read(|snapshot| imports::get(snapshot, key))
    }

    fn parts(&self, board: BoardNo) -> Result<Vec<PartRow>, StoreError> {
        self.read(|snapshot| parts::of_board(snapshot, board))
    }

    fn block(&self, key: &BlockKey) -> Result<Option<Block>, StoreError> {
        self.read(|snapshot| parts::block(snapshot, key))
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        self.read(|snapshot| scores::load(snapshot, keys))
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        self.read(|snapshot| bans::of_board(snapshot, board))
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        self.read(|snapshot| Ok(players.iter().map(|player| profiles::get(snapshot, player)).collect()))
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        self.write(|transaction| requests::expire(transaction, before, bound(limit)))
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        self.write(|transaction| purge::some(transaction, bound(limit)))
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|snapshot| meta::get(snapshot, name))
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.write(|transaction| meta::put(transaction, name, value))
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let counters = self.checkpoints.counters();
        let number = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed) as f64;
        let file_bytes = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        vec![
            ("file_bytes", file_bytes as f64),
            ("wal_bytes", number(&counters.log_bytes)),
            ("checkpoints_by_thread", number(&counters.by_thread)),
            ("checkpoints_by_writer", number(&counters.by_writer)),
            ("checkpoints_forced", number(&counters.forced)),
            ("checkpoints_hindered", number(&counters.hindered)),
            ("checkpoint_seconds_last", number(&counters.last_micros) / 1e6),
        ]
    }
}

fn load(transaction: &Connection, plan: &Plan) -> Result<Loaded, StoreError> {
    let next_board = if plan.board_names.is_empty() { BoardNo(0) } else { meta::next_board(transaction)? };
    Ok(Loaded {
        boards: boards::live(transaction, &plan.boards)?,
        board_names: boards::by_name(transaction, &plan.board_names)?,
        next_board,
        scores: scores::load(transaction, &plan.scores)?,
        requests: requests::load(transaction, &plan.requests)?,
        imports: imports::load(transaction, &plan.imports)?,
        profiles: profiles::load(transaction, &plan.profiles)?,
    })
}

fn store(transaction: &Connection, changes: &Changes) -> Result<(), StoreError> {
    scores::store(transaction, &changes.scores)?;
    requests::store(transaction, &changes.requests)?;
    imports::store(transaction, &changes.imports)?;
    profiles::store(transaction, &changes.profiles)?;
    parts::store(transaction, &changes.parts)?;
    parts::store_blocks(transaction, &changes.blocks)?;
    parts::mark_gone(transaction, &changes.gone)?;
    bans::store(transaction, &changes.bans)?;
    boards::store(transaction, &changes.boards)?;
    keys::store(transaction, &changes.keys)
}

fn bound(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
