//! Journal rotation: the change to the next journal file, with its memtable.
//!
//! The writer rotates between two batches, so that each batch is in one file and in one memtable. The flush requests the
//! rotation and waits. A busy writer rotates before its next batch, because a mutex may let a busy thread have it again and
//! again. Without a writer, the flush rotates. Not here: creating and emptying files (`flush_worker`).

use super::journal::Journal;
use super::memtable::Memtable;
use super::run::Writer;
use super::state::Shared;
use crate::StoreError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the flush waits for the writer before it checks whether there is none.
const WRITER_WAIT: Duration = Duration::from_millis(1);

/// A memtable and the file that holds it.
#[derive(Debug)]
pub(super) struct RotatedMemtable {
    pub(super) memtable: Arc<Memtable>,
    pub(super) journal: Option<Journal>,
}

/// The shared state of flush and writer.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    state: Mutex<State>,
    done: Condvar,
    requested: AtomicBool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Requested(Option<Journal>),
    Done(RotatedMemtable),
    Failed(StoreError, Option<Journal>),
}

impl Rotation {
    /// For the flush: rotates to the file `next`, or to none, and returns the previous one. A failure returns `next`.
    pub(super) fn request(
        &self,
        shared: &Shared,
        next: Option<Journal>,
    ) -> Result<RotatedMemtable, Box<(StoreError, Option<Journal>)>> {
        *self.state() = State::Requested(next);
        self.requested.store(true, Ordering::Relaxed);
        loop {
            if let Some(mut writer) = shared.idle_writer() {
                self.rotate(shared, &mut writer);
            }
            let mut state = self.state();
            match std::mem::take(&mut *state) {
                State::Done(taken) => return Ok(taken),
                State::Failed(error, next) => return Err(Box::new((error, next))),
                requested => *state = requested,
            }
            drop(self.done.wait_timeout(state, WRITER_WAIT));
        }
    }

    /// For the writer, before a batch.
    pub(super) fn rotate_if_requested(&self, shared: &Shared, writer: &mut Writer) {
        if self.requested.load(Ordering::Relaxed) {
            self.rotate(shared, writer);
        }
    }

    fn rotate(&self, shared: &Shared, writer: &mut Writer) {
        let mut state = self.state();
        let next = match std::mem::take(&mut *state) {
            State::Requested(next) => next,
            // The writer and the flush may both try to rotate.
            other => return *state = other,
        };
        // The batches of the old file must be on the disk before any batch of the new one.
        *state = match writer.sync(shared) {
            Err(error) => State::Failed(error, next),
            Ok(()) => {
                let mut memtables = shared.memtables_mut();
                assert!(memtables.flushing.is_none(), "one memtable is flushed at a time");
                let memtable = Arc::new(std::mem::take(&mut memtables.active));
                memtables.flushing = (!memtable.is_empty()).then(|| Arc::clone(&memtable));
                State::Done(RotatedMemtable {
                    memtable,
                    journal: std::mem::replace(&mut writer.journal, next),
                })
            }
        };
        self.requested.store(false, Ordering::Relaxed);
        self.done.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
