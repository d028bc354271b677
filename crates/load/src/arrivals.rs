//! When requests go out.
//!
//! A connection asks for its next slot, sends when the slot is due, and measures from then. In a closed loop a slot is
//! due when the answer before it has come, so a slow server is asked less: right for "how many can it do", wrong for
//! "how long does a user wait at this rate". The latter needs slots that are due by the clock, which is another
//! implementation of the same question, not another runner.

use std::time::{Duration, Instant};

/// One request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// When it should go; latency counts from here.
    pub(crate) due: Instant,
    /// Whether it counts, or only warms up.
    pub(crate) counts: bool,
}

/// A closed loop: warm up, count, end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed {
    counts_from: Instant,
    ends: Instant,
}

impl Closed {
    pub(crate) fn new(start: Instant, warm_up: Duration, duration: Duration) -> Self {
        let counts_from = start + warm_up;
        Self { counts_from, ends: counts_from + duration }
    }

    /// The next slot of a connection that is idle now; `None` when it is over.
    pub(crate) fn next(&self, now: Instant) -> Option<Slot> {
        (now < self.ends).then_some(Slot { due: now, counts: now >= self.counts_from })
    }

    /// Since when requests count.
    pub(crate) fn counts_from(&self) -> Instant {
        self.counts_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_warms_up_does_not_count_and_the_end_ends() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let closed = Closed::new(start, second, 2 * second);
        assert_eq!(closed.next(start), Some(Slot { due: start, counts: false }));
        assert_eq!(closed.next(start + second), Some(Slot { due: start + second, counts: true }));
        assert_eq!(closed.next(start + 3 * second), None);
    }
}
