//! What an open run has shown, in all and second by second.

use crate::latencies::Latencies;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// Different errors that are told apart; what comes after counts as the last.
const ERRORS_MAX: usize = 50;

/// One kind of call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name.
    pub name: &'static str,
    /// From when it was meant to go to the last byte of its answer, of those that were answered as wished.
    pub latencies: Latencies,
    /// The others, by status and code of the problem, or by what became of the connection.
    pub errors: BTreeMap<String, u64>,
}

impl Call {
    /// How many were answered otherwise, or not at all.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// How many were made.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.latencies.count() + self.failed()
    }
}

/// One second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Its end, in seconds from the begin.
    pub at: f64,
    /// Arrivals a second that the schedule asked for in the middle of it.
    pub target: f64,
    /// Iterations that ended well in it.
    pub done: u64,
    /// Iterations that failed in it, and that were dropped.
    pub failed: u64,
    /// The same of iterations that found no free connection.
    pub dropped: u64,
    /// Percentiles 50, 95 and 99 of latencies of iterations that ended well in it, and the slowest; in milliseconds.
    pub ms: [f64; 4],
    /// Iterations that were under way, or waited, at its end.
    pub waiting: u64,
    /// Percent of the processors that the host of a virtual machine gave to others in it.
    pub stolen: f64,
}

/// The figures of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Iterations that were due.
    pub arrived: u64,
    /// Of those, what was never begun: too many were waiting for a connection.
    pub dropped: u64,
    /// Of those, what did not end well.
    pub failed: u64,
    /// Of those that ended well, from when they were due to the last answer.
    pub iterations: Latencies,
    /// Each kind of call.
    pub calls: Vec<Call>,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// When the clock started.
    pub begun: SystemTime,
    /// From the begin to the last answer.
    pub lasted: Duration,
    /// Percent of the processors that the host of a virtual machine gave to others, over the whole run.
    pub stolen: f64,
    /// It was told to stop before the end of its schedule: what was under way too long for that has failed.
    pub interrupted: bool,
}

impl Outcome {
    pub(super) fn new(calls: &[&'static str]) -> Self {
        let call = |&name| Call { name, latencies: Latencies::default(), errors: BTreeMap::new() };
        Self {
            arrived: 0,
            dropped: 0,
            failed: 0,
            iterations: Latencies::default(),
            calls: calls.iter().map(call).collect(),
            seconds: Vec::new(),
            begun: SystemTime::now(),
            lasted: Duration::ZERO,
            stolen: 0.0,
            interrupted: false,
        }
    }

    /// Iterations that ended well, a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let seconds = self.lasted.as_secs_f64();
        if seconds > 0.0 { self.iterations.count() as f64 / seconds } else { 0.0 }
    }

    /// All errors, by kind.
    #[must_use]
    pub fn errors(&self) -> BTreeMap<&str, u64> {
        let mut all = BTreeMap::new();
        for (what, count) in self.calls.iter().flat_map(|call| &call.errors) {
            *all.entry(what.as_str()).or_default() += count;
        }
        all
    }

    pub(super) fn error(&mut self, call: usize, what: String) {
        let errors = &mut self.calls[call].errors;
        let what =
            if errors.len() < ERRORS_MAX || errors.contains_key(&what) { what } else { "others".into() };
        *errors.entry(what).or_default() += 1;
    }
}
