//! The store in MySQL or MariaDB: one transaction, two messages.
//!
//! Round trips decide the cost. The first message begins a transaction and reads and locks all that it needs. The second writes a
//! statement for each table and commits. Nothing is prepared. The trait blocks, so the thread that uses a connection drives it.
//!
//! - `transactions`, `reads`, `coordination`, `maintenance`: the four traits
//! - `run`: the write path; `load`: its first message; `write`: its second; `optimistic`, `row_cache`: the only writer reads
//!   less; `notes`: what `shards` stores with a transaction
//! - `table`: a table, described once; a file for each table
//! - `batches`: commit markers; `witness`: whether the database has lost commits; `outbox`; `revisions`: the change feed;
//!   `tasks`: task leases
//! - `pool`, `link`, `connect`: connections; `fault`: what their errors mean; `text`, `row`: SQL and results; `stats`,
//!   `probe`, `options`
//! - `lease`, `leases`, `renewal`: the single-writer lease; `replication`: which kinds are refused; `migrate`: the schema; `moving`:
//!   rows to another database; `copying`: all rows from another store, or into one
//! - `followers`: which server leads, for those that follow it; `purge`, `check`: bounded deletes, and values that no table holds; `snapshot`: the ledger of one moment
//!
//! **Present and absent.** Transactions are READ COMMITTED and lock every row they read, in order of tables and keys. A key
//! without a row is not locked: locking its gap (REPEATABLE READ) deadlocks when two transactions fill one gap, and every
//! batch of new players does. Instead the second message inserts such a key without ON DUPLICATE KEY, or guards it: inserts
//! and deletes it. A row that was inserted meanwhile makes that a duplicate. That is a conflict, and the lane decides the
//! batch again.
//!
//! Not here: TLS, more than one database, and any retry but that of a connection that was lost while idle.

mod archives;
mod audit;
mod bans;
mod batches;
mod boards;
mod check;
mod connect;
mod contests;
mod coordination;
mod copying;
mod events;
mod fault;
mod followers;
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
mod minted;
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
mod renewal;
mod replication;
mod requests;
mod reversals;
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
mod webhooks;
mod windows;
mod witness;
mod write;

use crate::StoreError;
use crate::archive::Archives;
use crate::changes::Tapped;
use connect::{Address, Flavour};
use followers::Marked;
pub use followers::{LeaderRow, Replaced};
use lease::{Lease, LeaseKind};
use link::Link;
pub(crate) use notes::{Note, Noted};
pub use options::{Options, Probe};
use row::{found, player};
pub(crate) use snapshot::MySqlSnapshot;
use std::sync::{Arc, Mutex};
use tally_disk::SystemDisk;
use version::Version;

/// The database's clock when the statement runs, in microseconds since 1970.
const CLOCK: &str = "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS UNSIGNED)";

/// A store in one database of a MySQL or MariaDB server.
#[derive(Debug)]
pub struct MySqlStore {
    pool: Arc<pool::Pool>,
    flavour: Flavour,
    lease: Option<Lease>,
    row_cache: row_cache::RowCache,
    /// The random name of this store, as the holder of task leases.
    name: [u8; 16],
    /// The connection of [`crate::Coordination::change_feed`], which must not wait for the pool.
    follower: Mutex<Option<Link>>,
    archives: Archives,
    tapped: Tapped,
    marked: Marked,
}

impl MySqlStore {
    /// Opens the store in the database that `mysql://user:password@host:port/database` names, and creates its tables if it
    /// is empty.
    pub fn open(url: &str, options: &Options) -> Result<Self, StoreError> {
        Self::open_reporting(url, options, &mut |_| ())
    }

    /// Like [`Self::open`]; `on_wait` gets a message about each wait.
    pub fn open_reporting(
        url: &str,
        options: &Options,
        on_wait: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        let store = Self::open_unfinished(url, options, on_wait)?;
        store.check_finished()?;
        Ok(store)
    }

    /// Like [`Self::open_reporting`], also if a copy of another store into this one is not finished.
    pub(crate) fn open_unfinished(
        url: &str,
        options: &Options,
        on_wait: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        Self::open_with(url, options, migrate::MIGRATIONS, on_wait)
    }

    /// The URL of the store, without user and password.
    pub fn url(&self) -> &str {
        &self.pool.address.shown
    }

    /// Stores the address of this process, for servers that find the store taken.
    pub fn announce(&self, address: &str) -> Result<(), StoreError> {
        let options = &self.pool.options;
        match (&self.lease, options.writer.as_ref().or(options.beside.as_ref())) {
            (Some(lease), Some(who)) => lease.announce(&format!("{who}, which answers at {address}")),
            _ => Ok(()),
        }
    }

    /// See [`crate::Ledger::snapshot`]; it may outlive the store.
    pub(crate) fn begin_snapshot(&self) -> Result<snapshot::MySqlSnapshot, StoreError> {
        snapshot::MySqlSnapshot::begin(&self.pool)
    }

    /// Reads what the database reports of itself.
    pub fn probe(&self) -> Result<Probe, StoreError> {
        probe::probe(&self.pool)
    }

    /// The server that has taken the lease from this process, if it was the only writer. Then this store refuses everything.
    pub fn taken_by(&self) -> Option<String> {
        self.lease.as_ref().and_then(Lease::taken)
    }

    /// Gives the lease back, so that another server may write. Nothing is written afterwards.
    pub fn release(&self) {
        if let Some(lease) = &self.lease {
            lease.release();
        }
    }

    fn open_with(
        url: &str,
        options: &Options,
        migrations: &'static [&'static str],
        on_wait: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        let pool = Arc::new(pool::Pool::new(Address::parse(url)?, options.clone()));
        let address = (pool.address.database.as_str(), pool.address.shown.as_str());
        replication::check(pool.take()?.get(), address.1)?;
        migrate::check_there(pool.take()?.get(), address, migrations, options.anew.is_some())?;
        // The lease comes before any change: servers that use the older schema go on, and no new one begins meanwhile.
        let held = if options.migrate && migrate::is_older(pool.take()?.get(), address, migrations)? {
            let who = options.writer.as_ref().or(options.beside.as_ref());
            Some(Lease::take(&pool, (LeaseKind::Alone, who.map_or("a migration", String::as_str)), on_wait)?)
        } else {
            None
        };
        let mut link = pool.take()?;
        let migrated = migrate::migrate(link.get(), address, migrations, options.migrate);
        if migrated.is_err() {
            // The connection may hold the lock of migrations.
            link.get().give_up();
        }
        migrated?;
        let (flavour, name) = (link.get().server.flavour, link.get().name);
        drop(link);
        let holder = match (&options.writer, &options.beside) {
            (Some(who), _) => Some((LeaseKind::Alone, who.as_str())),
            (None, Some(who)) => Some((LeaseKind::Beside, who.as_str())),
            (None, None) => None,
        };
        let held = held.filter(|_| holder.is_some_and(|(kind, _)| kind == LeaseKind::Alone));
        let take = || holder.map(|holder| Lease::take(&pool, holder, on_wait)).transpose();
        let lease = held.map_or_else(take, |held| Ok(Some(held)))?;
        Ok(Self {
            pool,
            flavour,
            lease,
            row_cache: row_cache::RowCache::default(),
            name,
            follower: Mutex::default(),
            tapped: Tapped::default(),
            marked: Marked::default(),
            archives: Archives::new(options.archives.clone(), Arc::new(SystemDisk)),
        })
    }
}
