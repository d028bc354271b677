//! The write stall: how much may wait for the flush, and how writers are slowed before there is no more room.
//!
//! A flush begins when a quarter of the room is used. From half of the room on, every transaction waits a little, the longer
//! the less room is left. So writers slow down to the rate of the flush instead of stopping at the end. At the end they do
//! wait. Not here: that wait (`flush`).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// A flush begins when this fraction of the room is used.
const FLUSH_DIVISOR: usize = 4;

/// Writers are slowed from this fraction of the room on.
const SLOW_DIVISOR: usize = 2;

/// The wait of a row when almost no room is left: about the cost of writing it into its table.
const ROW_WAIT: Duration = Duration::from_micros(20);

/// Shorter sleeps are accumulated, because the system cannot sleep for a shorter time.
const SLEEP_MIN: Duration = Duration::from_micros(200);

/// The maximum wait of a large transaction: an import, a part of an archive. Batches of a lane wait less.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// The room, as last reported.
#[derive(Debug, Default)]
pub(super) struct Stall {
    used: AtomicUsize,
    room: AtomicUsize,
    owed_ns: AtomicU64,
    slept_micros: AtomicU64,
}

impl Stall {
    /// Reports the used part of the room.
    pub(super) fn set(&self, used: usize, room: u64) {
        self.used.store(used, Ordering::Relaxed);
        self.room.store(usize::try_from(room).unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    pub(super) fn is_full(&self) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        used > 0 && used >= self.room.load(Ordering::Relaxed)
    }

    /// The used part of the room: a flush begins at 0.25, and writers wait from 0.5 on.
    pub(super) fn ratio(&self) -> f64 {
        let room = self.room.load(Ordering::Relaxed);
        if room == 0 { 0.0 } else { self.used.load(Ordering::Relaxed) as f64 / room as f64 }
    }

    /// Whether less is used than starts a flush.
    pub(super) fn is_calm(&self) -> bool {
        self.used.load(Ordering::Relaxed) < self.flush_at()
    }

    /// Bytes at which a flush begins.
    pub(super) fn flush_at(&self) -> usize {
        self.room.load(Ordering::Relaxed) / FLUSH_DIVISOR
    }

    /// The total time that writers were slowed, in seconds.
    pub(super) fn slept_seconds(&self) -> f64 {
        self.slept_micros.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// Slows the caller, which wrote this number of rows.
    pub(super) fn slow(&self, rows: usize) {
        let wait = wait(self.used.load(Ordering::Relaxed), self.room.load(Ordering::Relaxed), rows);
        if wait.is_zero() {
            return;
        }
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let owed = self.owed_ns.fetch_add(nanos, Ordering::Relaxed).saturating_add(nanos);
        if Duration::from_nanos(owed) >= SLEEP_MIN {
            let owed = Duration::from_nanos(self.owed_ns.swap(0, Ordering::Relaxed)).min(SLEEP_MAX);
            self.slept_micros.fetch_add(u64::try_from(owed.as_micros()).unwrap_or(0), Ordering::Relaxed);
            std::thread::sleep(owed);
        }
    }
}

/// The wait of a transaction of this number of rows.
fn wait(used: usize, room: usize, rows: usize) -> Duration {
    let slow_from = room / SLOW_DIVISOR;
    if used <= slow_from {
        return Duration::ZERO;
    }
    let window = (used - slow_from) as f64 / (room - slow_from).max(1) as f64;
    // The square: almost nothing at first, the full wait only towards the end.
    ROW_WAIT.mul_f64(window.min(1.0).powi(2) * rows as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_slowed_gradually_and_not_before_half_the_room_is_used() {
        assert_eq!(wait(500, 1000, 64), Duration::ZERO);
        let waits: Vec<_> = (5..=10).map(|used| wait(used * 100, 1000, 64)).collect();
        assert!(waits.is_sorted_by(|a, b| a < b), "{waits:?}");
        assert_eq!(waits[5], ROW_WAIT * 64);
        assert_eq!(wait(5000, 1000, 64), waits[5], "no longer where there is no room at all");
    }

    #[test]
    fn without_room_it_is_full_and_empty_it_never_is() {
        let stall = Stall::default();
        assert!(!stall.is_full());
        assert_eq!(stall.ratio(), 0.0);
        stall.set(5, 10);
        assert_eq!(stall.ratio(), 0.5);
        stall.set(10, 10);
        assert!(stall.is_full());
        stall.set(0, 0);
        assert!(!stall.is_full());
    }
}
