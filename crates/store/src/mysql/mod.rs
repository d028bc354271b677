//! The truth in MySQL or MariaDB: one transaction, two messages.
//!
//! What a round trip costs decides everything here. A transaction is one text that begins it and reads and locks
//! all it needs, and one that writes a statement per table and commits; nothing is prepared, nothing is asked twice. The
//! trait blocks, so each connection is driven by the thread that uses it.
//!
//! - `run`: the write path; `load`: its first message; `write`: its second; `batches`: what became of a commit whose answer was lost; `notes`: what `shards` keeps beside a transaction
//! - `pool`, `link`, `connect`: connections; `fault`: what their errors mean; `stats`; `survey`; `options`: bounds; `text`, `row`: SQL and results
//! - `lease`, `leases`: how a server that keeps orders in memory stays the only one that writes; `moving`: rows to another database; `revisions`, `turns`, `marks`: how several servers share a store
//! - `witness`: whether the database has lost commits; `replication`: which kinds are refused; `migrate`: whose database it is, and its schema; `purge`: what is deleted at leisure; `check`; `books`: the ledger of one moment; a file for each table, with its statements and the one place where its rows become types
//!
//! **Present and absent.** Transactions are READ COMMITTED and lock every row they read, in order of tables and keys. A key that has no row is not locked: locking the gap
//! where it would be (REPEATABLE READ) deadlocks whenever two transactions then fill one gap, which is every batch of new players. Instead the second message inserts such a
//! key without ON DUPLICATE KEY, or inserts and deletes it where nothing is to be written: a row that came meanwhile makes that a duplicate, which is a conflict, and the
//! batch is decided again.
//!
//! Not here: TLS, more than one database, and any retry but that of a connection that was lost while idle.

mod bans;
mod batches;
mod boards;
pub(crate) mod books;
mod check;
mod connect;
mod contests;
mod events;
mod fault;
mod guess;
mod holds;
mod imports;
mod keys;
mod lease;
mod leases;
mod ledger;
mod link;
mod lists;
mod load;
mod marks;
mod members;
mod meta;
mod migrate;
pub(crate) mod moving;
mod notes;
mod options;
mod parts;
mod payments;
mod pool;
mod prizes;
mod profiles;
mod purge;
mod recent;
mod replication;
mod requests;
mod revisions;
mod row;
mod run;
mod score_books;
mod scores;
mod series;
mod stats;
mod survey;
#[cfg(test)]
mod tests;
mod text;
mod transfers;
mod turns;
mod version;
mod wallets;
mod witness;
mod write;

use crate::plan::{
    BatchId, Block, BlockKey, BoardNo, BoardRow, Changes, Committed, ImportKey, ImportRow, KeyRow, Loaded,
    Part, PartKey, PartRow, Plan, ScoreKey,
};
use crate::servers::{
    BoardState, Changed, FeedPosition, LostCommits, Mark, Name, Revisions, ScoreState, Task,
};
use crate::{DamagedRow, Ledger, Slow, Store, StoreError};
pub(crate) use books::Snapshot;
use connect::{Address, Flavour};
use lease::{Kind, Lease};
use link::Link;
use notes::Decide;
pub(crate) use notes::{Note, Noted};
pub use options::{Options, Survey};
use row::{found, player};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};
use text::Script;
use version::Version;

/// The database's clock at the moment the statement is run, in microseconds since 1970.
const CLOCK: &str = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)";

/// A store in one database of a MySQL or MariaDB server.
#[derive(Debug)]
pub struct MySqlStore {
    pool: Arc<pool::Pool>,
    flavour: Flavour,
    lease: Option<Lease>,
    recent: recent::Recent,
    /// Random, for turns.
    name: [u8; 16],
    /// For [`Store::changed`], which must not wait for connections of the pool.
    follower: Mutex<Option<Link>>,
}

impl MySqlStore {
    /// Opens the store in the database that `mysql://user:password@host:port/database` names, making its tables where it
    /// is empty.
    pub fn open(url: &str, options: &Options) -> Result<Self, StoreError> {
        Self::open_telling(url, options, &mut |_| ())
    }

    /// The same; `tell` hears what is waited for.
    pub fn open_telling(
        url: &str,
        options: &Options,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        Self::open_with(url, options, migrate::MIGRATIONS, tell)
    }

    /// Its URL, without user and password.
    pub fn url(&self) -> &str {
        &self.pool.address.shown
    }

