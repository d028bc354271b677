//! A thread that works in the background until it is stopped.
//!
//! It waits on a channel: a word wakes it, and the end of the channel ends it. [`Tally::work`] does the same work by hand.
//! Not here: what each thread does, and how often.

use crate::contests::expire;
use crate::contests::keeper as contests;
use crate::failure::{Failure, Fault};
use crate::maintenance::{self, Pace};
use crate::periods::{keeper, prizes};
use crate::servers::doubts;
use crate::tally::Tally;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The thread, if it is running.
#[derive(Debug, Default)]
pub(crate) struct Background {
    thread: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Background {
    /// Starts it under a name of its own.
    pub(crate) fn start(
        &self,
        name: &str,
        run: impl FnOnce(Receiver<()>) + Send + 'static,
    ) -> std::io::Result<()> {
        let (wake, woken) = channel();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || run(woken))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some((wake, thread));
        Ok(())
    }

    /// Has it look at once.
    pub(crate) fn wake(&self) {
        if let Some((wake, _)) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            // A thread that has ended needs no waking.
            let _ = wake.send(());
        }
    }

    /// Ends it after what it is doing. Blocks until then.
    pub(crate) fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((wake, thread)) = thread {
            drop(wake);
            let name = thread.thread().name().unwrap_or_default().to_owned();
            if thread.join().is_err() {
                tracing::error!(%name, "a thread in the background panicked");
            }
        }
    }
}

/// Starts the threads that work before the service is there.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    let of = |what| move |error| Fault::Broken(format!("no thread {what}: {error}"));
    let Tally { store, clock, .. } = &**tally;
    tally.ledger.start_expiry(store, clock).map_err(of("to end holds"))?;
    tally.maintenance.start(Arc::clone(store), clock.clone(), tally.settings.idempotency_keep_micros);
    tally.keeper.start(Arc::downgrade(tally)).map_err(of("to close periods"))?;
    tally.events.start(Arc::downgrade(tally)).map_err(of("for events"))?;
    Ok(())
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
    /// Does one turn of a lane, where lanes have no threads: its next batch, or one question what became of the last. Says
    /// whether there was anything to do.
    ///
    /// # Panics
    /// There is no lane of that number.
    pub fn step(&self, lane: LaneByHand) -> bool {
        match lane {
            LaneByHand::Scores(number) => self.lane.step(number),
            LaneByHand::Ledger => self.ledger.step(),
        }
    }

    /// Does one look of each thread in the background, where the service has none. Blocks.
    ///
    /// The first failure is returned, and keeps no other part from its look. Streams of events are not served so.
    pub fn work(&self) -> Result<(), Failure> {
        let closed = keeper::close_due(self).and(keeper::refresh_due(self));
        let expired = self.ledger.expire_due(&*self.store, &self.clock);
        let done = contests::do_due(self).and(prizes::pay_due(self));
        let done = done.and(expire::delete_due(self)).and(doubts::find_out(self));
        let keep_micros = self.settings.idempotency_keep_micros;
        let cleaned = maintenance::bite(&*self.store, &self.clock, keep_micros, &mut Pace::default());
        closed.and(expired).and(done).and(cleaned.map(drop).map_err(Failure::from))
    }
}
