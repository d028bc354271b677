//! The loop of a lane: commit, publish, answer.
//!
//! One step is a batch, or one attempt to resolve the last batch. The lane's thread repeats steps. The owner of a lane
//! without a thread runs them one by one.
//! The order of lines in [`Runner::settle`] shows that the commit comes before the replies. Only the functions of this
//! file complete a waiter. They also send faults, and only after the store has done nothing or the outcome stays unknown.
//! The lane does not interpret faults, does not time out, and does not catch panics.

use crate::batch::{Batch, Cut, LaneLimits, Waiting, take};
use crate::bisection::Pieces;
use crate::handler::{BatchFailure, BatchHandler, LaneTimings, Reply, Resolution};
use crate::queue::{Queue, QueueState};
use crate::stats::{Counters, add, add_since};
use std::collections::VecDeque;
use std::iter::Zip;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use std::vec;

/// The state of a lane's thread: the handler, and the requests that it took from the queue.
pub(crate) struct Runner<W: BatchHandler, R> {
    name: Arc<str>,
    handler: W,
    bounds: LaneLimits,
    inbox: VecDeque<Waiting<W::Request, R>>,
    queue: Arc<Queue<W::Request, R>>,
    counters: Arc<Counters>,
    /// Resolved before the next batch.
    unresolved: MaybeUnresolved<W>,
    pauses: bool,
}

/// The size of a batch, and when it was taken.
#[derive(Clone, Copy)]
struct BatchWeight {
    requests: usize,
    rows: usize,
    taken: Instant,
}

/// Why a piece of a batch was not committed, after all retries.
enum CommitFailure<F> {
    /// The piece contains a poison request.
    PoisonRequest(F),
    /// This piece fails as a whole.
    Piece(F),
    /// This piece fails, and so does the rest of the batch, without an attempt.
    Unavailable(F),
    /// The outcome is unknown. `own` is for the piece, `others` for all requests after it.
    Unresolved { own: F, others: F },
}

/// A piece with an unknown outcome. Its waiters are already answered.
struct Unresolved<Q, F> {
    requests: Vec<Q>,
    fault: F,
    /// The number of attempts to resolve it.
    attempts: u32,
}

type MaybeUnresolved<W> = Option<Unresolved<<W as BatchHandler>::Request, <W as BatchHandler>::Fault>>;

impl<W: BatchHandler, R: Reply<Result<W::Answer, W::Fault>>> Runner<W, R> {
    pub(crate) fn new(
        name: &str,
        (queue, counters): (Arc<Queue<W::Request, R>>, Arc<Counters>),
        bounds: LaneLimits,
        handler: W,
    ) -> Self {
        let (inbox, unresolved) = (VecDeque::new(), None);
        Self { name: name.into(), handler, bounds, inbox, queue, counters, unresolved, pauses: true }
    }

    /// Does not wait between two attempts.
    pub(crate) fn without_pauses(self) -> Self {
        Self { pauses: false, ..self }
    }

    /// Runs until the lane is drained, then returns the handler.
    pub(crate) fn run(mut self) -> W {
        let _closes = CloseOnExit(Arc::clone(&self.queue));
        loop {
            let sleeps = self.unresolved.is_none();
            let found = if sleeps { self.queue.collect(&mut self.inbox) } else { self.collect_now() };
            if !self.run_step(found) {
                return self.handler;
            }
        }
    }

    /// One step without sleeping. Returns whether there was anything to do.
    pub(crate) fn step(&mut self) -> bool {
        let found = self.collect_now();
        self.run_step(found)
    }

    fn collect_now(&mut self) -> QueueState {
        self.queue.collect_now(&mut self.inbox)
    }

    /// Handles a batch of the found requests, or tries to resolve the last batch. Returns whether there was either.
    fn run_step(&mut self, found: QueueState) -> bool {
        let started = Instant::now();
        if let Some(unresolved) = self.unresolved.take() {
            self.unresolved = self.try_resolve(unresolved, found);
        } else if matches!(found, QueueState::Requests | QueueState::LastRequests) {
            let (batch, weight) = self.next_batch(found);
            self.unresolved = self.settle(batch, weight);
            self.counters.in_flight.store(0, Relaxed);
        } else {
            return false;
        }
        add_since(&self.counters.busy_ns, started);
        true
    }

