//! Background tasks: each has one thread, which runs a round, waits, and repeats until it is stopped.
//!
//! A task does one or more jobs. A job that fails waits longer each time, does not delay other jobs, and has one line in the
//! log. [`Tally::work`] does the same work by hand. Not here: what each task does, and how often.

use crate::backoff::Backoff;
use crate::contests::{expire, scheduler as contests};
use crate::failure::{Failure, Fault};
use crate::ledger::archive::{self, ArchiveFailure};
use crate::ledger::expiry;
use crate::maintenance::{self, Pace};
use crate::members::{erase, index_names};
use crate::periods::{prizes, scheduler as periods};
use crate::redis_health;
use crate::servers::in_doubt;
use crate::tally::Tally;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When a task runs its next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// After that time, or earlier when it is woken.
    After(Duration),
    WhenWoken,
}

impl Next {
    /// Waits until then; false when the task is stopped.
    fn wait(self, woken: &Receiver<()>) -> bool {
        let woken_by = match self {
            Self::After(time) => woken.recv_timeout(time),
            Self::WhenWoken => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        // One round also serves a wake that came during the wait.
        let _ = woken.try_recv();
        woken_by != Err(RecvTimeoutError::Disconnected)
    }
}

/// The thread of a task, if it is running.
#[derive(Debug, Default)]
pub(crate) struct BackgroundTask {
    thread: Mutex<Option<(SyncSender<()>, JoinHandle<()>)>>,
}

impl BackgroundTask {
    /// Starts it; it ends when it is stopped, or with the service.
    pub(crate) fn start(
        &self,
        name: &str,
        tally: &Arc<Tally>,
        first: Next,
        mut round: impl FnMut(&Tally) -> Next + Send + 'static,
    ) -> Result<(), Failure> {
        // One round serves all wakes before it, so one pending wake is enough.
        let (wake, woken) = sync_channel(1);
        let tally = Arc::downgrade(tally);
        let run = move || {
            let mut next = first;
            while next.wait(&woken) {
                let Some(tally) = tally.upgrade() else { return };
                next = round(&tally);
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        let thread = thread.map_err(|error| Fault::Broken(format!("no thread for `{name}`: {error}")))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some((wake, thread));
        Ok(())
    }

    /// Starts the next round at once.
    pub(crate) fn wake(&self) {
        if let Some((wake, _)) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            // Another wake waits already, or the thread has ended.
            let _ = wake.try_send(());
        }
    }

    /// Stops it after its present round. Blocks until then.
    pub(crate) fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((wake, thread)) = thread {
            drop(wake);
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if thread.join().is_err() {
                tracing::error!(%name, "a background task panicked");
            }
        }
    }
}

/// The tasks of the service, but those of events and of other servers.
#[derive(Default)]
pub(crate) struct Tasks {
    pub(crate) contests: BackgroundTask,
    pub(crate) periods: BackgroundTask,
    pub(crate) holds: BackgroundTask,
    pub(crate) maintenance: BackgroundTask,
    pub(crate) erasures: BackgroundTask,
    pub(crate) archives: BackgroundTask,
    pub(crate) names: BackgroundTask,
    /// Set once the service ends: long work ends early.
    pub(crate) stops: AtomicBool,
    pub(crate) redis: BackgroundTask,
    pub(crate) redis_claim: BackgroundTask,
    pub(crate) secret: BackgroundTask,
    pub(crate) noted: Noted,
}

/// What tasks say of their work.
#[derive(Default)]
pub(crate) struct Noted {
    /// An attempt to archive a month that failed.
    pub(crate) archive_failure: Mutex<Option<ArchiveFailure>>,
    /// When nothing was left to expire.
    pub(crate) expired: Mutex<Option<Instant>>,
}

pub(crate) struct Job {
    backoff: Backoff,
    every: Duration,
    /// How many times as long as it took it waits after it worked.
    rests: u32,
    next: Instant,
}

impl Job {
    /// A job that runs in each round that begins at least `every` after the last one; the log uses the name `what`.
    pub(crate) fn new(what: &'static str, every: Duration) -> Self {
        Self { backoff: Backoff::new(what), every, rests: 0, next: Instant::now() }
    }

    /// A job that also waits `rests` times its duration.
    pub(crate) fn resting(what: &'static str, rests: u32) -> Self {
        Self { rests, ..Self::new(what, Duration::ZERO) }
    }

    /// Runs it if it is due; returns its result if it ran and succeeded.
    pub(crate) fn run<T>(&mut self, work: impl FnOnce() -> Result<T, Failure>) -> Option<T> {
        let began = Instant::now();
        if began < self.next {
            return None;
        }
        let done = work();
        let ended = Instant::now();
        let pause = self.backoff.note(done.as_ref().err());
        self.next = (began + self.every).max(ended + pause);
        if done.is_ok() {
            self.next = self.next.max(ended + (ended - began) * self.rests);
        }
        done.ok()
    }
}

/// Starts the tasks that work before the service is there.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    expiry::start(tally)?;
    maintenance::start(tally)?;
    erase::start(tally)?;
    archive::start(tally)?;
    periods::start(tally)?;
    redis_health::start(tally)?;
    index_names::start(tally)?;
    tally.events.start(tally)
}

/// Starts the tasks of a server that follows: those that change nothing in the store.
pub(crate) fn start_following(tally: &Arc<Tally>) -> Result<(), Failure> {
    redis_health::start(tally)?;
    tally.events.start(tally)
}

/// A lane that has no thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneByHand {
    /// One of scores, by its number.
    Scores(usize),
    /// The ledger's.
    Ledger,
}

impl Tally {
    /// Runs one step of a lane without a thread: its next batch, or one attempt to resolve the last. Returns whether there was
    /// anything to do.
    pub fn step(&self, lane: LaneByHand) -> bool {
        match lane {
            LaneByHand::Scores(number) => self.lane.step(number),
            LaneByHand::Ledger => self.ledger.step(),
        }
    }

    /// Runs one round of each background task, if the service has no threads for them. Blocks.
    ///
    /// It returns the first failure, which does not stop the other tasks. It does not serve event streams.
    pub fn work(&self) -> Result<(), Failure> {
        let closed = periods::close_due(self).and(periods::refresh_due(self));
        let expired = expiry::end_due(self).map(drop);
        let done = contests::do_due(self).and(prizes::pay_due(self));
        let done = done.and(expire::delete_due(self)).and(in_doubt::resolve_all(self));
        let done = done.and(erase::finish_all(self));
        let cleaned = maintenance::clean(self, &mut Pace::default());
        closed.and(expired).and(done).and(cleaned.map(drop))
    }
}
