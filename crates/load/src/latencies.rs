//! Latencies, from the first to the last percentile.
//!
//! A histogram of three significant digits: one of a million latencies costs as much as one of a thousand, and the
//! slowest is among them. Not here: averages, which hide what a percentile shows.

use hdrhistogram::Histogram;
use std::time::Duration;

/// Longer ones count as this.
const MAX: Duration = Duration::from_secs(100);

/// What was measured.
#[derive(Clone, Debug)]
pub struct Latencies {
    nanos: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        let nanos = Histogram::new_with_bounds(100, nanos(MAX), 3).expect("the bounds are in order");
        Self { nanos }
    }
}

impl Extend<Duration> for Latencies {
    /// Counts all of them. A histogram has a size however little is in it: thousands of callers that measured a few
    /// latencies each keep them as they are, and count them when all is done.
    fn extend<All: IntoIterator<Item = Duration>>(&mut self, all: All) {
        all.into_iter().for_each(|latency| self.record(latency));
    }
}

impl Latencies {
    /// Counts one.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.nanos.saturating_record(nanos(latency));
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        self.nanos.add(&other.nanos).expect("both have the same bounds");
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// The latency, in milliseconds, that this many percent did not exceed; 0 where none was counted.
    #[must_use]
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        self.nanos.value_at_percentile(percent) as f64 / 1e6
    }

    /// The slowest, in milliseconds.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        self.nanos.max() as f64 / 1e6
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_that_was_merged() {
        let (mut one, mut two) = (Latencies::default(), Latencies::default());
        for ms in 1..=50 {
            one.record(Duration::from_millis(ms));
        }
        two.extend((51..=100).map(Duration::from_millis));
        one.merge(&two);
        assert_eq!(one.count(), 100);
        assert!((one.percentile_ms(50.0) - 50.0).abs() < 0.1);
        assert!((one.max_ms() - 100.0).abs() < 0.2);
        assert_eq!(Latencies::default().percentile_ms(50.0), 0.0);
    }
}
