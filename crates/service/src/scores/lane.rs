//! The queues in front of the score work.
//!
//! A store with one writer has one lane. Elsewhere players spread over several, each with a transaction of its own in
//! flight; what concerns more than the players of one lane goes through another one.

use super::command::{Done, Request};
use super::shared::Shared;
use super::work::{ScoreWork, StoreTimes};
use crate::failure::Failure;
use crate::requests::Running;
use crate::waiting::{self, Told};
use std::sync::{Arc, Mutex, PoisonError};
use tally_lanes::{Bounds, Lane, LaneThread, Pass, Stats, Times, Turns};

/// What a caller hears.
pub(crate) type Answer = Told<Done>;

type Waiter = waiting::Waiter<Done>;

/// The lanes of scores.
pub(crate) struct ScoreLanes {
    shared: Arc<Shared>,
    lanes: Vec<One>,
}

/// One of them.
struct One {
    lane: Lane<ScoreWork, Waiter>,
    thread: Mutex<Option<LaneThread<ScoreWork>>>,
    times: Arc<StoreTimes>,
}

impl ScoreLanes {
    pub(crate) fn start(shared: Shared, bounds: Bounds) -> std::io::Result<Self> {
        let shared = Arc::new(shared);
        let turns: Vec<Turns> = (0..=shared.store.shards()).map(|_| Turns::default()).collect();
        let start = |number| {
            let times = Arc::<StoreTimes>::default();
            let work = ScoreWork::new(Arc::clone(&shared), number, Arc::clone(&times));
            // Those of one database; that of several has nobody beside it.
            let turns = turns[number / shared.lanes].clone();
            let (lane, thread) = Lane::start_among(&format!("scores-{number}"), bounds, turns, work)?;
            Ok(One { lane, thread: Mutex::new(Some(thread)), times })
        };
        let lanes = (0..=shared.lane_of_several()).map(start).collect::<std::io::Result<_>>()?;
        Ok(Self { shared, lanes })
    }

    /// The lane of a request.
    fn of(&self, request: &Request) -> &Lane<ScoreWork, Waiter> {
        &self.lanes[self.shared.lane_of(request).unwrap_or(self.shared.lane_of_several())].lane
    }

    /// The same of neighbours.
    fn of_all(&self, requests: &[(Request, Option<Running>)]) -> &Lane<ScoreWork, Waiter> {
        let mut lanes = requests.iter().map(|(request, _)| self.shared.lane_of(request));
        let first = lanes.next().flatten();
        let one = first.filter(|_| lanes.all(|lane| lane == first));
        &self.lanes[one.unwrap_or(self.shared.lane_of_several())].lane
    }

    /// One request; the caller waits, the lane does not.
    pub(crate) async fn ask(&self, request: Request, running: Option<Running>) -> Result<Done, Failure> {
        waiting::ask(self.of(&request), request, running.into_iter().collect()).await
    }

    /// Neighbours in one lane, or none of them; answers in order. They have their instants in that order, so where they
    /// are of several lanes they pass together.
    pub(crate) async fn ask_all(
        &self,
        requests: Vec<(Request, Option<Running>)>,
    ) -> Result<Vec<Answer>, Failure> {
        let lane = self.of_all(&requests);
        let many = requests.into_iter().map(|(request, running)| (request, running.into_iter().collect()));
        waiting::ask_all(lane, many.collect()).await
    }

    /// Waits until every batch that is being decided now has been published; none is begun until this is dropped. Blocks.
    pub(crate) fn hold(&self) -> Result<Pass, Failure> {
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

    /// How many there are for players.
    pub(crate) fn count(&self) -> usize {
        self.shared.lanes_in_all()
    }

    /// Completes what was accepted. Blocks.
    pub(crate) fn drain(&self) {
        self.lanes.iter().for_each(|one| one.lane.drain());
        for one in &self.lanes {
            let thread = one.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if thread.is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("a score lane panicked");
            }
        }
    }
}
