//! Records spread by player over several databases that do not know each other.
//!
//! - `home`: which shard a player's records are in; `split`: read sets and write sets by shard
//! - `run`: a transaction on each; `reads`, `coordination`, `maintenance`: the other traits
//! - `directory`: leaderboards, which the first shard decides and the others copy; `feeds`: the change feeds of all
//! - `layout`: which shard a database is, so that a wrong list is refused; `reshard`, `moving`: another number of them
//! - `breaker`: a shard that did not answer fails at once for a short time; `upgrade`: what earlier releases may have left
//!
//! No transaction spans two databases. Servers with ranks in Redis write side by side. A server with ranks in memory holds a lease on every
//! shard; it takes them in order, so the holder of the first can get the others. While a shard is unavailable, only what concerns it
//! fails. Not here: databases other than MySQL and MariaDB.

mod breaker;
mod contests;
mod coordination;
mod directory;
mod feeds;
mod home;
mod layout;
mod ledger;
mod maintenance;
mod moving;
mod reads;
mod reshard;
mod run;
mod snapshot;
mod split;
mod upgrade;

pub use layout::check_alone;
pub use moving::MoveProgress;
pub use reshard::{Resharded, reshard};

use crate::mysql::{MySqlStore, Options};
use crate::plan::BatchId;
use crate::{SHARDS_MAX, StoreError};
use breaker::CircuitBreaker;
use directory::Directory;
use feeds::Feeds;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Several databases that are one store.
#[derive(Debug)]
pub struct Shards {
    inner: Inner,
}

#[derive(Debug)]
struct Inner {
    all: Vec<Arc<MySqlStore>>,
    directory: Directory,
    breaker: CircuitBreaker,
    feeds: Feeds,
    /// Whether other servers may write as well.
    shared: bool,
}

impl Shards {
    /// Opens the databases of a list, and creates the tables of empty ones. Afterwards all of them have the boards of the
    /// first.
    pub fn open(urls: &[String], options: &Options) -> Result<Self, StoreError> {
        Self::open_reporting(urls, options, &mut |_| ())
    }

    /// Like [`Self::open`]; `on_wait` gets a message about each wait.
    pub fn open_reporting(
        urls: &[String],
        options: &Options,
        on_wait: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        let all = connect(urls, options, on_wait)?;
        layout::check(&all)?;
        upgrade::upgrade(&all)?;
        let inner = Inner::new(all, options.beside.is_some());
        inner.catch_up_all()?;
        Ok(Self { inner })
    }

    /// Opens the databases beside a process that writes, only for reading. Nothing is repaired.
    pub fn observe(urls: &[String], options: &Options) -> Result<Self, StoreError> {
        let options = Options { writer: None, beside: None, ..options.clone() };
        let all = connect(urls, &options, &mut |_| ())?;
        layout::check_set(&all)?;
        Ok(Self { inner: Inner::new(all, false) })
    }

    /// The databases, in order.
    pub fn each(&self) -> &[Arc<MySqlStore>] {
        &self.inner.all
    }
}

fn connect(
    urls: &[String],
    options: &Options,
    on_wait: &mut dyn FnMut(&str),
) -> Result<Vec<Arc<MySqlStore>>, StoreError> {
    if urls.is_empty() || urls.len() > SHARDS_MAX {
        return Err(StoreError::Layout(format!("a store has 1 to {SHARDS_MAX} shards, not {}", urls.len())));
    }
    let mut all: Vec<Arc<MySqlStore>> = Vec::new();
    for url in urls {
        let store = MySqlStore::open_reporting(url, options, on_wait)?;
        if let Some(at) = all.iter().position(|other| other.url() == store.url()) {
            let (url, first, second) = (store.url(), at + 1, all.len() + 1);
            return Err(StoreError::Layout(format!("shards {first} and {second} are the same: {url}")));
        }
        all.push(Arc::new(store));
    }
    Ok(all)
}

impl Inner {
    fn new(all: Vec<Arc<MySqlStore>>, shared: bool) -> Self {
        let directory = Directory::of(all.len());
        Self { all, directory, breaker: CircuitBreaker::default(), feeds: Feeds::default(), shared }
    }

    /// The database of a transaction, and the id of the transaction in that database.
    fn place(&self, batch: BatchId) -> (&MySqlStore, BatchId) {
        (&self.all[usize::from(batch.shard)], BatchId { shard: 0, ..batch })
    }

    /// Groups transactions by their databases.
    fn places(batches: &[BatchId]) -> BTreeMap<usize, Vec<BatchId>> {
        let mut places: BTreeMap<usize, Vec<BatchId>> = BTreeMap::new();
        for batch in batches {
            places.entry(batch.shard.into()).or_default().push(BatchId { shard: 0, ..*batch });
        }
        places
    }

    /// The name of a shard in messages, counted from 1.
    fn name(&self, shard: usize) -> String {
        format!("shard {} of {}", shard + 1, self.all.len())
    }

    /// The error of an unavailable shard; `alone`: the transaction concerns only this shard.
    fn unavailable(&self, shard: usize, alone: bool, why: String) -> StoreError {
        StoreError::ShardUnavailable { shard: self.name(shard), alone, why }
    }
}
