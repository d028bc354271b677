//! The queue in front of the score work, and how callers hear.

use super::command::{Done, Request};
use super::work::{ScoreWork, StoreTimes};
use crate::clock::Clock;
use crate::failure::{Failure, Fault};
use crate::requests::Running;
use crate::settings::Settings;
use std::sync::{Arc, Mutex, PoisonError};
use tally_lanes::{Lane, LaneThread, Refused, Reply, Stats};
use tally_rules::Refusal;
use tally_rules::instant::Instants;
use tally_store::Store;
use tokio::sync::oneshot;

/// What a caller hears.
pub(crate) type Answer = Result<Result<Done, Refusal>, Fault>;

/// The lane of scores.
pub(crate) struct ScoreLane {
    lane: Lane<ScoreWork, Waiter>,
    thread: Mutex<Option<LaneThread<ScoreWork>>>,
    times: Arc<StoreTimes>,
}

impl ScoreLane {
    pub(crate) fn start(
        store: Arc<dyn Store>,
        clock: Clock,
        instants: Instants,
        settings: &Settings,
    ) -> std::io::Result<Self> {
        let keep_micros = settings.idempotency_keep_micros;
        let times = Arc::<StoreTimes>::default();
        let work = ScoreWork::new(store, clock, instants, keep_micros, Arc::clone(&times));
        let (lane, thread) = Lane::start("scores", settings.lane, work)?;
        Ok(Self { lane, thread: Mutex::new(Some(thread)), times })
    }

    /// One request; the caller waits, the lane does not.
    pub(crate) async fn ask(&self, request: Request, running: Option<Running>) -> Result<Done, Failure> {
        let (tell, told) = oneshot::channel();
        let waiter = Waiter { _running: running, to: To::One(tell) };
        self.lane.submit(request, waiter).map_err(refused)?;
        Ok(told.await.map_err(|_| lost())???)
    }

    /// Neighbours in the lane, or none of them; answers in order.
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
        let many = requests
            .into_iter()
            .enumerate()
            .map(|(at, (request, running))| {
                (request, Waiter { _running: running, to: To::Place(Arc::clone(&answers), at) })
            })
            .collect();
        self.lane.submit_all(many).map_err(refused)?;
        told.await.map_err(|_| lost())
    }

    /// Waits until everything that is in the lane now has been answered. Blocks.
    pub(crate) fn pass_fence(&self) -> Result<(), Failure> {
        let (tell, told) = oneshot::channel();
        let waiter = Waiter { _running: None, to: To::One(tell) };
        self.lane.submit(Request::Fence, waiter).map_err(refused)?;
        told.blocking_recv().map_err(|_| lost())???;
        Ok(())
    }

    pub(crate) fn times(&self) -> &StoreTimes {
        &self.times
    }

    pub(crate) fn stats(&self) -> Stats {
        self.lane.stats()
    }

    /// Completes what was accepted. Blocks.
    pub(crate) fn drain(&self) {
        self.lane.drain();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the score lane panicked");
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
