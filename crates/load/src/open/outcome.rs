//! The figures of an open-loop run, in total and per second.

use crate::latencies::Latencies;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// The number of distinct errors; further ones count as the last.
const ERRORS_MAX: usize = 50;

/// One kind of call.
#[derive(Clone, Debug)]
pub struct CallFigures {
    /// Its name.
    pub name: &'static str,
    /// From the due time to the last byte of the response, of the successful calls.
    pub latencies: Latencies,
    /// The failed calls, by status and code of the problem, or by the failure of the connection.
    pub errors: BTreeMap<String, u64>,
}

impl CallFigures {
    /// The number of failed calls.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The number of calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.latencies.count() + self.failed()
    }
}

/// One second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Its end, in seconds from the start.
    pub at: f64,
    /// Arrivals per second that the schedule has in the middle of it.
    pub target: f64,
    /// Iterations that succeeded in it.
    pub done: u64,
    /// Iterations that failed in it; the dropped ones are included.
    pub failed: u64,
    /// Iterations in it that found no free connection.
    pub dropped: u64,
    /// Percentiles 50, 95 and 99 and the maximum of the latencies of iterations that succeeded in it, in
    /// milliseconds.
    pub ms: [f64; 4],
    /// Iterations that were running or waiting at its end.
    pub waiting: u64,
    /// Percentage of the processors that the host of a virtual machine gave to other guests in it.
    pub stolen: f64,
}

/// The figures of a run.
#[derive(Clone, Debug)]
pub struct OpenOutcome {
    /// Iterations that were due.
    pub arrived: u64,
    /// Of those, the ones that were never started, because too many waited for a connection.
    pub dropped: u64,
    /// Of those, the ones that failed.
    pub failed: u64,
    /// Latencies of the successful ones, from their due time to the last response.
    pub iterations: Latencies,
    /// Each kind of call.
    pub calls: Vec<CallFigures>,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// When the clock started.
    pub begun: SystemTime,
    /// From the start to the last response.
    pub lasted: Duration,
    /// Percentage of the processors that the host of a virtual machine gave to other guests during the run.
    pub stolen: f64,
    /// The run was stopped before the end of its schedule; iterations that ran too long after that have failed.
    pub interrupted: bool,
}

impl OpenOutcome {
    pub(super) fn new(calls: &[&'static str]) -> Self {
        let call = |&name| CallFigures { name, latencies: Latencies::default(), errors: BTreeMap::new() };
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

    /// Successful iterations per second.
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
