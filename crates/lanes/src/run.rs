//! The loop of a lane: commit, publish, answer.
//!
//! Disk before reply is visible as the order of lines in [`Runner::settle`]; the functions of this file
//! are the only ones that complete a waiter. Faults go to waiters here as well, and only after the store
//! has said that nothing was done, or that nobody can know.
//! The lane does not interpret faults, does not time out, and does not catch panics.

use crate::batch::{Batch, Bounds, Cut, Waiting, take};
use crate::queue::{Found, Queue};
use crate::split::Pieces;
use crate::stats::{Counters, add, add_since};
use crate::work::{Failure, Reply, Resolution, Work};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// The lane's thread: the work, and what it takes from the queue.
pub(crate) struct Runner<W: Work, R> {
    work: W,
    bounds: Bounds,
    inbox: VecDeque<Waiting<W::Request, R>>,
    queue: Arc<Queue<W::Request, R>>,
    counters: Arc<Counters>,
}

/// Why a piece of a batch was not committed, after all retries.
enum Setback<F> {
    /// Some request of the piece is guilty.
    Row(F),
    /// This piece fails as a whole.
    Piece(F),
    /// This piece fails, and the rest of the batch need not be tried.
    Away(F),
    /// Nobody knows; `own` is for the piece, `others` for everyone behind it.
    Unresolved { own: F, others: F },
}

/// A piece whose outcome is not known, its waiters already answered.
struct Unresolved<Q, F> {
    requests: Vec<Q>,
    fault: F,
}

type OpenEnd<W> = Option<Unresolved<<W as Work>::Request, <W as Work>::Fault>>;

impl<W: Work, R: Reply<Result<W::Answer, W::Fault>>> Runner<W, R> {
    pub(crate) fn new(
        queue: Arc<Queue<W::Request, R>>,
        counters: Arc<Counters>,
        bounds: Bounds,
        work: W,
    ) -> Self {
        Self { work, bounds, inbox: VecDeque::new(), queue, counters }
    }

    /// Works until the lane is drained, then gives the work back.
    pub(crate) fn run(mut self) -> W {
        let _closes = CloseOnExit(Arc::clone(&self.queue));
        while let Some(batch) = self.next_batch() {
            let started = Instant::now();
            let open_end = self.settle(batch);
            self.counters.in_flight.store(0, Relaxed);
            if let Some(unresolved) = open_end {
                self.find_out(unresolved);
            }
            add_since(&self.counters.busy_ns, started);
        }
        self.work
    }

    fn next_batch(&mut self) -> Option<Batch<W::Request, R>> {
        let at_end = match self.queue.collect(&mut self.inbox) {
            Found::Work => Cut::Idle,
            Found::LastWork => Cut::Drain,
            Found::End => return None,
            Found::Nothing => unreachable!("the queue sleeps while there is nothing"),
        };
        let taken = take(&mut self.inbox, &self.bounds, at_end);
        let now = Instant::now();
        for since in taken.since {
            self.counters.queued.record(now.duration_since(since));
        }
        let requests = taken.batch.requests.len();
        self.counters.batch(requests, taken.rows, taken.cut);
        self.queue.left(requests, taken.bytes);
        Some(taken.batch)
    }

    /// Brings every request of the batch to its answer, in order.
    fn settle(&mut self, batch: Batch<W::Request, R>) -> OpenEnd<W> {
        let mut pieces = Pieces::whole(batch);
        while let Some(piece) = pieces.next() {
            match self.commit(&piece.requests) {
                Ok(committed) => {
                    let started = Instant::now();
                    let answers = self.work.publish(piece.requests, committed);
                    self.counters.publishing.record(started.elapsed());
                    answer_each(piece.replies, answers);
                }
                Err(Setback::Row(_)) if piece.requests.len() > 1 => {
                    add(&self.counters.splits, 1);
                    pieces.halve(piece);
                }
                Err(Setback::Row(fault) | Setback::Piece(fault)) => self.fail(piece.replies, &fault),
                Err(Setback::Away(fault)) => {
                    self.fail(piece.replies, &fault);
                    self.fail_rest(pieces, &fault);
                    return None;
                }
                Err(Setback::Unresolved { own, others }) => {
                    self.fail(piece.replies, &own);
                    self.fail_rest(pieces, &others);
                    return Some(Unresolved { requests: piece.requests, fault: others });
                }
            }
        }
        None
    }

