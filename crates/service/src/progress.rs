//! How far the start has come: for `/readyz`, and for a progress bar.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Shared by the thread that loads and those who ask.
#[derive(Debug)]
pub struct Progress {
    phase: Mutex<(&'static str, Instant)>,
    done: AtomicU64,
    total: AtomicU64,
    reason: Mutex<Option<&'static str>>,
}

/// One look at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// What is being done.
    pub phase: &'static str,
    /// Rows done in this phase.
    pub done: u64,
    /// Rows of this phase, as far as known.
    pub total: u64,
    /// Seconds left at the present rate; unknown at the beginning.
    pub eta_s: Option<f64>,
    /// Why it does not go on.
    pub reason: Option<&'static str>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            phase: Mutex::new(("opening", Instant::now())),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            reason: Mutex::default(),
        }
    }
}

impl Progress {
    /// Begins a phase of so many rows.
    pub fn begin(&self, phase: &'static str, total: u64) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = (phase, Instant::now());
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Counts rows.
    pub fn add(&self, rows: u64) {
        self.done.fetch_add(rows, Ordering::Relaxed);
    }

    /// Says why it does not go on, or that it does.
    pub fn wait(&self, reason: Option<&'static str>) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// How far it is.
    pub fn snapshot(&self) -> Snapshot {
        let (phase, since) = *self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let done = self.done.load(Ordering::Relaxed);
        let total = self.total.load(Ordering::Relaxed).max(done);
        let eta_s = (done > 0).then(|| since.elapsed().as_secs_f64() * (total - done) as f64 / done as f64);
        let reason = *self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        Snapshot { phase, done, total, eta_s, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_starts_from_zero_and_never_passes_its_total() {
        let progress = Progress::default();
        progress.begin("loading", 10);
        assert_eq!(progress.snapshot().eta_s, None);
        progress.add(12);
        let now = progress.snapshot();
        assert_eq!((now.phase, now.done, now.total), ("loading", 12, 12));
        progress.begin("next", 5);
        assert_eq!(progress.snapshot().done, 0);
    }
}
