//! The loop of a lane: commit, publish, answer.
//!
//! One turn of it is a batch, or one question what became of the last batch. The lane's thread repeats turns; a lane without
//! a thread does one when it is told to.
//! Disk before reply is visible as the order of lines in [`Runner::settle`]; the functions of this file
//! are the only ones that complete a waiter. Faults go to waiters here as well, and only after the store
//! has said that nothing was done, or that nobody can know.
//! The lane does not interpret faults, does not time out, and does not catch panics.

use crate::batch::{Batch, Bounds, Cut, Waiting, take};
use crate::handler::{BatchHandler, Failure, LaneTimings, Reply, Resolution};
use crate::queue::{Found, Queue};
use crate::split::Pieces;
use crate::stats::{Counters, add, add_since};
use std::collections::VecDeque;
use std::iter::Zip;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use std::vec;

/// The lane's thread: the work, and what it takes from the queue.
pub(crate) struct Runner<W: BatchHandler, R> {
    name: Arc<str>,
    work: W,
    bounds: Bounds,
    inbox: VecDeque<Waiting<W::Request, R>>,
    queue: Arc<Queue<W::Request, R>>,
    counters: Arc<Counters>,
    /// Comes before the next batch.
    unresolved: OpenEnd<W>,
    pauses: bool,
}

/// How much a batch is, and when it was taken.
#[derive(Clone, Copy)]
struct BatchWeight {
    requests: usize,
    rows: usize,
    taken: Instant,
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
    /// How often the store was asked.
    asked: u32,
}

type OpenEnd<W> = Option<Unresolved<<W as BatchHandler>::Request, <W as BatchHandler>::Fault>>;

impl<W: BatchHandler, R: Reply<Result<W::Answer, W::Fault>>> Runner<W, R> {
    pub(crate) fn new(
        name: &str,
        (queue, counters): (Arc<Queue<W::Request, R>>, Arc<Counters>),
        bounds: Bounds,
        work: W,
    ) -> Self {
        let (inbox, unresolved) = (VecDeque::new(), None);
        Self { name: name.into(), work, bounds, inbox, queue, counters, unresolved, pauses: true }
    }

    /// One that lets no time pass between two attempts.
    pub(crate) fn without_pauses(self) -> Self {
        Self { pauses: false, ..self }
    }

    /// Works until the lane is drained, then gives the work back.
    pub(crate) fn run(mut self) -> W {
        let _closes = CloseOnExit(Arc::clone(&self.queue));
        loop {
            let sleeps = self.unresolved.is_none();
            let found = if sleeps { self.queue.collect(&mut self.inbox) } else { self.collect_now() };
            if !self.turn(found) {
                return self.work;
            }
        }
    }

    /// One turn without sleeping; whether there was anything to do.
    pub(crate) fn step(&mut self) -> bool {
        let found = self.collect_now();
        self.turn(found)
    }

    fn collect_now(&mut self) -> Found {
        self.queue.collect_now(&mut self.inbox)
    }

    /// A batch of what was found, or a question what became of the last one; whether there was any of both.
    fn turn(&mut self, found: Found) -> bool {
        let started = Instant::now();
        if let Some(unresolved) = self.unresolved.take() {
            self.unresolved = self.find_out(unresolved, found);
        } else if matches!(found, Found::BatchHandler | Found::LastWork) {
            let (batch, weight) = self.next_batch(found);
            self.unresolved = self.settle(batch, weight);
            self.counters.in_flight.store(0, Relaxed);
        } else {
            return false;
        }
        add_since(&self.counters.busy_ns, started);
        true
    }

