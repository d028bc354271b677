//! Replies of a lane to its callers: each waits on a channel, and dropping the wait drops nothing else.

use crate::failure::{Failure, Fault};
use crate::requests::KeyGuard;
use crate::settings::Background;
use crate::stages::{self, Passage};
use crate::traces::SampledEntry;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tally_lanes::{AffinityGuard, BatchHandler, Lane, LaneTimings, Reply, SubmitError};
use tally_rules::Rejection;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// The reply to a caller.
pub(crate) type LaneReply<T> = Result<Result<T, Rejection>, Fault>;

/// The receiver of a reply. Dropping the receiving end drops only the wait.
pub(crate) struct PendingReply<T> {
    /// Ends with the reply, so that a retry is rejected as in progress exactly as long as it is.
    _running: Vec<KeyGuard>,
    /// Its affinity to a lane, if there are several: until its changes can be read.
    guard: Option<AffinityGuard>,
    to: To<T>,
    /// Known before the reply is sent.
    passage: Option<Passage>,
}

enum To<T> {
    One(oneshot::Sender<(LaneReply<T>, Option<Passage>)>, Option<Box<SampledEntry>>),
    Place(Arc<Collector<T>>, usize),
}

/// The reply dispatcher of a lane. The lane could wake callers one by one on another thread's runtime. But then the runtime's
/// threads would interrupt it for each few of them, and sleep in between. So one task of the runtime sends all replies at
/// once.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplyDispatcher {
    runtime: Arc<OnceLock<Handle>>,
}

/// So many callers are worth a task of the runtime.
const TASK_CALLERS_MIN: usize = 8;

impl ReplyDispatcher {
    /// Keeps the first runtime of a caller. One with a single thread might not run while its thread blocks.
    pub(crate) fn learn_runtime(&self) {
        if self.runtime.get().is_none()
            && let Ok(here) = Handle::try_current()
            && here.runtime_flavor() == RuntimeFlavor::MultiThread
        {
            let _already = self.runtime.set(here);
        }
    }

    /// See [`tally_lanes::BatchHandler::dispatch`]. A runtime that has ended drops its tasks, and so sends the replies, too.
    pub(crate) fn dispatch(&self, callers: usize, replies: Box<dyn Send>) {
        match self.runtime.get().filter(|_| callers >= TASK_CALLERS_MIN) {
            Some(runtime) => drop(runtime.spawn(async move { drop(replies) })),
            None => drop(replies),
        }
    }
}

/// A request among neighbours, with the guards that it holds until it is done.
pub(crate) struct GuardedRequest<Q> {
    pub(crate) request: Q,
    pub(crate) running: Vec<KeyGuard>,
    pub(crate) guard: Option<AffinityGuard>,
}

impl<Q> GuardedRequest<Q> {
    /// A request without guards.
    pub(crate) fn of(request: Q) -> Self {
        Self { request, running: Vec::new(), guard: None }
    }
}

/// Replies so far, the number of missing ones, and the caller that waits for all. It gets the passage of the last one.
type Collected<T> = (Vec<Option<LaneReply<T>>>, usize, Option<oneshot::Sender<CollectedReplies<T>>>);

type CollectedReplies<T> = (Vec<LaneReply<T>>, Option<Passage>);

struct Collector<T> {
    state: Mutex<Collected<T>>,
    sampled: Option<Box<SampledEntry>>,
}

/// One request; the caller waits, the lane does not.
pub(crate) async fn ask<W, T: Send + 'static>(
    lane: &Lane<W, PendingReply<T>>,
    request: W::Request,
    running: Vec<KeyGuard>,
    guard: Option<AffinityGuard>,
) -> Result<T, Failure>
where
    W: BatchHandler<Answer = Result<T, Rejection>, Fault = Fault>,
{
    let ((pending, reply), entered) = (pending(running, guard), stages::entered());
    lane.submit(request, pending).map_err(submit_failure)?;
    let (answer, passage) = reply.await.map_err(|_| lost())?;
    stages::add_passage(entered, passage);
    Ok(answer??)
}

/// The same on a thread that may block. For lanes without threads it runs steps of the lane until there is a reply.
pub(crate) fn ask_blocking<W, T: Send + 'static>(
    lane: &Lane<W, PendingReply<T>>,
    GuardedRequest { request, running, guard }: GuardedRequest<W::Request>,
    background: Background,
) -> Result<T, Failure>
where
    W: BatchHandler<Answer = Result<T, Rejection>, Fault = Fault>,
{
    let ((pending, reply), entered) = (pending(running, guard), stages::entered());
    lane.submit(request, pending).map_err(submit_failure)?;
    if let Background::ByHand(meanwhile) = background {
        meanwhile();
        while reply.is_empty() && lane.step() {}
    }
    let (answer, passage) = reply.blocking_recv().map_err(|_| lost())?;
    stages::add_passage(entered, passage);
    Ok(answer??)
}

type ReplyChannel<T> = (PendingReply<T>, oneshot::Receiver<(LaneReply<T>, Option<Passage>)>);