    /// Hands one batch to the store, as often as the bounds allow.
    fn commit(&mut self, requests: &[W::Request]) -> Result<W::Committed, Setback<W::Fault>> {
        let started = Instant::now();
        let mut retries = 0;
        let outcome = loop {
            add(&self.counters.commits, 1);
            let fault = match self.work.commit(requests) {
                Ok(committed) => break Ok(committed),
                Err(Failure::Row(fault)) => break Err(Setback::Row(fault)),
                Err(Failure::Piece(fault)) => break Err(Setback::Piece(fault)),
                Err(Failure::Away(fault)) => break Err(Setback::Away(fault)),
                Err(Failure::Retry(fault)) => fault,
                Err(Failure::Unknown(own)) => match self.resolve(requests) {
                    Ok(Resolution::Committed(committed)) => break Ok(committed),
                    Ok(Resolution::NotCommitted(fault)) => fault,
                    Err(others) => break Err(Setback::Unresolved { own, others }),
                },
            };
            if retries == self.bounds.retries_max {
                break Err(Setback::Piece(fault));
            }
            retries += 1;
            add(&self.counters.retries, 1);
            self.work.pause(retries);
        };
        add_since(&self.counters.committing_ns, started);
        outcome
    }

    /// Asks what became of a piece until the store can tell, and fails whoever arrives meanwhile.
    ///
    /// Nothing else may be committed before: readers would see changes in another order than the truth has
    /// them. A lane that drains asks a few times more and then leaves it: whoever starts next reads the truth.
    fn find_out(&mut self, unresolved: Unresolved<W::Request, W::Fault>) {
        let Unresolved { requests, mut fault } = unresolved;
        let mut asked: u32 = 0;
        loop {
            let found = self.queue.collect_now(&mut self.inbox);
            self.fail_inbox(&fault);
            let draining = matches!(found, Found::LastWork | Found::End);
            if draining && asked >= self.bounds.retries_max {
                return;
            }
            asked = asked.saturating_add(1);
            self.work.pause(asked);
            match self.resolve(&requests) {
                Ok(Resolution::Committed(committed)) => {
                    let _nobody_waits = self.work.publish(requests, committed);
                    return;
                }
                Ok(Resolution::NotCommitted(_)) => return,
                Err(again) => fault = again,
            }
        }
    }

    fn resolve(&mut self, requests: &[W::Request]) -> ResolveResult<W> {
        add(&self.counters.resolves, 1);
        self.work.resolve(requests)
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

    /// Answers what is in the inbox without a batch: the store cannot be reached.
    fn fail_inbox(&mut self, fault: &W::Fault) {
        add(&self.counters.shed, self.inbox.len() as u64);
        let bytes = self.inbox.iter().map(|waiting| waiting.weight.bytes as usize).sum();
        self.queue.left(self.inbox.len(), bytes);
        let replies = self.inbox.drain(..).map(|waiting| waiting.reply).collect();
        self.fail(replies, fault);
    }
}

type ResolveResult<W> = Result<Resolution<<W as Work>::Committed, <W as Work>::Fault>, <W as Work>::Fault>;

/// Tells everyone, in order.
fn answer_each<A, F, R: Reply<Result<A, F>>>(replies: Vec<R>, answers: Vec<A>) {
    assert!(answers.len() == replies.len(), "publish gives every request one answer");
    for (reply, answer) in replies.into_iter().zip(answers) {
        reply.send(Ok(answer));
    }
}

/// Closes the queue however the lane's thread ends. After a drain there is nothing left to close.
struct CloseOnExit<Q, R>(Arc<Queue<Q, R>>);

impl<Q, R> Drop for CloseOnExit<Q, R> {
    fn drop(&mut self) {
        self.0.close();
    }
}
