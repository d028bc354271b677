//! What a lane is given: the work it does with a batch, and the way each caller hears.
//!
//! The failures are sorted by what the lane has to do next, not by what went wrong: the lane cannot read a
//! fault, it only passes it on. A rejection by a rule is no failure at all; it is an `Answer`.

use crate::sync;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a lane does with a batch. Runs on the lane's own thread and may block there.
pub trait BatchHandler: Send + 'static {
    /// One caller's request. Requests of one batch are in the order in which the lane accepted them.
    type Request: Send + 'static;
    /// What one caller hears when its request was handled; a rejection by a rule is an answer too.
    type Answer: Send + 'static;
    /// Why a request was not handled; goes to everyone it concerns.
    type Fault: Clone + Send + 'static;
    /// What [`publish`](Self::publish) needs of a commit: outcomes in the order of the requests, changes.
    type Committed;

    /// How much `request` takes of the bounds. Called once, on the caller's thread.
    fn weight(request: &Self::Request) -> Weight;

    /// Which requests may share a batch with `request`. All are alike unless this says otherwise.
    fn kind(_request: &Self::Request) -> Kind {
        Kind::Group(0)
    }

    /// Makes the whole batch durable, or leaves no trace and says why.
    ///
    /// The outcome must depend on the requests and on what is stored only: after [`Failure::Retry`] the
    /// same batch comes again, after [`Failure::Row`] its halves come, in order. Nothing is counted or
    /// shown here; that belongs to [`publish`](Self::publish).
    ///
    /// # Errors
    /// See [`Failure`]: the variant says what the lane does next.
    fn commit(&mut self, batch: &[Self::Request]) -> Result<Self::Committed, Failure<Self::Fault>>;

    /// Shows readers what was committed and says every request's answer, in the order of `batch`.
    ///
    /// Cannot fail: the truth is already durable. It is called exactly once for every commit that
    /// succeeded, in the order of the commits, also when nobody is left to hear the answers.
    fn publish(&mut self, batch: Vec<Self::Request>, committed: Self::Committed) -> Vec<Self::Answer>;

    /// Finds out what became of a batch whose commit ended in [`Failure::Unknown`].
    ///
    /// # Errors
    /// The store cannot be asked now. The lane then answers the batch with the fault of
    /// [`Failure::Unknown`] and everyone behind it with this one, and goes on asking, with
    /// [`pause`](Self::pause) in between, before it commits anything else.
    ///
    /// # Panics
    /// Unless overridden: a work that returns [`Failure::Unknown`] must be able to resolve it.
    fn resolve(
        &mut self,
        _batch: &[Self::Request],
    ) -> Result<Resolution<Self::Committed, Self::Fault>, Self::Fault> {
        panic!("a work whose commits can be unknown implements `resolve`")
    }

    /// When the last [`commit`](Self::commit) had read what it needs and began to write, where the work can tell.
    fn read_at(&self) -> Option<Instant> {
        None
    }

    /// Tells so many callers their answers: they hear when `telling` is dropped, which may be on another thread and after
    /// the lane has gone on, but must not be forgotten. Whoever wakes a caller on another processor, one by one, may be made to
    /// make room for it each time.
    fn tell(&mut self, _callers: usize, telling: Box<dyn Send>) {
        drop(telling);
    }

    /// Lets some time pass before attempt number `attempts` + 1, `attempts` ≥ 1. Sleeps for [`backoff`].
    fn pause(&mut self, attempts: u32) {
        sync::sleep(backoff(attempts));
    }
}

/// How a caller hears. Consumed exactly once, on the lane's thread or where [`BatchHandler::tell`] has it done.
///
/// It must neither block nor panic: everyone behind it waits, and a panic ends the lane. A caller that has
/// gone away is not an error; there is nobody to tell.
pub trait Reply<A>: Send + 'static {
    /// Hears, before the answer, how its request went through the lane. Not called where its batch was never handed to
    /// the store.
    fn passed(&mut self, _passage: &LaneTimings) {}

    /// Hands over the answer.
    fn send(self, answer: A);
}

/// How a request went through its lane: when, and with how many others.
///
/// The same for all requests that were committed together; when each was accepted is known to whoever put it in.
#[derive(Clone, Debug)]
pub struct LaneTimings {
    /// The name of the lane.
    pub lane: Arc<str>,
    /// The number of its batch in that lane, from 1.
    pub batch: u64,
    /// Requests of the batch.
    pub requests: usize,
    /// Rows that they weighed.
    pub rows: usize,
    /// How often they were handed to the store again.
    pub retries: u32,
    /// When the batch was taken from the queue.
    pub taken: Instant,
    /// When it, or the piece of it that has the request, was handed to the store.
    pub begun: Instant,
    /// When the store had read what the last attempt needs, where that is known.
    pub read: Option<Instant>,
    /// When the store was done with it, well or not.
    pub ended: Instant,
    /// When it had been published; nothing where it failed.
    pub published: Option<Instant>,
}

impl<A, F: FnOnce(A) + Send + 'static> Reply<A> for F {
    fn send(self, answer: A) {
        self(answer);
    }
}

/// What one request takes of the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Rows it may write; 0 counts as 1, since every request takes a place.
    pub rows: u32,
    /// Bytes it holds in memory and, roughly, sends to the store.
    pub bytes: u32,
}

/// Which requests may share a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With requests of the same group only.
    Group(u32),
    /// With none.
    Alone,
}

impl Kind {
    /// Whether requests of these kinds may share a batch.
    pub(crate) fn shares_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Group(one), Self::Group(two)) => one == two,
            (Self::Alone, _) | (_, Self::Alone) => false,
        }
    }
}

/// Why a commit left no trace, sorted by what the lane does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure<F> {
    /// Deadlock or lock wait: nothing was done and the same batch may succeed. It is retried up to
    /// `retries_max` times; then the batch gets the last fault.
    Retry(F),
    /// Some request is guilty, nothing was done. The batch is halved until the guilty one stands alone and
    /// gets the fault; the others go through, in their order.
    Row(F),
    /// None of these requests can be done now, nothing was done; what else the batch had may go through.
    Piece(F),
    /// The store cannot do it now, nothing was done. Everyone in the batch who has no answer yet gets this.
    Away(F),
    /// The connection was lost while committing. The lane asks [`BatchHandler::resolve`]; if that cannot tell, the
    /// batch gets this fault, which should say that the outcome is not known.
    Unknown(F),
}

/// What became of a batch whose commit ended in [`Failure::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution<C, F> {
    /// It is durable, and this is what `commit` would have returned.
    Committed(C),
    /// It left no trace and never will. Goes on like [`Failure::Retry`] with this fault.
    NotCommitted(F),
}

/// The pause after the given number of attempts: 1 ms, doubling, never more than 50 ms.
#[must_use]
pub fn backoff(attempts: u32) -> Duration {
    const BACKOFF_MS_MAX: u64 = 50;
    let doublings = attempts.saturating_sub(1).min(10);
    Duration::from_millis((1 << doublings).min(BACKOFF_MS_MAX))
}
