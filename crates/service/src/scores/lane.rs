//! The lanes of scores.
//!
//! A store with one writer has one lane. On other stores, requests of one player each spread over several lanes, each with a
//! transaction in flight. Requests of several players go through one more lane.

use super::batch::{Listed, ScoreBatchHandler, ScoreReply, ScoreRequest, StoreTimes, on_kind};
use super::shared::Shared;
use crate::failure::Failure;
use crate::reply::{self, GuardedRequest};
use crate::requests::KeyGuard;
use crate::settings::Background;
use std::sync::{Arc, Mutex, PoisonError};
use tally_lanes::{AffinityGuard, BarrierGuard, Lane, LaneAffinity, LaneLimits, LaneThread, Stats, Times};
use tally_rules::Micros;

type Pending = reply::PendingReply<ScoreReply>;

pub(crate) struct ScoreLanes {
    shared: Arc<Shared>,
    lanes: Vec<One>,
    /// The lane affinity of each shard, if it has several lanes.
    affinities: Vec<LaneAffinity>,
}

struct One {
    lane: Lane<ScoreBatchHandler, Pending>,
    thread: Mutex<Option<LaneThread<ScoreBatchHandler>>>,
    times: Arc<StoreTimes>,
}

impl ScoreLanes {
    pub(crate) fn start(shared: Shared, bounds: LaneLimits) -> std::io::Result<Self> {
        let shared = Arc::new(shared);
        let start = |number| {
            let times = Arc::<StoreTimes>::default();
            let work = ScoreBatchHandler::new(Arc::clone(&shared), number, Arc::clone(&times));
            let name = format!("scores-{number}");
            let (lane, thread) = match shared.background {
                Background::Threads => {
                    let (lane, thread) = Lane::start(&name, bounds, work)?;
                    (lane, Some(thread))
                }
                Background::ByHand(_) => (Lane::by_hand(&name, bounds, work), None),
            };
            Ok(One { lane, thread: Mutex::new(thread), times })
        };
        let lanes = (0..=shared.lane_of_several()).map(start).collect::<std::io::Result<_>>()?;
        let shards = if shared.lanes_in_all() == 1 { 0 } else { shared.store.shards() };
        let affinities = (0..shards).map(|_| LaneAffinity::new(shared.lanes)).collect();
        Ok(Self { shared, lanes, affinities })
    }

    /// The shard of a request and the hash of its player, if it concerns one player and there are several lanes.
    fn key(&self, request: &ScoreRequest) -> Option<(usize, u64)> {
        let player = on_kind!(request, one => one.player()).filter(|_| !self.affinities.is_empty())?;
        let shard = self.shared.store.shard_of(player);
        Some((shard, self.affinities[shard].hash(player.as_bytes())))
    }

    /// The lane affinity of a request, and its lane.
    fn assign(&self, request: &ScoreRequest) -> (Option<AffinityGuard>, &Lane<ScoreBatchHandler, Pending>) {
        let assigned = self.key(request).map(|(shard, hash)| (shard, self.affinities[shard].assign(hash)));
        let number = match &assigned {
            // A batch of one shard stays a transaction of one shard.
            Some((shard, guard)) => shard * self.shared.lanes + guard.lane(),
            None => self.shared.lane_of_several(),
        };
        (assigned.map(|(_, guard)| guard), &self.lanes[number].lane)
    }

    /// The lane affinity of neighbours in one lane; those of several lanes have none.
    fn assign_all(&self, requests: &[GuardedRequest<ScoreRequest>]) -> (Vec<Option<AffinityGuard>>, usize) {
        let none = || (requests.iter().map(|_| None).collect(), self.shared.lane_of_several());
        let keys: Option<Vec<(usize, u64)>> = requests.iter().map(|one| self.key(&one.request)).collect();
        let Some(((shard, first), rest)) = keys.as_deref().and_then(|keys| keys.split_first()) else {
            return none();
        };
        let (affinity, first) = (&self.affinities[*shard], self.affinities[*shard].assign(*first));
        let lane = first.lane();
        let beside =
            |(of, hash): &(usize, u64)| (of == shard).then(|| affinity.assign_to(*hash, lane)).flatten();
        let others: Option<Vec<AffinityGuard>> = rest.iter().map(beside).collect();
        let Some(others) = others else { return none() };
        let all = std::iter::once(first).chain(others).map(Some).collect();
        (all, shard * self.shared.lanes + lane)
    }

