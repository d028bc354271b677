//! What a run has shown.

use crate::latencies::Latencies;
use crate::workload::Kind;
use std::collections::BTreeMap;

/// Figures of one run, of the time after its warm-up.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was asked.
    pub kind: Kind,
    /// By how many connections.
    pub connections: usize,
    /// For how long, in seconds, to the last answer.
    pub seconds: f64,
    /// Answers of success.
    pub succeeded: u64,
    /// Other answers, by status; those of the warm-up as well, and 0 for connections that broke.
    pub errors: BTreeMap<u16, u64>,
    /// From sending a submit to the last byte of its answer, of answers of success.
    pub submits: Latencies,
    /// The same of everything else.
    pub reads: Latencies,
}

impl Outcome {
    pub(crate) fn new(kind: Kind, connections: usize) -> Self {
        let (submits, reads) = (Latencies::default(), Latencies::default());
        Self { kind, connections, seconds: 0.0, succeeded: 0, errors: BTreeMap::new(), submits, reads }
    }

    /// Latencies of all that succeeded.
    #[must_use]
    pub fn latencies(&self) -> Latencies {
        let mut all = self.submits.clone();
        all.merge(&self.reads);
        all
    }

    /// Successes per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.succeeded as f64 / self.seconds } else { 0.0 }
    }

    /// How many requests failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}
