//! The order of one part of a board in Redis, and the connection that all parts share.

use super::address::Address;
use super::asks::{Ask, Want, decimal};
use super::client::{Answers, Redis, Request};
use super::gather::Line;
use super::keys::{self, PartitionKeys};
use super::load::Loader;
use super::member_codec::Codec;
use super::reader::Reader;
use super::replay::Replay;
use super::script::Script;
use super::{Options, RankingError, looks, reply};
use crate::page::Ranked;
use crate::reads::Reads;
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tally_rules::PlayerId;
use tally_rules::definition::{Definition, Ranking};

/// Entries that a purge looks at in one go.
const PURGE_AT_ONCE: u64 = 1_000;

/// What is at an address, for messages.
const RANKING: &str = "the ranking";

/// Orders in a Redis or a cluster. Clones share its connections.
#[derive(Clone, Debug)]
pub struct RedisBackend {
    redis: Arc<Redis>,
}

impl RedisBackend {
    /// Connects to `redis://…` or `redis-cluster://…`. Threads that ask it may block and must not be those of an
    /// asynchronous runtime.
    pub fn connect(url: &str, options: &Options) -> Result<Self, RankingError> {
        let redis = Redis::new(Address::parse(url, RANKING)?, options)?;
        redis.connect()?;
        Ok(Self { redis: Arc::new(redis) })
    }

    /// The same; one that does not answer now is connected to when it is needed.
    pub fn open(url: &str, options: &Options) -> Result<Self, RankingError> {
        let redis = Redis::new(Address::parse(url, RANKING)?, options)?;
        redis.connect_or_later()?;
        Ok(Self { redis: Arc::new(redis) })
    }

    /// The order of a part. Nothing is asked yet.
    pub fn part(&self, board: u32, part: u64, definition: &Definition) -> RedisWindow {
        let address = self.redis.address();
        let dense = definition.ranking == Ranking::Dense;
        // Distinct scores are counted in one place.
        let partitions = if dense { 1 } else { address.partitions };
        let keys = keys::of_window(&address.prefix, board, part, partitions, dense);
        let inner = Inner {
            redis: Arc::clone(&self.redis),
            codec: Codec::new(definition),
            ranking: definition.ranking,
            totals: keys.iter().map(|_| AtomicU64::new(0)).collect(),
            lines: keys.iter().map(|_| Arc::default()).collect(),
            keys,
        };
        RedisWindow { inner: Arc::new(inner) }
    }

    /// Says which store the rankings are of, before anything is loaded. One Redis keeps those of several stores apart by prefix;
    /// what was loaded from another store is never read or written, and loading over it is refused.
    pub fn set_store(&self, id: [u8; 16]) {
        self.redis.set_store(id);
    }

    /// Where it is, without the password.
    pub fn address(&self) -> String {
        self.redis.address().to_string()
    }

    /// One player's rank in each of several parts, all asked at once. What fails fails alone.
    pub fn ranks(&self, items: &[(&RedisWindow, &PlayerId)]) -> Vec<Result<Option<Ranked>, RankingError>> {
        looks::ranks(&self.redis, items)
    }
}

/// The order of one part. Clones are the same order.
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
    /// Readings of each partition that are under way.
    lines: Vec<Arc<Line>>,
}

impl RedisWindow {
    /// Asks it. The first question that fails is the answer to all of them.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        let reader = Reader::new(self);
        let answer = with(&reader);
        reader.end(answer)
    }

    /// The same without keeping a thread waiting: `with` is run anew whenever what it has asked for is there.
    pub async fn read_later<T>(&self, with: impl Fn(&dyn Reads) -> T) -> Result<T, RankingError> {
        let mut replay = Replay::default();
        loop {
            let wanted = match replay.run(|| self.read(&with)) {
                Ok(answer) => return answer,
                Err(wanted) => wanted,
            };
            replay.tell(self.hear_later(wanted).await);
        }
    }

    /// Answers to what a reading wants, without keeping a thread.
    async fn hear_later(&self, wanted: Vec<Request>) -> Answers {
        if !wanted.iter().all(Line::takes) {
            return self.redis().all_later(wanted).await;
        }
        let lines = wanted.into_iter().map(|request| {
            let at = self.inner.keys.iter().position(|of| of.names == request.keys);
            self.inner.lines[at.expect("a reading asks its own part")].ask(self.redis(), request)
        });
        join_all(lines).await
    }

    /// How many players it has.
    pub fn total(&self) -> Result<u64, RankingError> {
        Ok(self.totals()?.iter().sum())
    }

    /// How many players it had by the last answer of each partition.
    pub fn known_total(&self) -> u64 {
        self.inner.totals.iter().map(|total| total.load(Ordering::Relaxed)).sum()
    }

    /// Whether it may be read: everything that a load has written is there, and no change was lost since.
    pub fn is_ready(&self) -> Result<bool, RankingError> {
        match self.total() {
            Ok(_) => Ok(true),
            Err(RankingError::Lost | RankingError::Loading) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The ranks of some players in one round trip per hundred of them, all sent together.
    pub fn ranks(&self, players: &[PlayerId]) -> Vec<Result<Option<Ranked>, RankingError>> {
        let items: Vec<_> = players.iter().map(|player| (self, player)).collect();
        looks::ranks(self.redis(), &items)
    }

    /// A player's rank in each of several parts of one Redis, all asked at once. What fails fails alone.
    pub(crate) fn ranks_in(items: &[(&Self, &PlayerId)]) -> Vec<Result<Option<Ranked>, RankingError>> {
        items.first().map_or_else(Vec::new, |(part, _)| looks::ranks(part.redis(), items))
    }

    /// Begins to load it: whatever was there is gone, and it is not read until the load is finished. `epoch` is random.
    /// Records must be read from the store after this: a change that was published before is not.
    pub fn load(&self, epoch: u64) -> Result<Loader, RankingError> {
        Loader::begin(self, epoch, |_| false)
    }

    /// The same of partitions that are lost, and of these; the others stay.
    pub(crate) fn load_lost(&self, epoch: u64, also: &BTreeSet<usize>) -> Result<Loader, RankingError> {
        Loader::begin(self, epoch, |partition| !also.contains(&partition))
    }

    /// Deletes it.
    pub fn forget(&self) -> Result<(), RankingError> {
        let requests: Vec<Request> =
            (0..self.partitions()).map(|at| self.request(Script::Forget, at, Vec::new())).collect();
        self.redis().all(&requests).into_iter().try_for_each(|answer| answer.map(drop))
    }

    /// Forgets players who went with an older version than this, when no change older than that can still arrive.
    /// Gives how many.
    pub fn purge(&self, before: u64) -> Result<u64, RankingError> {
        let mut gone = 0;
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
                gone += reply::number(&reply::next(&mut values)?)?;
                if cursor != 0 {
                    next.push((at, cursor));
                }
            }
            cursors = next;
        }
        Ok(gone)
    }

    /// The same of each partition.
    pub(super) fn totals(&self) -> Result<Vec<u64>, RankingError> {
        Ok(self.ask_everywhere(&Ask::default(), Want::Kept)?.iter().map(|answer| answer.total).collect())
    }

    /// An answer has said how many players a partition has.
    pub(super) fn saw(&self, partition: usize, total: u64) {
        self.inner.totals[partition].store(total, Ordering::Relaxed);
    }

    pub(super) fn redis(&self) -> &Redis {
        &self.inner.redis
    }

    /// The same for clones and for nothing else.
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
