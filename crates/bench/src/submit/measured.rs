//! The figures of either way.

use super::operations::Contents;
use tally_load::Latencies;

/// Figures of one way with one number of callers.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) seconds: f64,
    /// From the request to its durable commit.
    pub(super) latencies: Latencies,
    /// Submits of each caller.
    pub(super) counts: Vec<u64>,
    pub(super) rows_per_commit: f64,
    pub(super) contents: Contents,
}

impl Measured {
    pub(super) fn rate(&self) -> f64 {
        self.latencies.count() as f64 / self.seconds
    }
}