/// The two ends of the reply to one request.
fn pending<T>(running: Vec<KeyGuard>, guard: Option<AffinityGuard>) -> ReplyChannel<T> {
    let (sender, reply) = oneshot::channel();
    let to = To::One(sender, SampledEntry::now());
    (PendingReply { _running: running, guard, to, passage: None }, reply)
}

/// Neighbours in one lane, or none of them; replies in order.
pub(crate) async fn ask_all<W, T: Send + 'static>(
    lane: &Lane<W, PendingReply<T>>,
    requests: Vec<GuardedRequest<W::Request>>,
) -> Result<Vec<LaneReply<T>>, Failure>
where
    W: BatchHandler<Answer = Result<T, Rejection>, Fault = Fault>,
{
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let (sender, reply) = oneshot::channel();
    let answers = Arc::new(Collector {
        state: Mutex::new((requests.iter().map(|_| None).collect(), requests.len(), Some(sender))),
        sampled: SampledEntry::now(),
    });
    let many = requests.into_iter().enumerate().map(|(at, GuardedRequest { request, running, guard })| {
        let to = To::Place(Arc::clone(&answers), at);
        (request, PendingReply { _running: running, guard, to, passage: None })
    });
    let (many, entered) = (many.collect(), stages::entered());
    lane.submit_all(many).map_err(submit_failure)?;
    let (answers, passage) = reply.await.map_err(|_| lost())?;
    stages::add_passage(entered, passage);
    Ok(answers)
}

impl<T: Send + 'static> Reply<LaneReply<T>> for PendingReply<T> {
    fn record_timings(&mut self, timings: &LaneTimings) {
        self.passage = Some(Passage::of(timings));
        let sampled = match &self.to {
            To::One(_, sampled) => sampled,
            To::Place(collector, _) => &collector.sampled,
        };
        if let Some(sampled) = sampled {
            sampled.record_timings(timings);
        }
    }

    fn send(self, answer: LaneReply<T>) {
        let Self { _running, guard, to, passage } = self;
        drop(_running);
        match guard {
            // It may have been done, and be published late: what follows must not be decided in another lane before.
            Some(guard) if matches!(answer, Err(Fault::OutcomeUnknown(_))) => guard.keep(),
            guard => drop(guard),
        }
        match to {
            // The receiver is gone when the client has hung up; its request is done all the same.
            To::One(sender, _) => drop(sender.send((answer, passage))),
            To::Place(collector, at) => collector.put(at, answer, passage),
        }
    }
}

impl<T> Collector<T> {
    fn put(&self, at: usize, answer: LaneReply<T>, passage: Option<Passage>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (answers, missing, sender) = &mut *state;
        answers[at] = Some(answer);
        *missing -= 1;
        if *missing == 0 {
            let all = answers.drain(..).map(|one| one.expect("every place was answered")).collect();
            if let Some(sender) = sender.take() {
                drop(sender.send((all, passage)));
            }
        }
    }
}

fn submit_failure<T>(error: SubmitError<T>) -> Failure {
    Failure::Fault(match error {
        SubmitError::Full(_) => Fault::Overloaded,
        SubmitError::Draining(_) => Fault::Draining,
    })
}

fn lost() -> Failure {
    Failure::Fault(Fault::OutcomeUnknown("the lane stopped before it answered".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::{self, ThreadId};
    use tokio::runtime::Builder;

    /// Sends the thread on which it was dropped.
    struct Dropped(Sender<ThreadId>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).expect("the test listens");
        }
    }

    fn dropped() -> (Box<dyn Send>, Receiver<ThreadId>) {
        let (sender, receiver) = channel();
        (Box::new(Dropped(sender)), receiver)
    }

    #[test]
    fn many_are_told_on_the_runtime_and_few_at_once() {
        let here = thread::current().id();
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let dispatcher = ReplyDispatcher::default();
        runtime.block_on(async { dispatcher.learn_runtime() });
        let (replies, receiver) = dropped();
        dispatcher.dispatch(TASK_CALLERS_MIN, replies);
        assert_ne!(receiver.recv().unwrap(), here);
        let (replies, receiver) = dropped();
        dispatcher.dispatch(TASK_CALLERS_MIN - 1, replies);
        assert_eq!(receiver.try_recv().unwrap(), here);
        // Replies that wait on a runtime that ends are sent, and so are later ones.
        drop(runtime);
        let (replies, receiver) = dropped();
        dispatcher.dispatch(TASK_CALLERS_MIN, replies);
        assert_eq!(receiver.try_recv().unwrap(), here);
    }

    #[test]
    fn a_runtime_of_one_thread_is_left_alone() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let dispatcher = ReplyDispatcher::default();
        runtime.block_on(async { dispatcher.learn_runtime() });
        let (replies, receiver) = dropped();
        dispatcher.dispatch(TASK_CALLERS_MIN, replies);
        assert_eq!(receiver.try_recv().unwrap(), thread::current().id());
    }
}
