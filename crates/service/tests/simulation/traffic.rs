//! Requests in flight: several callers at once, each a future that is polled by hand.
//!
//! A caller sends its request when its future is polled first: then its request is in the lane, or is rejected. Requests of
//! one transaction are simple; others do several things, and block until they have done them. [`meanwhile`] sends later
//! simple ones while those wait for a lane. Not here: when lanes run their batches, and what the replies mean.

use crate::operations::{Answer, Fate, Operation};
use crate::run::Log;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use tally_testkit::rng::Rng;

/// A request to send.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) number: usize,
    pub(crate) operation: Operation,
    pub(crate) key: bool,
}

/// A request with its reply.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) planned: Planned,
    pub(crate) fate: Fate,
    /// Another request with its key had no answer yet when it was made.
    pub(crate) in_progress: bool,
    /// The times of request and reply, as increasing numbers.
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    /// The number of batches that lanes had run then.
    pub(crate) turn: u64,
}

struct Caller {
    planned: Planned,
    future: Option<Answer>,
    in_progress: bool,
    asked: u64,
    done: Option<(Fate, u64, u64)>,
}

type Call = Box<dyn Fn(&Planned) -> Answer>;

#[derive(Default)]
struct Traffic {
    call: Option<Call>,
    log: Log,
    /// It has another name in each run.
    folder: String,
    later: VecDeque<Planned>,
    callers: Vec<Caller>,
    clock: u64,
    turn: u64,
    /// The percentage of requests that are sent while another waits.
    rng: Option<Rng>,
}

thread_local! {
    static TRAFFIC: RefCell<Traffic> = RefCell::default();
}

/// Percent of a caller's waits in which another one arrives.
const COMES_MEANWHILE: u64 = 25;

/// Begins a round with these requests.
pub(crate) fn begin(planned: Vec<Planned>, rng: Rng, (log, folder): (&Log, String), call: Call) {
    let (later, log) = (planned.into(), Log::clone(log));
    let traffic = Traffic { call: Some(call), log, folder, later, rng: Some(rng), ..Traffic::default() };
    TRAFFIC.set(traffic);
}

/// Each has its answer.
pub(crate) fn end() -> Vec<Answered> {
    let answered = |caller: Caller| {
        let Caller { planned, in_progress, asked, done, .. } = caller;
        let (fate, answered, turn) = done.expect("each request has its answer");
        Answered { planned, fate, in_progress, asked, answered, turn }
    };
    TRAFFIC.take().callers.into_iter().map(answered).collect()
}

/// Whether a request has no reply, or was not made yet.
pub(crate) fn is_busy() -> bool {
    TRAFFIC.with_borrow(|traffic| {
        !traffic.later.is_empty() || traffic.callers.iter().any(|caller| caller.done.is_none())
    })
}

/// Makes the next request.
pub(crate) fn ask_next() {
    let index = TRAFFIC.with_borrow_mut(|traffic| {
        let planned = traffic.later.pop_front()?;
        let same =
            |caller: &Caller| caller.done.is_none() && planned.key && caller.planned.number == planned.number;
        let in_progress = traffic.callers.iter().any(same);
        traffic.clock += 1;
        let future = traffic.call.as_ref().map(|call| call(&planned));
        traffic.note(format!("{} {:?}", planned.number, planned.operation));
        let asked = traffic.clock;
        traffic.callers.push(Caller { planned, future, in_progress, asked, done: None });
        Some(traffic.callers.len() - 1)
    });
    index.into_iter().for_each(poll);
}

/// Delivers the replies of lanes to callers: to simple ones, or to all of them.
pub(crate) fn hear(only_simple: bool) {
    let waits = |index: usize| {
        TRAFFIC.with_borrow(|traffic| {
            let caller = &traffic.callers[index];
            caller.done.is_none() && (caller.planned.operation.is_simple() || !only_simple)
        })
    };
    let count = TRAFFIC.with_borrow(|traffic| traffic.callers.len());
    (0..count).filter(|index| waits(*index)).for_each(poll);
}

/// A lane runs a batch.
pub(crate) fn turns() {
    TRAFFIC.with_borrow_mut(|traffic| traffic.turn += 1);
}

/// A caller waits: others get their replies, and some arrive.
pub(crate) fn meanwhile() {
    hear(true);
    turns();
    let comes = TRAFFIC.with_borrow_mut(|traffic| {
        let is_simple = traffic.later.front().is_some_and(|planned| planned.operation.is_simple());
        is_simple && traffic.rng.as_mut().is_some_and(|rng| rng.percent(COMES_MEANWHILE))
    });
    if comes {
        ask_next();
    }
}

/// Polls one; meanwhile it may send others.
fn poll(index: usize) {
    let future = TRAFFIC.with_borrow_mut(|traffic| traffic.callers[index].future.take());
    // It is being polled.
    let Some(mut future) = future else { return };
    let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    TRAFFIC.with_borrow_mut(|traffic| match polled {
        Poll::Pending => traffic.callers[index].future = Some(future),
        Poll::Ready(fate) => {
            traffic.clock += 1;
            traffic.note(format!("{}: {}", traffic.callers[index].planned.number, fate.shown()));
            traffic.callers[index].done = Some((fate, traffic.clock, traffic.turn));
        }
    });
}

impl Traffic {
    fn note(&self, what: String) {
        self.log.borrow_mut().push(what.replace(&self.folder, ""));
    }
}