    /// Says where this process answers, for whoever finds the store taken.
    pub fn announce(&self, address: &str) -> Result<(), StoreError> {
        let options = &self.pool.options;
        match (&self.lease, options.writer.as_ref().or(options.beside.as_ref())) {
            (Some(lease), Some(who)) => lease.announce(&format!("{who}, which answers at {address}")),
            _ => Ok(()),
        }
    }

    /// See [`Ledger::books`]; it may outlive the store.
    pub(crate) fn snapshot(&self) -> Result<books::Snapshot, StoreError> {
        books::Snapshot::begin(&self.pool)
    }

    /// What the database says of itself.
    pub fn survey(&self) -> Result<Survey, StoreError> {
        survey::survey(&self.pool)
    }

    /// Who has taken the store from this process, which was the only one that writes: from then on it refuses everything.
    pub fn taken_by(&self) -> Option<String> {
        self.lease.as_ref().and_then(Lease::taken)
    }

    /// Lets another be the one that writes. Nothing is written afterwards.
    pub fn release(&self) {
        if let Some(lease) = &self.lease {
            lease.release();
        }
    }

    fn open_with(
        url: &str,
        options: &Options,
        migrations: &'static [&'static str],
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        let pool = Arc::new(pool::Pool::new(Address::parse(url)?, options.clone()));
        let address = (pool.address.database.as_str(), pool.address.shown.as_str());
        replication::check(pool.take()?.get(), address.1)?;
        migrate::check_there(pool.take()?.get(), address, migrations, options.anew)?;
        // Before anything is changed: whoever is at work on the older schema goes on, and nobody begins meanwhile.
        let held = if options.migrate && migrate::is_older(pool.take()?.get(), address, migrations)? {
            let who = options.writer.as_ref().or(options.beside.as_ref());
            Some(Lease::take(&pool, (Kind::Alone, who.map_or("a migration", String::as_str)), tell)?)
        } else {
            None
        };
        let mut link = pool.take()?;
        let migrated = migrate::migrate(link.get(), address, migrations, options.migrate);
        if migrated.is_err() {
            // It may hold the lock of migrations.
            link.get().give_up();
        }
        migrated?;
        let (flavour, name) = (link.get().server.flavour, link.get().name);
        drop(link);
        let holder = match (&options.writer, &options.beside) {
            (Some(who), _) => Some((Kind::Alone, who.as_str())),
            (None, Some(who)) => Some((Kind::Beside, who.as_str())),
            (None, None) => None,
        };
        let held = held.filter(|_| holder.is_some_and(|(kind, _)| kind == Kind::Alone));
        let take = || holder.map(|holder| Lease::take(&pool, holder, tell)).transpose();
        let lease = held.map_or_else(take, |held| Ok(Some(held)))?;
        Ok(Self { pool, flavour, lease, recent: recent::Recent::default(), name, follower: Mutex::default() })
    }
}

