//! The change from one journal file to the next, with the memtable that belongs to it.
//!
//! It is the writer's: between two batches, so that each is in one file and in one memtable. The flush asks for it and
//! waits; a writer that is busy does it before its next batch, because a mutex may let a busy one have it again and
//! again, and where nobody writes the flush does it itself. Not here: making and emptying files (`flush`).

use super::journal::Journal;
use super::memtable::Memtable;
use super::run::Writer;
use super::state::Shared;
use crate::StoreError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the flush waits for the writer before it looks whether there is none.
const WRITER_WAIT: Duration = Duration::from_millis(1);

/// A memtable and the file that holds it.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) memtable: Arc<Memtable>,
    pub(super) journal: Option<Journal>,
}

/// Where flush and writer meet.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    state: Mutex<State>,
    done: Condvar,
    wanted: AtomicBool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Wanted(Option<Journal>),
    Done(Taken),
    Failed(StoreError, Option<Journal>),
}

impl Rotation {
    /// By the flush: changes over to the file `next`, or to none, and gives what was before. A failure gives it back.
    pub(super) fn ask(
        &self,
        shared: &Shared,
        next: Option<Journal>,
    ) -> Result<Taken, Box<(StoreError, Option<Journal>)>> {
        *self.state() = State::Wanted(next);
        self.wanted.store(true, Ordering::Relaxed);
        loop {
            if let Some(mut writer) = shared.idle_writer() {
                self.turn(shared, &mut writer);
            }
            let mut state = self.state();
            match std::mem::take(&mut *state) {
                State::Done(taken) => return Ok(taken),
                State::Failed(error, next) => return Err(Box::new((error, next))),
                wanted => *state = wanted,
            }
            drop(self.done.wait_timeout(state, WRITER_WAIT));
        }
    }

    /// By the writer, before a batch.
    pub(super) fn turn_if_wanted(&self, shared: &Shared, writer: &mut Writer) {
        if self.wanted.load(Ordering::Relaxed) {
            self.turn(shared, writer);
        }
    }

    fn turn(&self, shared: &Shared, writer: &mut Writer) {
        let mut state = self.state();
        let next = match std::mem::take(&mut *state) {
            State::Wanted(next) => next,
            // The writer and the flush may both have come to do it.
            other => return *state = other,
        };
        // A batch in the new file must never be there without those in the old one.
        *state = match writer.sync(shared) {
            Err(error) => State::Failed(error, next),
            Ok(()) => {
                let mut memtables = shared.memtables_mut();
                assert!(memtables.flushing.is_none(), "one generation is folded at a time");
                let memtable = Arc::new(std::mem::take(&mut memtables.active));
                memtables.flushing = (!memtable.is_empty()).then(|| Arc::clone(&memtable));
                State::Done(Taken { memtable, journal: std::mem::replace(&mut writer.journal, next) })
            }
        };
        self.wanted.store(false, Ordering::Relaxed);
        self.done.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
