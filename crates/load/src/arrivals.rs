//! When requests are sent.
//!
//! A connection takes its next slot, sends when the slot is due, and measures from then. In a closed loop a slot is
//! due when the previous response has arrived, so a slow server gets fewer requests. That measures the highest rate,
//! but not the latency at a given rate. Not here: slots that are due by the clock (`open`).

use std::time::{Duration, Instant};

/// One request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// When to send it; its latency counts from here.
    pub(crate) due: Instant,
    /// Whether it is measured; requests of the warm-up are not.
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

    /// The next slot of a connection that is idle now; `None` after the end.
    pub(crate) fn next(&self, now: Instant) -> Option<Slot> {
        (now < self.ends).then_some(Slot { due: now, counts: now >= self.counts_from })
    }

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