impl Store for MySqlStore {
    fn name(&self) -> &'static str {
        self.flavour.name()
    }

    fn run(&self, plan: &Plan, decide: &mut dyn FnMut(&Loaded) -> Changes) -> Result<Committed, StoreError> {
        let decide: Decide<'_> = &mut |loaded, _| Noted { changes: decide(loaded), ..Noted::default() };
        let recent = self.lease.as_ref().is_some_and(Lease::is_alone).then_some(&self.recent);
        run::run((&self.pool, self.lease.as_ref(), recent), plan, decide)
    }

    fn became(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        // Which revision it gave is not known by now: whoever keeps boards reads them again.
        let marked = Some(*batch);
        Ok(self.pool.became(batch)?.map(|version| Committed { version, marked, ..Committed::default() }))
    }

    fn ledger(&self) -> &dyn Ledger {
        self
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        boards::read_sound(self.pool.ask(&boards::select_all())?)
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        keys::read_all(self.pool.ask(&keys::select_all())?)
    }

    fn had_keys(&self) -> Result<bool, StoreError> {
        keys::read_had(self.pool.ask(&keys::select_had())?)
    }

    fn walk_versions(
        &self,
        board: BoardNo,
        part: Part,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        scores::walk_all(&self.pool, (board, part, false), after, limit, &mut |player, record, version| {
            if let Some(record) = record {
                each(player, record, version);
            }
        })
    }

    fn walk_states(
        &self,
        _shard: Option<usize>,
        (board, part): (BoardNo, Part),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
    ) -> Result<usize, StoreError> {
        scores::walk_all(&self.pool, (board, part, true), after, limit, each)
    }

    fn states(&self, keys: &[ScoreKey]) -> Result<Vec<Option<ScoreState>>, StoreError> {
        scores::states(&self.pool, keys)
    }

    fn board(&self, name: Name<'_>, known: Option<&Revisions>) -> Result<Option<BoardState>, StoreError> {
        revisions::read_board(&self.pool, name, known.map(|known| known.of(0)))
    }

    fn changed(&self, after: &[FeedPosition]) -> Result<Changed, StoreError> {
        let after = after.first().copied().unwrap_or_default();
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        revisions::changed(&self.pool, self.lease.as_ref(), &mut follower, after)
    }

    fn id(&self) -> Result<Option<[u8; 16]>, StoreError> {
        meta::id(&self.pool).map(Some)
    }

    fn clock_ahead(&self) -> i64 {
        self.lease.as_ref().map_or(0, Lease::clock_ahead)
    }

    fn generation(&self) -> u64 {
        self.lease.as_ref().map_or(0, Lease::generation)
    }

    fn take_turn(&self, task: Task, time: Duration) -> Result<bool, StoreError> {
        Ok(self.pool.ask(&turns::take(task, &self.name, time))?.affected() > 0)
    }

    fn published(&self, batch: BatchId) {
        self.pool.witnesses.settle([batch]);
    }

    fn marks(&self, age: Duration, after: Option<BatchId>) -> Result<Vec<Mark>, StoreError> {
        batches::forget_settled(&self.pool)?;
        marks::read(self.pool.ask(&marks::find(age, after))?)
    }

    fn fold_marks(&self, batches: &[BatchId]) -> Result<Option<BatchId>, StoreError> {
        marks::fold(&self.pool, batches).map(Some)
    }

    fn take_marks_off(&self, batches: &[BatchId]) -> Result<(), StoreError> {
        let script = marks::take_off(batches);
        if script.len() == 0 { Ok(()) } else { self.pool.ask(&script).map(drop) }
    }

    fn parts(&self, board: BoardNo) -> Result<Vec<PartRow>, StoreError> {
        parts::read(&mut self.pool.ask(&parts::select(board))?)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<Block>, StoreError> {
        parts::read_block(self.pool.ask(&parts::select_block(key))?)
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        Ok(self.states(keys)?.into_iter().map(|state| state?.0).collect())
    }

    fn count_scores(&self, board: BoardNo, part: Part) -> Result<u64, StoreError> {
        scores::read_count(self.pool.ask(&scores::count(board, part))?)
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        let keys = std::slice::from_ref(key);
        let mut script = Script::default();
        let statements = imports::select(&mut script, keys, false);
        Ok(imports::read(&mut self.pool.ask(&script)?, statements, keys)?.pop().flatten())
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        bans::read(&mut self.pool.ask(&bans::select(board))?)
    }

    fn banned(&self, board: BoardNo, players: &[PlayerId]) -> Result<HashSet<PlayerId>, StoreError> {
        bans::some(&self.pool, board, players)
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        profiles::of(&self.pool, players)
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        requests::expire(&self.pool, before, limit)
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        purge::some(&self.pool, limit)
    }

    fn unpurged(&self, parts: &[PartKey], _shard: usize) -> Result<Vec<PartKey>, StoreError> {
        purge::unpurged(&self.pool, parts)
    }

    fn purge_part(&self, part: PartKey, limit: usize) -> Result<bool, StoreError> {
        purge::part(&self.pool, part, limit)
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        meta::read(&mut self.pool.ask(&meta::select(name))?)
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.pool.ask(&meta::put(name, value)?).map(drop)
    }

    /// The database does that by itself.
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn slow(&self) -> Vec<Slow> {
        self.pool.stats.slows.list()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.pool.gauges().into_iter().chain(self.lease.iter().flat_map(Lease::gauges)).collect()
    }

    fn damaged(&self) -> Vec<DamagedRow> {
        self.pool.stats.damages.list()
    }

    fn damaged_count(&self) -> u64 {
        self.pool.stats.damages.count()
    }

    fn is_damaged(&self, key: &ScoreKey) -> bool {
        self.pool.stats.damages.has("scores", key)
    }

    fn may_answer(&self) -> bool {
        self.pool.witnesses.is_intact() && self.lease.as_ref().is_none_or(Lease::may_answer)
    }

    fn lost(&self) -> Option<LostCommits> {
        self.pool.witnesses.lost()
    }
}
