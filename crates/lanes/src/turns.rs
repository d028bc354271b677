//! Whose turn it is to commit, among lanes that write to the same place.
//!
//! A commit costs the same whether it has ten rows or a hundred, so lanes beside each other make batches small and commits
//! dear. While little waits they take turns: who finds another one committing waits until it is done, and meanwhile its own
//! batch grows. A lane has its turn while it commits; what it publishes and answers goes on beside the next one's commit.
//! Where enough waits a batch goes beside the others, and nobody waits long: a database that is slow, or silent to one
//! lane, holds up no other. Not here: who may change what (`gate`).

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// How long a lane waits for its turn: a few commits of a database that is near.
pub(crate) const PATIENCE: Duration = Duration::from_millis(2);

/// The turns of some lanes; each has a clone of the same.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// How many have a turn.
    committing: Mutex<usize>,
    ended: Condvar,
}

/// A lane's turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
}

impl Turns {
    /// Takes a turn: beside others, or once nobody has one or the patience ends. Says whether it had to wait.
    pub(crate) fn take(&self, beside: bool, patience: Duration) -> (Turn, bool) {
        let came = Instant::now();
        let (mut committing, mut waited) = (self.committing(), false);
        while !beside && *committing > 0 {
            let left = patience.saturating_sub(came.elapsed());
            if left.is_zero() {
                break;
            }
            waited = true;
            let woken = self.shared.ended.wait_timeout(committing, left);
            committing = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *committing += 1;
        (Turn { turns: self.clone() }, waited)
    }

    fn committing(&self) -> MutexGuard<'_, usize> {
        self.shared.committing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.turns.committing() -= 1;
        self.turns.shared.ended.notify_all();
    }
}
