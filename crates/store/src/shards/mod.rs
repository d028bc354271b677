//! Records spread by player over several databases, without anything between them and us.
//!
//! - `home`: which shard a player's records are in
//! - `split`: plans and changes shard by shard; `run`: a transaction on each; `reads`: everything else that is asked
//! - `directory`: boards, which are true on the first shard and told to the others; `feeds`: what other servers have changed
//! - `layout`: which shard a database is, so that a wrong list is refused; `reshard`, `moving`: another number of them
//! - `upgrade`: what earlier releases may have left
//!
//! No transaction spans two databases. Servers with ranks outside write side by side; one with ranks in memory keeps others away by a
//! lease on every shard: they are taken in order, so whoever has the first may have the others. While a shard is away, what concerns
//! it fails and what concerns others does not. Not here: databases that are no MySQL or MariaDB.

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
pub use moving::Progress;
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
    /// Opens the databases of a list, making their tables where they are empty. All of them know the boards of the first
    /// afterwards.
    pub fn open(urls: &[String], options: &Options) -> Result<Self, StoreError> {
        Self::open_telling(urls, options, &mut |_| ())
    }

    /// The same; `tell` hears what is waited for.
    pub fn open_telling(
        urls: &[String],
        options: &Options,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        let all = connect(urls, options, tell)?;
        layout::check(&all)?;
        upgrade::upgrade(&all)?;
        let inner = Inner::new(all, options.beside.is_some());
        inner.catch_up_all()?;
        Ok(Self { inner })
    }

    /// Opens them beside a process that writes: for reading only, and nothing is mended.
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
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Arc<MySqlStore>>, StoreError> {
    if urls.is_empty() || urls.len() > SHARDS_MAX {
        return Err(StoreError::Layout(format!("a store has 1 to {SHARDS_MAX} shards, not {}", urls.len())));
    }
    let mut all: Vec<Arc<MySqlStore>> = Vec::new();
    for url in urls {
        let store = MySqlStore::open_telling(url, options, tell)?;
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

    /// The database of a transaction, and the transaction as that one knows it.
    fn place(&self, batch: BatchId) -> (&MySqlStore, BatchId) {
        (&self.all[usize::from(batch.shard)], BatchId { shard: 0, ..batch })
    }

    /// Some transactions by their databases.
    fn places(batches: &[BatchId]) -> BTreeMap<usize, Vec<BatchId>> {
        let mut places: BTreeMap<usize, Vec<BatchId>> = BTreeMap::new();
        for batch in batches {
            places.entry(batch.shard.into()).or_default().push(BatchId { shard: 0, ..*batch });
        }
        places
    }

    /// A shard as people count and as messages show it.
    fn name(&self, shard: usize) -> String {
        format!("shard {} of {}", shard + 1, self.all.len())
    }

    /// That a shard is away, by its name; `alone`: it is the only one that the transaction concerns.
    fn away(&self, shard: usize, alone: bool, why: String) -> StoreError {
        StoreError::ShardUnavailable { shard: self.name(shard), alone, why }
    }
}
