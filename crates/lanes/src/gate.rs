//! A gate in front of the work of several lanes: batches pass side by side, or one passes alone.
//!
//! Lanes that share what they change need it for the few batches that concern more than the lane's own keys. Whoever
//! comes first goes first: a batch that wants to be alone waits for those inside, and those behind it wait for it, so that
//! nobody is passed by for ever. Not here: what a batch concerns.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The gate; each lane has a clone of the same.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number that the next one to come gets.
    next: u64,
    /// Who waits to go in, first come first.
    line: VecDeque<u64>,
    /// How many are inside.
    inside: u64,
    /// Whether the one inside is alone.
    alone: bool,
}

/// The right to be inside, until it is dropped.
#[derive(Debug)]
pub struct Pass {
    gate: Gate,
}

impl Gate {
    /// Goes in beside others, or alone, as soon as that can be; `None` where it could not be for so long: somebody inside
    /// does not come out. Nobody asks who is inside already.
    #[must_use]
    pub fn pass(&self, alone: bool, patience: Duration) -> Option<Pass> {
        let came = Instant::now();
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.line.push_back(number);
        while state.line.front() != Some(&number) || state.alone || (alone && state.inside > 0) {
            let left = patience.saturating_sub(came.elapsed());
            if left.is_zero() {
                state.line.retain(|other| *other != number);
                drop(state);
                self.shared.changed.notify_all();
                return None;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.line.pop_front();
        state.inside += 1;
        state.alone = alone;
        let others = !state.line.is_empty();
        drop(state);
        if others {
            // Whoever is next may be able to go in as well.
            self.shared.changed.notify_all();
        }
        Some(Pass { gate: self.clone() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.inside -= 1;
        state.alone = false;
        drop(state);
        self.gate.shared.changed.notify_all();
    }
}
