//! The ranking of one window in Redis, and the connection that all windows share.

use super::address::Address;
use super::client::{Answers, Redis, Request};
use super::coalesce::ReadQueue;
use super::keys::{self, PartitionKeys};
use super::load::Loader;
use super::member_codec::Codec;
use super::queries::{PartitionQuery, PlayerFields, decimal};
use super::reader::Reader;
use super::reexecute::ReexecutedRead;
use super::script::Script;
use super::{Options, RankingError, lookups, reply};
use crate::page::Ranked;
use crate::reads::Reads;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tally_rules::PlayerId;
use tally_rules::definition::{Definition, Ranking};

/// Entries that one request of a purge scans.
const PURGE_AT_ONCE: u64 = 1_000;

/// The name of the address in messages.
const RANKING: &str = "the ranking";

/// Rankings in a Redis or a cluster. Clones share its connections.
#[derive(Clone, Debug)]
pub struct RedisBackend {
    redis: Arc<Redis>,
}

impl RedisBackend {
    /// Connects to `redis://…` or `redis-cluster://…`. Calls block, so they must not run on threads of an asynchronous
    /// runtime.
    pub fn connect(url: &str, options: &Options) -> Result<Self, RankingError> {
        let redis = Redis::new(Address::parse(url, RANKING)?, options)?;
        redis.connect()?;
        Ok(Self { redis: Arc::new(redis) })
    }

    /// Like [`Self::connect`]. A server that does not answer now is connected to when it is needed.
    pub fn open(url: &str, options: &Options) -> Result<Self, RankingError> {
        let redis = Redis::new(Address::parse(url, RANKING)?, options)?;
        redis.connect_or_later()?;
        Ok(Self { redis: Arc::new(redis) })
    }

    /// The ranking of a window. This sends no request.
    pub fn window(&self, board: u32, window: u64, definition: &Definition) -> RedisWindow {
        let address = self.redis.address();
        let dense = definition.ranking == Ranking::Dense;
        // Distinct scores can only be counted in one partition.
        let partitions = if dense { 1 } else { address.partitions };
        let keys = keys::of_window(&address.prefix, board, window, partitions, dense);
        let inner = Inner {
            redis: Arc::clone(&self.redis),
            codec: Codec::new(definition),
            ranking: definition.ranking,
            totals: keys.iter().map(|_| AtomicU64::new(0)).collect(),
            read_queues: keys.iter().map(|_| Arc::default()).collect(),
            keys,
        };
        RedisWindow { inner: Arc::new(inner) }
    }

    pub(super) fn redis(&self) -> &Redis {
        &self.redis
    }

    /// The address, without the password.
    pub fn address(&self) -> String {
        self.redis.address().to_string()
    }

    /// The rank of a player in each of several windows, queried at once. Each fails alone.
    pub fn ranks(&self, items: &[(&RedisWindow, &PlayerId)]) -> Vec<Result<Option<Ranked>, RankingError>> {
        lookups::ranks(&self.redis, items)
    }
}

/// The ranking of one window. Clones are the same ranking.
#[derive(Clone, Debug)]
pub struct RedisWindow {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    redis: Arc<Redis>,
    codec: Codec,
    ranking: Ranking,
    keys: Vec<PartitionKeys>,
    totals: Vec<AtomicU64>,
    /// The waiting reads of each partition.
    read_queues: Vec<Arc<ReadQueue>>,
}

