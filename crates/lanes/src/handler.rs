//! The interface of a lane: the handler of its batches, and the reply of each caller.
//!
//! Failures are classified by what the lane does next, because the lane cannot read a fault and only passes it on.
//! A rejection by a rule is not a failure: it is an `Answer`.

use crate::sync;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Plans, commits and publishes the batches of a lane. Runs on the lane's own thread and may block there.
pub trait BatchHandler: Send + 'static {
    /// A request of a caller. Requests of one batch are in the order in which the lane accepted them.
    type Request: Send + 'static;
    /// The answer to a handled request. A rejection by a rule is an answer too.
    type Answer: Send + 'static;
    /// Why a request was not handled. Every affected request gets a clone.
    type Fault: Clone + Send + 'static;
    /// What [`publish`](Self::publish) needs of a commit: the outcomes in the order of the requests, and the changes.
    type Committed;

    /// The weight of `request` within the bounds. Called once for each request, on the caller's thread.
    fn weight(request: &Self::Request) -> Weight;

    /// Which requests may share a batch with `request`. By default all requests may.
    fn kind(_request: &Self::Request) -> BatchSharing {
        BatchSharing::Group(0)
    }

    /// Makes the whole batch durable, or leaves no trace and returns the reason.
    ///
    /// The outcome must depend only on the requests and the stored rows. After [`BatchFailure::Retry`] the lane commits the same
    /// batch again; after [`BatchFailure::PoisonRequest`] it commits its halves, in order. A commit counts nothing and publishes nothing:
    /// that belongs to [`publish`](Self::publish).
    ///
    /// # Errors
    /// See [`BatchFailure`]: the variant says what the lane does next.
    fn commit(&mut self, batch: &[Self::Request]) -> Result<Self::Committed, BatchFailure<Self::Fault>>;

    /// Publishes a committed batch and returns the answer of every request, in the order of `batch`.
    ///
    /// Cannot fail: the store already has the batch. The lane calls it exactly once for every successful commit, in the order
    /// of the commits, even when no caller waits any more.
    fn publish(&mut self, batch: Vec<Self::Request>, committed: Self::Committed) -> Vec<Self::Answer>;

    /// Resolves a batch whose commit ended in [`BatchFailure::Unknown`].
    ///
    /// # Errors
    /// The store is unavailable. The lane then answers the batch with the fault of [`BatchFailure::Unknown`] and the waiting
    /// requests with this one. It tries again, with [`pause`](Self::pause) in between, before it commits anything else.
    ///
    /// # Panics
    /// Unless overridden: a handler that returns [`BatchFailure::Unknown`] must be able to resolve it.
    fn resolve(
        &mut self,
        _batch: &[Self::Request],
    ) -> Result<Resolution<Self::Committed, Self::Fault>, Self::Fault> {
        panic!("a handler whose commits can be unknown implements `resolve`")
    }

    /// When the last [`commit`](Self::commit) finished its reads and began to write, if the handler knows it.
    fn read_at(&self) -> Option<Instant> {
        None
    }

    /// Sends the answers of this many callers by dropping `replies`. The drop may happen later, on another thread.
    /// A thread that wakes callers one by one may lose its processor to each of them.
    fn dispatch(&mut self, _callers: usize, replies: Box<dyn Send>) {
        drop(replies);
    }

    /// Waits before attempt number `attempts` + 1, `attempts` ≥ 1. Sleeps for [`backoff`].
    fn pause(&mut self, attempts: u32) {
        sync::sleep(backoff(attempts));
    }
}

/// The reply of one request. Consumed exactly once, on the lane's thread or by [`BatchHandler::dispatch`].
///
/// It must neither block nor panic: the other replies wait, and a panic ends the lane. It is not an error when the caller
/// no longer waits.
pub trait Reply<A>: Send + 'static {
    /// Gets the timings of the request before the answer. Not called for a batch that never reached the store.
    fn record_timings(&mut self, _timings: &LaneTimings) {}

    /// Delivers the answer.
    fn send(self, answer: A);
}

/// When a request went through its lane, and with how many others.
///
/// All requests of a commit share it. The caller knows when it submitted its own request.
#[derive(Clone, Debug)]
pub struct LaneTimings {
    /// The name of the lane.
    pub lane: Arc<str>,
    /// The number of its batch in that lane, from 1.
    pub batch: u64,
    /// Requests of the batch.
    pub requests: usize,
    /// The rows of the batch by weight.
    pub rows: usize,
    /// Retries of the commit.
    pub retries: u32,
    /// When the batch was taken from the queue.
    pub taken: Instant,
    /// When the batch, or the piece of it with this request, went to the store.
    pub begun: Instant,
    /// When the last attempt finished its reads, if known.
    pub read: Option<Instant>,
    /// When the commit ended, successful or not.
    pub ended: Instant,
    /// When it was published; `None` if it failed.
    pub published: Option<Instant>,
}

impl<A, F: FnOnce(A) + Send + 'static> Reply<A> for F {
    fn send(self, answer: A) {
        self(answer);
    }
}

/// What one request counts towards the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Rows it may write. 0 counts as 1, because every request occupies an entry of the queue.
    pub rows: u32,
    /// Bytes it holds in memory and, roughly, sends to the store.
    pub bytes: u32,
}

/// Which requests may share a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSharing {
    /// Only with requests of the same group.
    Group(u32),
    /// With no other request.
    Alone,
}

impl BatchSharing {
    /// Whether requests of these kinds may share a batch.
    pub(crate) fn shares_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Group(one), Self::Group(two)) => one == two,
            (Self::Alone, _) | (_, Self::Alone) => false,
        }
    }
}

/// Why a commit left no trace, classified by what the lane does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchFailure<F> {
    /// Deadlock or lock wait: nothing was done, and the same batch may succeed. The lane retries up to
    /// `retries_max` times. Then the batch gets the last fault.
    Retry(F),
    /// Nothing was done because of a poison request. The lane bisects the batch: the poison request gets the fault, the
    /// others commit in their order.
    PoisonRequest(F),
    /// Nothing was done, and these requests cannot succeed now. The rest of the batch may still commit.
    Piece(F),
    /// The store is unavailable; nothing was done. Every unanswered request of the batch gets this fault.
    Unavailable(F),
    /// The connection was lost during the commit. The lane calls [`BatchHandler::resolve`]. If that fails, the
    /// batch gets this fault, which should say that the outcome is not known.
    Unknown(F),
}

/// The outcome of a batch whose commit ended in [`BatchFailure::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution<C, F> {
    /// The batch is durable. This is what `commit` would have returned.
    Committed(C),
    /// The batch left no trace and never will. The lane goes on as after [`BatchFailure::Retry`] with this fault.
    NotCommitted(F),
}

/// The pause after this number of attempts: 1 ms, doubling, at most 50 ms.
#[must_use]
pub fn backoff(attempts: u32) -> Duration {
    const BACKOFF_MS_MAX: u64 = 50;
    let doublings = attempts.saturating_sub(1).min(10);
    Duration::from_millis((1 << doublings).min(BACKOFF_MS_MAX))
}
