//! Latencies, from the first to the last percentile.
//!
//! A histogram of three significant digits: a million latencies take as much memory as a thousand, and the slowest
//! is exact. Not here: averages, which hide what a percentile shows.

use hdrhistogram::Histogram;
use std::time::Duration;

/// Longer latencies count as this.
const MAX: Duration = Duration::from_secs(100);

/// Measured latencies.
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
    /// Records all of them. An empty histogram is as large as a full one. So thousands of callers with a few
    /// latencies each keep them as a list and record them at the end.
    fn extend<All: IntoIterator<Item = Duration>>(&mut self, all: All) {
        all.into_iter().for_each(|latency| self.record(latency));
    }
}

impl Latencies {
    /// Records one latency.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.nanos.saturating_record(nanos(latency));
    }

    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.nanos.add(&other.nanos).expect("both have the same bounds");
    }

    /// The number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// The latency, in milliseconds, that this percentage did not exceed; 0 without latencies.
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
