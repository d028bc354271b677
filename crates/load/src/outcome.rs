//! The figures of a closed-loop run.

use crate::latencies::Latencies;
use crate::workload::RequestKind;
use std::collections::BTreeMap;

/// Figures of one run, without its warm-up.
#[derive(Clone, Debug)]
pub struct LoadOutcome {
    /// The kind of request.
    pub kind: RequestKind,
    /// The number of connections.
    pub connections: usize,
    /// The duration in seconds, up to the last response.
    pub seconds: f64,
    /// Successful responses.
    pub succeeded: u64,
    /// Other responses, by status, with those of the warm-up; status 0 counts broken connections.
    pub errors: BTreeMap<u16, u64>,
    /// From sending a submit to the last byte of its response, if successful.
    pub submits: Latencies,
    /// The same of all other requests.
    pub reads: Latencies,
}

impl LoadOutcome {
    pub(crate) fn new(kind: RequestKind, connections: usize) -> Self {
        let (submits, reads) = (Latencies::default(), Latencies::default());
        Self { kind, connections, seconds: 0.0, succeeded: 0, errors: BTreeMap::new(), submits, reads }
    }

    /// Latencies of all successful requests.
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

    /// The number of failed requests.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}
