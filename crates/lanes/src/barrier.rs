//! A barrier in front of several lanes: batches pass side by side, or one batch passes alone.
//!
//! Lanes that share data need it for the few batches that change more than the lane's own keys. A batch names the places
//! that it concerns, as bits of a word. Batches of different places never wait for each other. At one place the order is
//! first come, first served: an exclusive batch waits for those inside, and later batches wait for it, so none starves.
//! The exception: while it waits for a slow, earlier batch, later batches pass if they need not wait for that batch.
//! Not here: what a batch concerns.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// A batch that is inside for longer is slow.
const SLOW: Duration = Duration::from_millis(200);

/// The barrier; the clones of all lanes share one state.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the next arrival.
    next: u64,
    /// Waiting batches, in the order of arrival.
    line: VecDeque<(u64, Claim)>,
    inside: Vec<Inside>,
}

/// The places of a batch, and whether it needs them exclusively.
#[derive(Clone, Copy, Debug)]
struct Claim {
    places: u64,
    alone: bool,
}

#[derive(Debug)]
struct Inside {
    number: u64,
    spec: Claim,
    since: Instant,
    /// Its commit is in doubt, so its end is not known.
    stuck: bool,
}

/// Why a batch could not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// A batch with an unknown end is inside, at these of the places.
    Stuck(u64),
    /// The wait took longer than the caller allows.
    Late,
}

/// Keeps the batch inside until it is dropped.
#[derive(Debug)]
pub struct BarrierGuard {
    barrier: Barrier,
    number: u64,
}

impl Claim {
    fn meets(self, other: Self) -> bool {
        self.places & other.places != 0 && (self.alone || other.alone)
    }
}

impl State {
    /// Whether the batch of this number has to wait.
    fn waits(&self, number: u64, spec: Claim) -> bool {
        if self.inside.iter().any(|one| one.spec.meets(spec)) {
            return true;
        }
        let slow = |one: &Inside| one.stuck || one.since.elapsed() > SLOW;
        // A later batch that has passed does not count. Otherwise such batches could starve the waiting batch.
        let hindered = |before: u64, spec: Claim| {
            self.inside.iter().any(|one| one.number < before && one.spec.meets(spec) && slow(one))
        };
        let before = self.line.iter().take_while(|(other, _)| *other != number);
        before.filter(|(_, other)| other.meets(spec)).any(|(before, other)| !hindered(*before, *other))
    }

    fn stuck(&self, spec: Claim) -> u64 {
        let met = self.inside.iter().filter(|one| one.stuck && one.spec.meets(spec));
        met.fold(0, |places, one| places | one.spec.places & spec.places)
    }
}

impl Barrier {
    /// Enters at some places, side by side with others or `alone`. A thread that is inside must not call it.
    ///
    /// # Errors
    /// A batch inside is stuck, or does not leave within `patience`.
    pub fn pass(&self, places: u64, alone: bool, patience: Duration) -> Result<BarrierGuard, Blocked> {
        let came = Instant::now();
        let spec = Claim { places, alone };
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.line.push_back((number, spec));
        let blocked = loop {
            let stuck = state.stuck(spec);
            if stuck != 0 {
                break Some(Blocked::Stuck(stuck));
            }
            if !state.waits(number, spec) {
                break None;
            }
            let left = patience.saturating_sub(came.elapsed());
            if left.is_zero() {
                break Some(Blocked::Late);
            }
            let waited = self.shared.changed.wait_timeout(state, left.min(SLOW));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        state.line.retain(|(other, _)| *other != number);
        if blocked.is_none() {
            state.inside.push(Inside { number, spec, since: Instant::now(), stuck: false });
        }
        let others = !state.line.is_empty();
        drop(state);
        if others {
            // The next batch may be able to enter as well.
            self.shared.changed.notify_all();
        }
        blocked.map_or_else(|| Ok(BarrierGuard { barrier: self.clone(), number }), Err)
    }

    /// The number of waiting batches.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state().line.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BarrierGuard {
    /// Marks the end of this batch as unknown: batches that would wait for it fail at once.
    pub fn mark_stuck(&self) {
        let mut state = self.barrier.state();
        let mine = state.inside.iter_mut().filter(|one| one.number == self.number);
        mine.for_each(|one| one.stuck = true);
        drop(state);
        self.barrier.shared.changed.notify_all();
    }
}

impl Drop for BarrierGuard {
    fn drop(&mut self) {
        let mut state = self.barrier.state();
        state.inside.retain(|one| one.number != self.number);
        drop(state);
        self.barrier.shared.changed.notify_all();
    }
}
