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
    line: VecDeque<(u64, Wish)>,
    inside: Vec<Inside>,
}

/// Where somebody goes in, and how.
#[derive(Clone, Copy, Debug)]
struct Wish {
    places: u64,
    alone: bool,
}

#[derive(Debug)]
struct Inside {
    number: u64,
    wish: Wish,
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
pub struct Pass {
    gate: Gate,
    number: u64,
}

impl Wish {
    fn meets(self, other: Self) -> bool {
        self.places & other.places != 0 && (self.alone || other.alone)
    }
}

impl State {
    /// Whether the one of that number has to wait.
    fn waits(&self, number: u64, wish: Wish) -> bool {
        if self.inside.iter().any(|one| one.wish.meets(wish)) {
            return true;
        }
        let slow = |one: &Inside| one.stuck || one.since.elapsed() > SLOW;
        // One that came later and went by hinders nobody: else those who go by could take turns at it for ever.
        let hindered = |before: u64, wish: Wish| {
            self.inside.iter().any(|one| one.number < before && one.wish.meets(wish) && slow(one))
        };
        let before = self.line.iter().take_while(|(other, _)| *other != number);
        before.filter(|(_, other)| other.meets(wish)).any(|(before, other)| !hindered(*before, *other))
    }

    fn stuck(&self, wish: Wish) -> u64 {
        let met = self.inside.iter().filter(|one| one.stuck && one.wish.meets(wish));
        met.fold(0, |places, one| places | one.wish.places & wish.places)
    }
}

impl Gate {
    /// Goes in at some places, beside others or alone, as soon as that can be. Nobody asks who is inside already.
    ///
    /// # Errors
    /// Somebody inside is stuck, or does not come out for as long as the patience lasts.
    pub fn pass(&self, places: u64, alone: bool, patience: Duration) -> Result<Pass, Blocked> {
        let came = Instant::now();
        let wish = Wish { places, alone };
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.line.push_back((number, wish));
        let blocked = loop {
            let stuck = state.stuck(wish);
            if stuck != 0 {
                break Some(Blocked::Stuck(stuck));
            }
            if !state.waits(number, wish) {
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
            state.inside.push(Inside { number, wish, since: Instant::now(), stuck: false });
        }
        let others = !state.line.is_empty();
        drop(state);
        if others {
            // Whoever is next may be able to go in as well.
            self.shared.changed.notify_all();
        }
        blocked.map_or_else(|| Ok(Pass { gate: self.clone(), number }), Err)
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

impl Pass {
    /// Says that nobody knows when this one comes out: whoever would have to wait for it is told so at once.
    pub fn stick(&self) {
        let mut state = self.gate.state();
        let mine = state.inside.iter_mut().filter(|one| one.number == self.number);
        mine.for_each(|one| one.stuck = true);
        drop(state);
        self.gate.shared.changed.notify_all();
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        state.inside.retain(|one| one.number != self.number);
        drop(state);
        self.gate.shared.changed.notify_all();
    }
}
