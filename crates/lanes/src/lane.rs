//! The handle of a lane for its callers, and the thread that its owner joins.
//!
//! The handle submits requests and reads counters; it never touches a batch. Dropping the last handle drains the lane, so
//! an unused lane ends by itself. A lane [by hand](Lane::by_hand) has no thread: its owner runs each step, so a simulation
//! decides when.

use crate::batch::{LaneLimits, Waiting};
use crate::handler::{BatchHandler, Reply};
use crate::queue::{Queue, SubmitError};
use crate::run::Runner;
use crate::stats::{Counters, Stats};
use crate::sync::{Builder, JoinHandle, Mutex};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// A cheap handle of a running lane; clones are handles of the same lane.
///
/// One lane has one type of reply. Use boxed closures if call sites differ.
pub struct Lane<W: BatchHandler, R: Reply<Result<W::Answer, W::Fault>>> {
    shared: Arc<Shared<W, R>>,
}

/// A request and the reply that receives its answer.
pub type Submission<W, R> = (<W as BatchHandler>::Request, R);

/// What all handles share. The lane's thread holds only the queue and the counters, so it does not keep the lane open.
struct Shared<W: BatchHandler, R> {
    queue: Arc<Queue<W::Request, R>>,
    counters: Arc<Counters>,
    /// The loop of a lane without a thread.
    by_hand: Option<Mutex<Runner<W, R>>>,
}

/// The thread of a lane, to wait for its end.
pub struct LaneThread<W> {
    handle: JoinHandle<W>,
}

impl<W: BatchHandler, R: Reply<Result<W::Answer, W::Fault>>> Lane<W, R> {
    /// Starts a lane with a thread of this name.
    ///
    /// # Errors
    /// The operating system cannot create the thread.
    pub fn start(name: &str, bounds: LaneLimits, work: W) -> io::Result<(Self, LaneThread<W>)> {
        let queue = Arc::new(Queue::new(&bounds));
        let counters = Arc::new(Counters::default());
        let runner = Runner::new(name, (Arc::clone(&queue), Arc::clone(&counters)), bounds, work);
        let handle = Builder::new().name(name.to_owned()).spawn(move || runner.run())?;
        let by_hand = None;
        Ok((Self { shared: Arc::new(Shared { queue, counters, by_hand }) }, LaneThread { handle }))
    }

    /// A lane without a thread: [`step`](Self::step) runs it on the thread of the caller, without pauses.
    pub fn by_hand(name: &str, bounds: LaneLimits, work: W) -> Self {
        let queue = Arc::new(Queue::new(&bounds));
        let counters = Arc::new(Counters::default());
        let runner = Runner::new(name, (Arc::clone(&queue), Arc::clone(&counters)), bounds, work);
        let by_hand = Some(Mutex::new(runner.without_pauses()));
        Self { shared: Arc::new(Shared { queue, counters, by_hand }) }
    }

    /// One step of a lane without a thread: the next batch, or one attempt to resolve the last. Returns whether there was
    /// anything to do; always false for a lane with a thread.
    ///
    /// # Panics
    /// The handler has panicked, now or in an earlier step.
    pub fn step(&self) -> bool {
        let runner = self.shared.by_hand.as_ref();
        runner.is_some_and(|runner| runner.lock().expect("the lane has not panicked").step())
    }

    /// Puts a request into the queue and returns at once. `reply` receives the answer.
    ///
    /// # Errors
    /// The lane refuses the request. The error returns both, unused.
    pub fn submit(&self, request: W::Request, reply: R) -> Result<(), SubmitError<Submission<W, R>>> {
        self.shared.queue.push(weigh::<W, R>(request, reply)).map_err(|error| error.map(give_back))
    }

    /// Puts several requests into the queue as neighbours in this order, or none of them.
    ///
    /// # Errors
    /// The lane refuses the requests. The error returns all of them, unused and in order.
    pub fn submit_all(&self, many: Vec<Submission<W, R>>) -> Result<(), SubmitError<Vec<Submission<W, R>>>> {
        if many.is_empty() {
            return Ok(());
        }
        let weighed = many.into_iter().map(|(request, reply)| weigh::<W, R>(request, reply)).collect();
        let pushed = self.shared.queue.push_all(weighed);
        pushed.map_err(|error| error.map(|many| many.into_iter().map(give_back).collect()))
    }

    /// Stops accepting requests. The lane answers the accepted ones, and then the thread ends.
    pub fn drain(&self) {
        self.shared.queue.drain();
    }

    /// The current counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.shared.counters.read_into(&mut stats);
        self.shared.queue.read_into(&mut stats);
        stats
    }
}

impl<W: BatchHandler, R: Reply<Result<W::Answer, W::Fault>>> Clone for Lane<W, R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<W: BatchHandler, R> Drop for Shared<W, R> {
    fn drop(&mut self) {
        self.queue.drain();
    }
}

impl<W> LaneThread<W> {
    /// Waits for a drained lane to end. Returns the handler, so that the caller can close its resources.
    ///
    /// # Errors
    /// The thread panicked; the error is the panic's payload.
    pub fn join(self) -> std::thread::Result<W> {
        self.handle.join()
    }
}

fn weigh<W: BatchHandler, R>(request: W::Request, reply: R) -> Waiting<W::Request, R> {
    let (weight, kind, since) = (W::weight(&request), W::kind(&request), Instant::now());
    Waiting { weight, kind, since, request, reply }
}

fn give_back<Q, R>(waiting: Waiting<Q, R>) -> (Q, R) {
    (waiting.request, waiting.reply)
}