    /// Takes the next batch.
    fn next_batch(&mut self, found: QueueState) -> (Batch<W::Request, R>, BatchWeight) {
        let at_end = if found == QueueState::LastRequests { Cut::Drain } else { Cut::Idle };
        let taken = take(&mut self.inbox, &self.bounds, at_end);
        let now = Instant::now();
        for since in taken.since {
            self.counters.queued.record(now.duration_since(since));
        }
        let requests = taken.batch.requests.len();
        self.counters.batch(requests, taken.rows, taken.cut);
        self.queue.left(requests, taken.bytes);
        (taken.batch, BatchWeight { requests, rows: taken.rows, taken: now })
    }

    /// Commits the batch piece by piece, publishes each piece, then sends its replies in order.
    fn settle(&mut self, batch: Batch<W::Request, R>, weight: BatchWeight) -> MaybeUnresolved<W> {
        let mut pieces = Pieces::whole(batch);
        while let Some(mut piece) = pieces.next() {
            let begun = Instant::now();
            let (outcome, retries) = self.commit(&piece.requests, begun);
            let mut timings = self.timings(weight, begun, retries);
            match outcome {
                Ok(committed) => {
                    let answers = self.handler.publish(piece.requests, committed);
                    let published = Instant::now();
                    self.counters.publishing.record(published.duration_since(timings.ended));
                    timings.published = Some(published);
                    assert!(answers.len() == piece.replies.len(), "publish gives every request one answer");
                    send_timings(&mut piece.replies, &timings);
                    let (callers, rest) = (answers.len(), piece.replies.into_iter().zip(answers));
                    self.handler.dispatch(callers, Box::new(Replies { rest, fault: PhantomData }));
                }
                Err(CommitFailure::PoisonRequest(_)) if piece.requests.len() > 1 => {
                    add(&self.counters.splits, 1);
                    pieces.halve(piece);
                }
                Err(CommitFailure::PoisonRequest(fault) | CommitFailure::Piece(fault)) => {
                    send_timings(&mut piece.replies, &timings);
                    self.fail(piece.replies, &fault);
                }
                Err(CommitFailure::Unavailable(fault)) => {
                    send_timings(&mut piece.replies, &timings);
                    self.fail(piece.replies, &fault);
                    self.fail_rest(pieces, &fault);
                    return None;
                }
                Err(CommitFailure::Unresolved { own, others }) => {
                    send_timings(&mut piece.replies, &timings);
                    self.fail(piece.replies, &own);
                    self.fail_rest(pieces, &others);
                    return Some(Unresolved { requests: piece.requests, fault: others, attempts: 0 });
                }
            }
        }
        None
    }

    /// The timings of a piece of a batch that the store has just handled.
    fn timings(&self, weight: BatchWeight, begun: Instant, retries: u32) -> LaneTimings {
        let BatchWeight { requests, rows, taken } = weight;
        let (lane, batch) = (Arc::clone(&self.name), self.counters.batches.load(Relaxed));
        let (read, ended) = (self.handler.read_at().filter(|read| *read >= begun), Instant::now());
        LaneTimings { lane, batch, requests, rows, retries, taken, begun, read, ended, published: None }
    }

    /// Commits one batch, with retries as the bounds allow. Returns the number of retries.
    fn commit(&mut self, requests: &[W::Request], started: Instant) -> (CommitResult<W>, u32) {
        let mut retries = 0;
        let outcome = loop {
            add(&self.counters.commits, 1);
            let fault = match self.handler.commit(requests) {
                Ok(committed) => break Ok(committed),
                Err(BatchFailure::PoisonRequest(fault)) => break Err(CommitFailure::PoisonRequest(fault)),
                Err(BatchFailure::Piece(fault)) => break Err(CommitFailure::Piece(fault)),
                Err(BatchFailure::Unavailable(fault)) => break Err(CommitFailure::Unavailable(fault)),
                Err(BatchFailure::Retry(fault)) => fault,
                Err(BatchFailure::Unknown(own)) => match self.resolve(requests) {
                    Ok(Resolution::Committed(committed)) => break Ok(committed),
                    Ok(Resolution::NotCommitted(fault)) => fault,
                    Err(others) => break Err(CommitFailure::Unresolved { own, others }),
                },
            };
            if retries == self.bounds.retries_max {
                break Err(CommitFailure::Piece(fault));
            }
            retries += 1;
            add(&self.counters.retries, 1);
            self.pause(retries);
        };
        add_since(&self.counters.committing_ns, started);
        (outcome, retries)
    }

