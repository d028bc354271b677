//! The truth in MySQL or MariaDB: one transaction, two messages.
//!
//! What a round trip costs decides everything here. A transaction is one text that begins it and reads and locks
//! all it needs, and one that writes a statement per table and commits; nothing is prepared, nothing is asked twice. The
//! trait blocks, so each connection is driven by the thread that uses it.
//!
//! - `run`: the write path; `load`: its first message; `write`: its second; `batches`: what became of a commit whose answer was lost; `notes`: what `shards` keeps beside a transaction
//! - `pool`, `link`, `connect`: connections; `fault`: what their errors mean; `stats`; `survey`; `options`: bounds; `text`, `row`: SQL and results
//! - `lease`, `leases`: how a server that keeps orders in memory stays the only one that writes; `moving`: rows to another database; `revisions`, `tasks`, `marks`: how several servers share a store
//! - `witness`: whether the database has lost commits; `replication`: which kinds are refused; `migrate`: whose database it is, and its schema; `purge`: what is deleted at leisure; `check`; `snapshot`: the ledger of one moment; a file for each table, with its statements and the one place where its rows become types
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
mod check;
mod connect;
mod contests;
mod coordination;
mod events;
mod fault;
pub(crate) mod fuzzing;
mod holds;
mod imports;
mod keys;
mod lease;
mod leases;
mod ledger;
mod link;
mod lists;
mod load;
mod maintenance;
mod members;
mod meta;
mod migrate;
pub(crate) mod moving;
mod notes;
mod optimistic;
mod options;
mod outbox;
mod payments;
mod pool;
mod prizes;
mod probe;
mod profiles;
mod purge;
mod reads;
mod replication;
mod requests;
mod revisions;
mod row;
mod row_cache;
mod run;
mod score_snapshot;
mod scores;
mod series;
pub(crate) mod snapshot;
mod stats;
mod table;
mod tasks;
mod tests;
mod text;
mod transactions;
mod transfers;
mod version;
mod wallets;
mod windows;
mod witness;
mod write;

use crate::StoreError;
use connect::{Address, Flavour};
use lease::{Kind, Lease};
use link::Link;
pub(crate) use notes::{Note, Noted};
pub use options::{Options, Probe};
use row::{found, player};
pub(crate) use snapshot::MySqlSnapshot;
use std::sync::{Arc, Mutex};
use version::Version;

/// The database's clock at the moment the statement is run, in microseconds since 1970.
const CLOCK: &str = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)";

/// A store in one database of a MySQL or MariaDB server.
#[derive(Debug)]
pub struct MySqlStore {
    pool: Arc<pool::Pool>,
    flavour: Flavour,
    lease: Option<Lease>,
    recent: row_cache::RowCache,
    /// Random, for turns.
    name: [u8; 16],
    /// For [`crate::Coordination::change_feed`], which must not wait for connections of the pool.
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
    pub(crate) fn begin_snapshot(&self) -> Result<snapshot::MySqlSnapshot, StoreError> {
        snapshot::MySqlSnapshot::begin(&self.pool)
    }

    /// What the database says of itself.
    pub fn probe(&self) -> Result<Probe, StoreError> {
        probe::probe(&self.pool)
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
        Ok(Self {
            pool,
            flavour,
            lease,
            recent: row_cache::RowCache::default(),
            name,
            follower: Mutex::default(),
        })
    }
}