impl RedisWindow {
    /// Runs queries. The first one that fails fails the whole read.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        let reader = Reader::new(self);
        let answer = with(&reader);
        reader.end(answer)
    }

    /// Like [`Self::read`], without blocking a thread: `with` runs again when an answer that it needs has arrived.
    pub async fn read_later<T>(&self, with: impl Fn(&dyn Reads) -> T) -> Result<T, RankingError> {
        let mut reexecuted = ReexecutedRead::default();
        loop {
            let wanted = match reexecuted.run(|| self.read(&with)) {
                Ok(answer) => return answer,
                Err(wanted) => wanted,
            };
            reexecuted.add(self.answers_later(wanted).await);
        }
    }

    /// Sends the requests of a read, without blocking a thread.
    async fn answers_later(&self, wanted: Vec<Request>) -> Answers {
        if !wanted.iter().all(ReadQueue::takes) {
            return self.redis().all_later(wanted).await;
        }
        let reads = wanted.into_iter().map(|request| {
            let at = self.inner.keys.iter().position(|of| of.names == request.keys);
            self.inner.read_queues[at.expect("a read is of its own window")].read(self.redis(), request)
        });
        join_all(reads).await
    }

    /// The number of players.
    pub fn total(&self) -> Result<u64, RankingError> {
        Ok(self.totals()?.iter().sum())
    }

    /// The number of players by the last answer of each partition.
    pub fn known_total(&self) -> u64 {
        self.inner.totals.iter().map(|total| total.load(Ordering::Relaxed)).sum()
    }

    /// Whether it may be read: a load is complete, and no change was lost since.
    pub fn is_ready(&self) -> Result<bool, RankingError> {
        match self.total() {
            Ok(_) => Ok(true),
            Err(RankingError::Lost | RankingError::Loading) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The ranks of some players. There is one request for each hundred, all sent together.
    pub fn ranks(&self, players: &[PlayerId]) -> Vec<Result<Option<Ranked>, RankingError>> {
        let items: Vec<_> = players.iter().map(|player| (self, player)).collect();
        lookups::ranks(self.redis(), &items)
    }

    /// The rank of a player in each of several windows of one Redis, queried at once. Each fails alone.
    pub(crate) fn ranks_in(items: &[(&Self, &PlayerId)]) -> Vec<Result<Option<Ranked>, RankingError>> {
        items.first().map_or_else(Vec::new, |(window, _)| lookups::ranks(window.redis(), items))
    }

    /// Begins a load: the old data is deleted, and reads fail until the load is finished. `epoch` is random. Records
    /// must be read from the store after this, because earlier changes are deleted.
    pub fn load(&self, epoch: u64) -> Result<Loader, RankingError> {
        Loader::begin(self, epoch, |_| false)
    }

    /// Like [`Self::load`], for partitions that are lost and those in `also`. The others stay.
    pub(crate) fn load_lost(&self, epoch: u64, also: &BTreeSet<usize>) -> Result<Loader, RankingError> {
        Loader::begin(self, epoch, |partition| !also.contains(&partition))
    }

    /// Deletes the ranking.
    pub fn forget(&self) -> Result<(), RankingError> {
        let requests: Vec<Request> =
            (0..self.partitions()).map(|at| self.request(Script::Forget, at, Vec::new())).collect();
        self.redis().all(&requests).into_iter().try_for_each(|answer| answer.map(drop))
    }

    /// Deletes the tombstones before this version, when no older change can still arrive. Returns how many.
    pub fn purge(&self, before: u64) -> Result<u64, RankingError> {
        let mut deleted = 0;
        let mut cursors: Vec<(usize, u64)> = (0..self.partitions()).map(|at| (at, 0)).collect();
        while !cursors.is_empty() {
            let one = |(at, cursor): &(usize, u64)| {
                let args = vec![decimal(*cursor), decimal(PURGE_AT_ONCE), before.to_be_bytes().to_vec()];
                self.request(Script::Purge, *at, args)
            };
            let requests: Vec<Request> = cursors.iter().map(one).collect();
            let mut next = Vec::new();
            for ((at, _), answer) in cursors.into_iter().zip(self.redis().all(&requests)) {
                let mut values = reply::list(answer?)?.into_iter();
                let cursor = reply::cursor(reply::next(&mut values)?)?;
                deleted += reply::number(&reply::next(&mut values)?)?;
                if cursor != 0 {
                    next.push((at, cursor));
                }
            }
            cursors = next;
        }
        Ok(deleted)
    }

    /// The number of players of each partition.
    pub(super) fn totals(&self) -> Result<Vec<u64>, RankingError> {
        Ok(self
            .query_everywhere(&PartitionQuery::default(), PlayerFields::Record)?
            .iter()
            .map(|answer| answer.total)
            .collect())
    }

    /// Caches the number of players of a partition.
    pub(super) fn saw(&self, partition: usize, total: u64) {
        self.inner.totals[partition].store(total, Ordering::Relaxed);
    }

    pub(super) fn redis(&self) -> &Redis {
        &self.inner.redis
    }

    /// Equal for clones only.
    pub(super) fn identity(&self) -> *const () {
        Arc::as_ptr(&self.inner).cast()
    }

    pub(super) fn codec(&self) -> &Codec {
        &self.inner.codec
    }

    pub(super) fn ranking(&self) -> Ranking {
        self.inner.ranking
    }

    pub(crate) fn partitions(&self) -> usize {
        self.inner.keys.len()
    }

    pub(super) fn is_split(&self) -> bool {
        self.partitions() > 1
    }

    pub(crate) fn partition_of(&self, player: &PlayerId) -> usize {
        keys::partition(player.as_bytes(), self.partitions())
    }

    pub(super) fn request(&self, script: Script, partition: usize, args: Vec<Vec<u8>>) -> Request {
        let of = &self.inner.keys[partition];
        let mut keys = of.names.clone();
        if script.is_watched() {
            keys.extend(of.watched());
        }
        Request { script, slot: of.slot, keys, args, entries: 0 }
    }
}
