//! The progress of the start: for `/readyz`, and for a progress bar.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Shared by the thread that loads and by its readers.
#[derive(Debug)]
pub struct Progress {
    phase: Mutex<(&'static str, Instant)>,
    done: AtomicU64,
    total: AtomicU64,
    reason: Mutex<Option<&'static str>>,
    building: Mutex<Option<Building>>,
}

/// The sorting of rows that have been read: since when, how many are done, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Building {
    since: Instant,
    done: u64,
    total: u64,
}

/// The progress at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// The present operation.
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
            building: Mutex::default(),
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

    /// Sets the number of rows of the present phase.
    pub fn expect(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Adds rows that were read.
    pub fn add(&self, rows: u64) {
        self.done.fetch_add(rows, Ordering::Relaxed);
    }

    /// Sets how many of the read rows are sorted: a phase within the present one.
    pub fn build(&self, done: u64, total: u64) {
        let mut building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let since = building.map_or_else(Instant::now, |building| building.since);
        *building = (done < total).then_some(Building { since, done, total });
    }

    /// Sets the reason of a wait; `None` ends it.
    pub fn wait(&self, reason: Option<&'static str>) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// How far it is.
    pub fn snapshot(&self) -> Snapshot {
        let reason = *self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        let building = *self.building.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Building { since, done, total }) = building {
            let eta_s = left(since, done, total).filter(|_| done > 0);
            return Snapshot { phase: "building", done, total, eta_s, reason };
        }
        let (phase, since) = *self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let done = self.done.load(Ordering::Relaxed);
        let known = self.total.load(Ordering::Relaxed);
        let total = known.max(done);
        let eta_s = left(since, done, total).filter(|_| known > 0);
        Snapshot { phase, done, total, eta_s, reason }
    }
}

/// Seconds left at the rate so far.
fn left(since: Instant, done: u64, total: u64) -> Option<f64> {
    (done > 0).then(|| since.elapsed().as_secs_f64() * (total - done) as f64 / done as f64)
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
        progress.begin("next", 0);
        progress.add(3);
        assert_eq!(progress.snapshot().eta_s, None, "it is unknown how many there are");
        progress.expect(5);
        assert!(progress.snapshot().eta_s.is_some());
        progress.begin("next", 5);
        assert_eq!(progress.snapshot().done, 0);
        progress.build(2, 4);
        let now = progress.snapshot();
        assert_eq!((now.phase, now.done, now.total), ("building", 2, 4));
        progress.build(4, 4);
        assert_eq!(progress.snapshot().phase, "next");
    }
}
