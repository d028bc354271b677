//! A gate in front of the work of several lanes: batches pass side by side, or one passes alone.
//!
//! Lanes that share what they change need it for the few batches that concern more than the lane's own keys. Who goes in
//! says which places it concerns, as bits of a word; those of different places never wait for each other. At one place
//! whoever comes first goes first: a batch that wants to be alone waits for those inside, and those behind it wait for it,
//! so that nobody is passed by for ever. Only while it waits for one that is slow and came before it do those go by who need
//! not wait for that one. Not here: what a batch concerns.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// One that is inside for longer is slow.
const SLOW: Duration = Duration::from_millis(200);

/// The gate; each lane has a clone of the same.
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
    /// The number that the next one to come gets.
    next: u64,
    /// Who waits to go in, first come first.
    line: VecDeque<(u64, Claim)>,
    inside: Vec<Inside>,
}

/// Where somebody goes in, and how.
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
    /// Nobody can say when it comes out.
    stuck: bool,
}

/// Why nobody could go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Somebody inside does not come out, at these of its places.
    Stuck(u64),
    /// It took longer than the caller's patience.
    Late,
}

/// The right to be inside, until it is dropped.
#[derive(Debug)]
pub struct BarrierGuard {
    gate: Barrier,
    number: u64,
}

impl Claim {
    fn meets(self, other: Self) -> bool {
        self.places & other.places != 0 && (self.alone || other.alone)
    }
}

impl State {
    /// Whether the one of that number has to wait.
    fn waits(&self, number: u64, spec: Claim) -> bool {
        if self.inside.iter().any(|one| one.spec.meets(spec)) {
            return true;
        }
        let slow = |one: &Inside| one.stuck || one.since.elapsed() > SLOW;
        // One that came later and went by hinders nobody: else those who go by could take turns at it for ever.
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
    /// Goes in at some places, beside others or alone, as soon as that can be. Nobody asks who is inside already.
    ///
    /// # Errors
    /// Somebody inside is stuck, or does not come out for as long as the patience lasts.
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
            // Whoever is next may be able to go in as well.
            self.shared.changed.notify_all();
        }
        blocked.map_or_else(|| Ok(BarrierGuard { gate: self.clone(), number }), Err)
    }

    /// How many wait to go in.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state().line.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BarrierGuard {
    /// Says that nobody knows when this one comes out: whoever would have to wait for it is told so at once.
    pub fn mark_stuck(&self) {
        let mut state = self.gate.state();
        let mine = state.inside.iter_mut().filter(|one| one.number == self.number);
        mine.for_each(|one| one.stuck = true);
        drop(state);
        self.gate.shared.changed.notify_all();
    }
}

impl Drop for BarrierGuard {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.inside.retain(|one| one.number != self.number);
        drop(state);
        self.gate.shared.changed.notify_all();
    }
}
