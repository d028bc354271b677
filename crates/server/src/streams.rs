//! How many streams of events are open, in all and by whom: each takes a seat before it begins.
//!
//! Not here: what is sent on them.

use crate::limits::Limits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tally_service::{Caller, CallerKind};

/// Seats.
pub(crate) struct Streams {
    most: usize,
    most_of_key: usize,
    most_of_member: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    /// How many there ever were.
    ever: usize,
    by: HashMap<Arc<str>, usize>,
}

/// One seat, until it is dropped.
pub(crate) struct Seat {
    streams: Arc<Streams>,
    scope: Arc<str>,
    /// Counted on from seat to seat.
    pub(crate) number: usize,
}

/// Why there is no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// All are taken.
    Everybody,
    /// The caller has so many already.
    Caller(usize),
}

impl Streams {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            most: limits.streams_max,
            most_of_key: limits.key_streams_max,
            most_of_member: limits.member_streams_max,
            taken: Mutex::default(),
        })
    }

    /// Takes a seat for a caller.
    pub(crate) fn sit(self: &Arc<Self>, caller: &Caller) -> Result<Seat, Full> {
        let most =
            if matches!(caller.kind, CallerKind::Member(_)) { self.most_of_member } else { self.most_of_key };
        let mut taken = self.taken();
        let own = taken.by.get(&caller.scope).copied().unwrap_or(0);
        if own >= most {
            return Err(Full::Caller(most));
        }
        if taken.all >= self.most {
            return Err(Full::Everybody);
        }
        taken.all += 1;
        taken.ever = taken.ever.wrapping_add(1);
        let number = taken.ever;
        *taken.by.entry(Arc::clone(&caller.scope)).or_default() += 1;
        Ok(Seat { streams: Arc::clone(self), scope: Arc::clone(&caller.scope), number })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.streams.taken();
        taken.all -= 1;
        let own = taken.by.get_mut(&self.scope).expect("whoever has a seat is counted");
        *own -= 1;
        if *own == 0 {
            taken.by.remove(&self.scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::ledger::{MemberId, Uuid};

    #[test]
    fn seats_are_bounded_in_all_and_by_caller_and_free_again() {
        let limits =
            Limits { streams_max: 4, key_streams_max: 3, member_streams_max: 2, ..Limits::default() };
        let streams = Streams::new(&limits);
        let member = |byte| Caller::member(MemberId(Uuid([byte; 16])));
        let mut seats: Vec<Seat> = (0..2).map(|_| streams.sit(&member(1)).ok().unwrap()).collect();
        assert_eq!(streams.sit(&member(1)).err(), Some(Full::Caller(2)));
        seats.push(streams.sit(&member(2)).ok().unwrap());
        seats.push(streams.sit(&Caller::local()).ok().unwrap());
        assert_eq!(streams.sit(&Caller::local()).err(), Some(Full::Everybody));
        assert_eq!(streams.sit(&member(1)).err(), Some(Full::Caller(2)));
        seats.remove(0);
        assert!(streams.sit(&member(1)).is_ok());
        drop(seats);
        let taken = streams.taken();
        assert_eq!((taken.all, taken.by.len()), (0, 0));
    }
}