    /// Tries again to resolve a piece, and fails requests that arrived meanwhile. Returns the piece if it is still unresolved.
    ///
    /// Nothing else may be committed before: readers would see changes in another order than the store has them.
    /// A draining lane tries a few times more and then gives up: the next start reads the store.
    fn try_resolve(
        &mut self,
        unresolved: Unresolved<W::Request, W::Fault>,
        found: QueueState,
    ) -> MaybeUnresolved<W> {
        let Unresolved { requests, fault, attempts } = unresolved;
        self.fail_inbox(&fault);
        let draining = matches!(found, QueueState::LastRequests | QueueState::End);
        if draining && attempts >= self.bounds.retries_max {
            return None;
        }
        let attempts = attempts.saturating_add(1);
        self.pause(attempts);
        match self.resolve(&requests) {
            Ok(Resolution::Committed(committed)) => {
                let _no_caller = self.handler.publish(requests, committed);
                None
            }
            Ok(Resolution::NotCommitted(_)) => None,
            Err(fault) => Some(Unresolved { requests, fault, attempts }),
        }
    }

    fn pause(&mut self, attempts: u32) {
        if self.pauses {
            self.handler.pause(attempts);
        }
    }

    fn resolve(&mut self, requests: &[W::Request]) -> ResolveResult<W> {
        add(&self.counters.resolves, 1);
        self.handler.resolve(requests)
    }

    fn fail(&self, replies: Vec<R>, fault: &W::Fault) {
        add(&self.counters.faults, replies.len() as u64);
        for reply in replies {
            reply.send(Err(fault.clone()));
        }
    }

    fn fail_rest(&self, mut pieces: Pieces<W::Request, R>, fault: &W::Fault) {
        while let Some(piece) = pieces.next() {
            self.fail(piece.replies, fault);
        }
    }

    /// Answers the requests in the inbox without a batch: the store is unavailable.
    fn fail_inbox(&mut self, fault: &W::Fault) {
        add(&self.counters.shed, self.inbox.len() as u64);
        let bytes = self.inbox.iter().map(|waiting| waiting.weight.bytes as usize).sum();
        self.queue.left(self.inbox.len(), bytes);
        let replies = self.inbox.drain(..).map(|waiting| waiting.reply).collect();
        self.fail(replies, fault);
    }
}

type ResolveResult<W> = Result<
    Resolution<<W as BatchHandler>::Committed, <W as BatchHandler>::Fault>,
    <W as BatchHandler>::Fault,
>;

type CommitResult<W> = Result<<W as BatchHandler>::Committed, CommitFailure<<W as BatchHandler>::Fault>>;

/// Callers with an answer that is not sent yet. Dropping this sends the answers, in order.
struct Replies<A, F, R: Reply<Result<A, F>>> {
    rest: Zip<vec::IntoIter<R>, vec::IntoIter<A>>,
    fault: PhantomData<fn() -> F>,
}

impl<A, F, R: Reply<Result<A, F>>> Drop for Replies<A, F, R> {
    fn drop(&mut self) {
        for (reply, answer) in self.rest.by_ref() {
            reply.send(Ok(answer));
        }
    }
}

/// Gives the timings to each reply.
fn send_timings<A, R: Reply<A>>(replies: &mut [R], timings: &LaneTimings) {
    replies.iter_mut().for_each(|reply| reply.record_timings(timings));
}

/// Closes the queue when the lane's thread ends, even by a panic. After a drain there is nothing left to close.
struct CloseOnExit<Q, R>(Arc<Queue<Q, R>>);

impl<Q, R> Drop for CloseOnExit<Q, R> {
    fn drop(&mut self) {
        self.0.close();
    }
}