    /// One request; the caller waits, the lane does not.
    pub(crate) async fn ask<K: Listed>(
        &self,
        request: K,
        running: Option<KeyGuard>,
    ) -> Result<K::Reply, Failure> {
        self.shared.dispatcher.learn_runtime();
        let request = request.into();
        let (guard, lane) = self.assign(&request);
        let reply = reply::ask(lane, request, running.into_iter().collect(), guard).await?;
        Ok(K::typed(reply)?)
    }

    /// The same on a thread that may block.
    pub(crate) fn ask_blocking<K: Listed>(
        &self,
        request: K,
        running: Option<KeyGuard>,
    ) -> Result<K::Reply, Failure> {
        let request = request.into();
        let (guard, lane) = self.assign(&request);
        let entry = GuardedRequest { request, running: running.into_iter().collect(), guard };
        Ok(K::typed(reply::ask_blocking(lane, entry, self.shared.background)?)?)
    }

    /// One step of a lane without a thread; returns whether there was anything to do.
    pub(crate) fn step(&self, lane: usize) -> bool {
        self.lanes[lane].lane.step()
    }

    /// Neighbours in one lane, or none of them; replies in order. Their instants are in that order, so those of several
    /// lanes pass together.
    pub(crate) async fn ask_all<K: Listed>(
        &self,
        requests: Vec<(K, Option<KeyGuard>)>,
    ) -> Result<Vec<Result<K::Reply, Failure>>, Failure> {
        self.shared.dispatcher.learn_runtime();
        let entry = |(request, running): (K, Option<KeyGuard>)| {
            let running = running.into_iter().collect();
            GuardedRequest { request: request.into(), running, guard: None }
        };
        let mut entries: Vec<_> = requests.into_iter().map(entry).collect();
        let (guards, number) = self.assign_all(&entries);
        entries.iter_mut().zip(guards).for_each(|(entry, guard)| entry.guard = guard);
        let replies = reply::ask_all(&self.lanes[number].lane, entries).await?;
        Ok(replies.into_iter().map(|reply| Ok(K::typed(reply??)?)).collect())
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Waits until every batch that is being decided now has been published. No batch begins until this is dropped. Blocks.
    pub(crate) fn hold(&self) -> Result<BarrierGuard, Failure> {
        Ok(self.shared.pass_alone().map_err(|(_, fault)| fault)?)
    }

    /// How long the store took to read and lock, and to write and commit.
    pub(crate) fn times(&self) -> (Times, Times) {
        let add = |(read, commit): (Times, Times), one: &One| {
            (read.and(one.times.read.read()), commit.and(one.times.commit.read()))
        };
        self.lanes.iter().fold(Default::default(), add)
    }

    /// Counters of all of them together.
    pub(crate) fn stats(&self) -> Stats {
        self.lanes.iter().fold(Stats::default(), |stats, one| stats.and(one.lane.stats()))
    }

    /// The newest instant given to a score.
    pub(crate) fn newest_instant(&self) -> Micros {
        self.shared.instants.lock().unwrap_or_else(PoisonError::into_inner).newest()
    }

    /// How many there are for players.
    pub(crate) fn count(&self) -> usize {
        self.shared.lanes_in_all()
    }

    /// Completes all accepted requests. Blocks.
    pub(crate) fn drain(&self) {
        self.lanes.iter().for_each(|one| one.lane.drain());
        for one in &self.lanes {
            while one.lane.step() {}
            let thread = one.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if thread.is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("a score lane panicked");
            }
        }
    }
}
