//! How long things took: counts by powers of two.
//!
//! Fixed and small, so that it can be kept for ever and read while it is written. One thread writes; whoever reads may
//! see a time in its bucket a moment before it is in the sum. Not here: quantiles finer than a bucket.

use crate::stats::add;
use std::array::from_fn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets but the last one.
const BOUNDS: usize = 22;
/// Bits of the first bucket's bound in microseconds: 16 µs, and the last one's is 33.5 s.
const FIRST: u32 = 4;

/// Counts of times, written by one thread.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BOUNDS + 1],
    sum_ns: AtomicU64,
}

/// What a [`Histogram`] held when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    counts: [u64; BOUNDS + 1],
    /// All of them together.
    pub sum: Duration,
}

impl Histogram {
    /// Counts one time.
    pub fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // The first bound that is not below it.
        let bits = u64::BITS - micros.saturating_sub(1).leading_zeros();
        let bucket = (bits.saturating_sub(FIRST) as usize).min(BOUNDS);
        add(&self.counts[bucket], 1);
        add(&self.sum_ns, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Reads it.
    #[must_use]
    pub fn read(&self) -> Times {
        let counts = from_fn(|at| self.counts[at].load(Relaxed));
        Times { counts, sum: Duration::from_nanos(self.sum_ns.load(Relaxed)) }
    }
}

impl Times {
    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { counts: from_fn(|at| self.counts[at] + other.counts[at]), sum: self.sum + other.sum }
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The mean; zero where there were none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        self.sum.checked_div(u32::try_from(self.count()).unwrap_or(u32::MAX)).unwrap_or_default()
    }

    /// Bounds with how many took at most so long, ascending. Longer ones are in [`count`](Self::count) alone.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.counts[..BOUNDS].iter().enumerate().scan(0, |below, (at, count)| {
            *below += count;
            Some((Duration::from_micros(1 << (FIRST as usize + at)), *below))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_holds_it() {
        for (micros, wanted) in [(0, 16), (16, 16), (17, 32), (32, 32), (33, 64), (33_554_432, 33_554_432)] {
            let histogram = Histogram::default();
            histogram.record(Duration::from_micros(micros));
            let first = histogram.read().cumulative().find(|(_, count)| *count == 1);
            assert_eq!(first, Some((Duration::from_micros(wanted), 1)), "{micros}");
        }
        let histogram = Histogram::default();
        histogram.record(Duration::from_secs(60));
        let times = histogram.read();
        assert_eq!(times.cumulative().last(), Some((Duration::from_micros(33_554_432), 0)));
        assert_eq!((times.count(), times.mean()), (1, Duration::from_secs(60)));
    }

    #[test]
    fn nothing_has_no_mean() {
        assert_eq!((Times::default().count(), Times::default().mean()), (0, Duration::ZERO));
    }
}