    /// What waits, and how much it is.
    fn next_batch(&mut self, found: Found) -> (Batch<W::Request, R>, BatchWeight) {
        let at_end = if found == Found::LastWork { Cut::Drain } else { Cut::Idle };
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

    /// Brings every request of the batch to its answer, in order.
    fn settle(&mut self, batch: Batch<W::Request, R>, weight: BatchWeight) -> OpenEnd<W> {
        let mut pieces = Pieces::whole(batch);
        while let Some(mut piece) = pieces.next() {
            let begun = Instant::now();
            let (outcome, retries) = self.commit(&piece.requests, begun);
            let mut passage = self.passage(weight, begun, retries);
            match outcome {
                Ok(committed) => {
                    let answers = self.work.publish(piece.requests, committed);
                    let published = Instant::now();
                    self.counters.publishing.record(published.duration_since(passage.ended));
                    passage.published = Some(published);
                    assert!(answers.len() == piece.replies.len(), "publish gives every request one answer");
                    tell_each(&mut piece.replies, &passage);
                    let (callers, rest) = (answers.len(), piece.replies.into_iter().zip(answers));
                    self.work.tell(callers, Box::new(Telling { rest, fault: PhantomData }));
                }
                Err(Setback::Row(_)) if piece.requests.len() > 1 => {
                    add(&self.counters.splits, 1);
                    pieces.halve(piece);
                }
                Err(Setback::Row(fault) | Setback::Piece(fault)) => {
                    tell_each(&mut piece.replies, &passage);
                    self.fail(piece.replies, &fault);
                }
                Err(Setback::Away(fault)) => {
                    tell_each(&mut piece.replies, &passage);
                    self.fail(piece.replies, &fault);
                    self.fail_rest(pieces, &fault);
                    return None;
                }
                Err(Setback::Unresolved { own, others }) => {
                    tell_each(&mut piece.replies, &passage);
                    self.fail(piece.replies, &own);
                    self.fail_rest(pieces, &others);
                    return Some(Unresolved { requests: piece.requests, fault: others, asked: 0 });
                }
            }
        }
        None
    }

    /// How a piece of a batch went through the store, just now.
    fn passage(&self, weight: BatchWeight, begun: Instant, retries: u32) -> LaneTimings {
        let BatchWeight { requests, rows, taken } = weight;
        let (lane, batch) = (Arc::clone(&self.name), self.counters.batches.load(Relaxed));
        let (read, ended) = (self.work.read_at().filter(|read| *read >= begun), Instant::now());
        LaneTimings { lane, batch, requests, rows, retries, taken, begun, read, ended, published: None }
    }

    /// Hands one batch to the store, as often as the bounds allow; how often again.
    fn commit(&mut self, requests: &[W::Request], started: Instant) -> (CommitResult<W>, u32) {
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
            self.pause(retries);
        };
        add_since(&self.counters.committing_ns, started);
        (outcome, retries)
    }

    /// Asks once more what became of a piece, and fails whoever has arrived meanwhile; gives it back if that is not known yet.
    ///
    /// Nothing else may be committed before: readers would see changes in another order than the truth has
    /// them. A lane that drains asks a few times more and then leaves it: whoever starts next reads the truth.
    fn find_out(&mut self, unresolved: Unresolved<W::Request, W::Fault>, found: Found) -> OpenEnd<W> {
        let Unresolved { requests, fault, asked } = unresolved;
        self.fail_inbox(&fault);
        let draining = matches!(found, Found::LastWork | Found::End);
        if draining && asked >= self.bounds.retries_max {
            return None;
        }
        let asked = asked.saturating_add(1);
        self.pause(asked);
        match self.resolve(&requests) {
            Ok(Resolution::Committed(committed)) => {
                let _nobody_waits = self.work.publish(requests, committed);
                None
            }
            Ok(Resolution::NotCommitted(_)) => None,
            Err(fault) => Some(Unresolved { requests, fault, asked }),
        }
    }

    fn pause(&mut self, attempts: u32) {
        if self.pauses {
            self.work.pause(attempts);
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

type ResolveResult<W> = Result<
    Resolution<<W as BatchHandler>::Committed, <W as BatchHandler>::Fault>,
    <W as BatchHandler>::Fault,
>;

type CommitResult<W> = Result<<W as BatchHandler>::Committed, Setback<<W as BatchHandler>::Fault>>;

/// Callers who have an answer and have yet to hear it; they do when this is dropped, in order.
struct Telling<A, F, R: Reply<Result<A, F>>> {
    rest: Zip<vec::IntoIter<R>, vec::IntoIter<A>>,
    fault: PhantomData<fn() -> F>,
}

impl<A, F, R: Reply<Result<A, F>>> Drop for Telling<A, F, R> {
    fn drop(&mut self) {
        for (reply, answer) in self.rest.by_ref() {
            reply.send(Ok(answer));
        }
    }
}

/// Tells everyone how it went.
fn tell_each<A, R: Reply<A>>(replies: &mut [R], passage: &LaneTimings) {
    replies.iter_mut().for_each(|reply| reply.passed(passage));
}

/// Closes the queue however the lane's thread ends. After a drain there is nothing left to close.
struct CloseOnExit<Q, R>(Arc<Queue<Q, R>>);

impl<Q, R> Drop for CloseOnExit<Q, R> {
    fn drop(&mut self) {
        self.0.close();
    }
}
