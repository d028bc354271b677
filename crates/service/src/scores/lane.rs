//! The queues in front of the score work, and how callers hear.
//!
//! A store with one writer has one lane. Elsewhere players spread over several, each with a transaction of its own in
//! flight; what concerns more than one player goes through the first.

use super::command::{Done, Request};
use super::work::{ScoreWork, Shared, StoreTimes};
use crate::failure::{Failure, Fault};
use crate::requests::Running;
use std::sync::{Arc, Mutex, PoisonError};
use tally_lanes::{Bounds, Lane, LaneThread, Pass, Refused, Reply, Stats, Times};
use tally_rules::Refusal;
use tokio::sync::oneshot;

/// What a caller hears.
pub(crate) type Answer = Result<Result<Done, Refusal>, Fault>;

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
        let start = |number| {
            let times = Arc::<StoreTimes>::default();
            let work = ScoreWork::new(Arc::clone(&shared), number, Arc::clone(&times));
            let (lane, thread) = Lane::start(&format!("scores-{number}"), bounds, work)?;
            Ok(One { lane, thread: Mutex::new(Some(thread)), times })
        };
        let lanes = (0..shared.lanes_in_all()).map(start).collect::<std::io::Result<_>>()?;
        Ok(Self { shared, lanes })
    }

    /// The lane of a request; what concerns several goes through the first.
    fn of(&self, request: &Request) -> &Lane<ScoreWork, Waiter> {
        &self.lanes[self.shared.lane_of(request).unwrap_or(0)].lane
    }

    /// The same of neighbours.
    fn of_all(&self, requests: &[(Request, Option<Running>)]) -> &Lane<ScoreWork, Waiter> {
        let mut lanes = requests.iter().map(|(request, _)| self.shared.lane_of(request));
        let first = lanes.next().flatten();
        &self.lanes[first.filter(|_| lanes.all(|lane| lane == first)).unwrap_or(0)].lane
    }

    /// One request; the caller waits, the lane does not.
    pub(crate) async fn ask(&self, request: Request, running: Option<Running>) -> Result<Done, Failure> {
        let (tell, told) = oneshot::channel();
        let waiter = Waiter { _running: running, to: To::One(tell) };
        self.of(&request).submit(request, waiter).map_err(refused)?;
        Ok(told.await.map_err(|_| lost())???)
    }

    /// Neighbours in one lane, or none of them; answers in order. They have their instants in that order, so where they
    /// are of several lanes they pass together.
    pub(crate) async fn ask_all(
        &self,
        requests: Vec<(Request, Option<Running>)>,
    ) -> Result<Vec<Answer>, Failure> {
        let (tell, told) = oneshot::channel();
        let answers = Arc::new(Collector {
            state: Mutex::new((requests.iter().map(|_| None).collect(), requests.len(), Some(tell))),
        });
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let lane = self.of_all(&requests);
        let many = requests
            .into_iter()
            .enumerate()
            .map(|(at, (request, running))| {
                (request, Waiter { _running: running, to: To::Place(Arc::clone(&answers), at) })
            })
            .collect();
        lane.submit_all(many).map_err(refused)?;
        told.await.map_err(|_| lost())
    }

    /// Waits until every batch that is being decided now has been published; none is begun until this is dropped. Blocks.
    pub(crate) fn hold(&self) -> Result<Pass, Failure> {
        Ok(self.shared.pass(true)?)
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

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lanes.len()
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

/// Where an answer goes. Dropping the receiving end drops only the wait.
pub(crate) struct Waiter {
    /// Ends with the answer, so that a retry is told "in progress" exactly as long as it is.
    _running: Option<Running>,
    to: To,
}

enum To {
    One(oneshot::Sender<Answer>),
    Place(Arc<Collector>, usize),
}

/// Answers so far, how many are missing, and who waits for all.
type Collected = (Vec<Option<Answer>>, usize, Option<oneshot::Sender<Vec<Answer>>>);

struct Collector {
    state: Mutex<Collected>,
}

impl Reply<Answer> for Waiter {
    fn send(self, answer: Answer) {
        let Self { _running, to } = self;
        drop(_running);
        match to {
            // Nobody listens any more: the client has hung up, its work is done all the same.
            To::One(tell) => drop(tell.send(answer)),
            To::Place(collector, at) => collector.put(at, answer),
        }
    }
}

impl Collector {
    fn put(&self, at: usize, answer: Answer) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (answers, missing, tell) = &mut *state;
        answers[at] = Some(answer);
        *missing -= 1;
        if *missing == 0 {
            let all = answers.drain(..).map(|one| one.expect("every place was answered")).collect();
            if let Some(tell) = tell.take() {
                drop(tell.send(all));
            }
        }
    }
}

fn refused<T>(refused: Refused<T>) -> Failure {
    Failure::Fault(match refused {
        Refused::Full(_) => Fault::Overloaded,
        Refused::Draining(_) => Fault::Draining,
    })
}

fn lost() -> Failure {
    Failure::Fault(Fault::OutcomeUnknown("the score lane stopped before it answered".into()))
}
