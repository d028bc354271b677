//! The figures of a way.

use tally_load::Latencies;

/// Figures of one round.
pub(crate) struct Round {
    pub(crate) seconds: f64,
    /// From the request to the durable commit, of a submit or of a statement.
    pub(crate) latencies: Latencies,
}

/// Figures of all its rounds.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) rows: u64,
    pub(super) seconds: f64,
    pub(super) latencies: Latencies,
    /// Processor time in seconds of each round: this process, and the database.
    pub(super) cpu: Vec<(Option<f64>, Option<f64>)>,
}

impl Measured {
    pub(super) fn add(&mut self, rows: u64, round: &Round) {
        self.rows += rows;
        self.seconds += round.seconds;
        self.latencies.merge(&round.latencies);
    }

    /// Processor time of a row in microseconds, of one of both.
    pub(super) fn cpu_us(&self, of: impl Fn(&(Option<f64>, Option<f64>)) -> Option<f64>) -> Option<f64> {
        let seconds: Option<f64> = self.cpu.iter().map(of).sum();
        seconds.map(|seconds| seconds * 1e6 / self.rows as f64)
    }

    pub(super) fn rate(&self) -> f64 {
        self.rows as f64 / self.seconds
    }
}
