//! The limits of open event streams, in total and for each caller: each stream takes a slot before it begins.
//!
//! Not here: the events.

use crate::limits::HttpLimits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tally_service::{Caller, CallerKind};

pub(crate) struct Streams {
    most: usize,
    most_of_key: usize,
    most_of_member: usize,
    taken: Mutex<OpenStreams>,
}

#[derive(Default)]
struct OpenStreams {
    all: usize,
    /// The number of slots that were ever taken.
    ever: usize,
    by: HashMap<Arc<str>, usize>,
}

/// One slot. Dropping it frees the slot.
pub(crate) struct StreamSlot {
    streams: Arc<Streams>,
    scope: Arc<str>,
    /// A number that grows with each slot.
    pub(crate) number: usize,
}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// All slots are taken.
    Server,
    /// The caller has as many as it may.
    Caller(usize),
}

impl Streams {
    pub(crate) fn new(limits: &HttpLimits) -> Arc<Self> {
        Arc::new(Self {
            most: limits.streams_max,
            most_of_key: limits.key_streams_max,
            most_of_member: limits.member_streams_max,
            taken: Mutex::default(),
        })
    }

    /// Takes a slot for a caller.
    pub(crate) fn acquire(self: &Arc<Self>, caller: &Caller) -> Result<StreamSlot, Full> {
        let most =
            if matches!(caller.kind, CallerKind::Member(_)) { self.most_of_member } else { self.most_of_key };
        let mut taken = self.taken();
        let own = taken.by.get(&caller.scope).copied().unwrap_or(0);
        if own >= most {
            return Err(Full::Caller(most));
        }
        if taken.all >= self.most {
            return Err(Full::Server);
        }
        taken.all += 1;
        taken.ever = taken.ever.wrapping_add(1);
        let number = taken.ever;
        *taken.by.entry(Arc::clone(&caller.scope)).or_default() += 1;
        Ok(StreamSlot { streams: Arc::clone(self), scope: Arc::clone(&caller.scope), number })
    }

    fn taken(&self) -> MutexGuard<'_, OpenStreams> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut taken = self.streams.taken();
        taken.all -= 1;
        let own = taken.by.get_mut(&self.scope).expect("a scope with a slot has a count");
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
            HttpLimits { streams_max: 4, key_streams_max: 3, member_streams_max: 2, ..HttpLimits::default() };
        let streams = Streams::new(&limits);
        let member = |byte| Caller::member(MemberId(Uuid([byte; 16])));
        let mut slots: Vec<StreamSlot> = (0..2).map(|_| streams.acquire(&member(1)).ok().unwrap()).collect();
        assert_eq!(streams.acquire(&member(1)).err(), Some(Full::Caller(2)));
        slots.push(streams.acquire(&member(2)).ok().unwrap());
        slots.push(streams.acquire(&Caller::local()).ok().unwrap());
        assert_eq!(streams.acquire(&Caller::local()).err(), Some(Full::Server));
        assert_eq!(streams.acquire(&member(1)).err(), Some(Full::Caller(2)));
        slots.remove(0);
        assert!(streams.acquire(&member(1)).is_ok());
        drop(slots);
        let taken = streams.taken();
        assert_eq!((taken.all, taken.by.len()), (0, 0));
    }
}
