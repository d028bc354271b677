//! Histograms of durations with buckets at powers of two.
//!
//! Their size is fixed and small, so they can be kept for ever and read while they are written. One thread writes. A reader
//! may see a duration in its bucket a moment before the sum contains it. Not here: quantiles finer than a bucket.

use crate::stats::add;
use std::array::from_fn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets without the last, which has no bound.
const BOUNDS: usize = 22;
/// Bits of the first bucket's bound in microseconds: 16 µs. The last bound is 33.5 s.
const FIRST: u32 = 4;

/// Counts of durations, written by one thread.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BOUNDS + 1],
    sum_ns: AtomicU64,
}

/// What a [`Histogram`] contained when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    counts: [u64; BOUNDS + 1],
    /// The sum of all durations.
    pub sum: Duration,
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // The first bound that is not below it.
        let bits = u64::BITS - micros.saturating_sub(1).leading_zeros();
        let bucket = (bits.saturating_sub(FIRST) as usize).min(BOUNDS);
        add(&self.counts[bucket], 1);
        add(&self.sum_ns, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Reads the counts and the sum.
    #[must_use]
    pub fn read(&self) -> Times {
        let counts = from_fn(|at| self.counts[at].load(Relaxed));
        Times { counts, sum: Duration::from_nanos(self.sum_ns.load(Relaxed)) }
    }
}

impl Times {
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { counts: from_fn(|at| self.counts[at] + other.counts[at]), sum: self.sum + other.sum }
    }

    /// The number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The mean; zero if there are no durations.
    #[must_use]
    pub fn mean(&self) -> Duration {
        self.sum.checked_div(u32::try_from(self.count()).unwrap_or(u32::MAX)).unwrap_or_default()
    }

    /// Each bound with the number of durations up to it, ascending. Only [`count`](Self::count) includes longer ones.
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
