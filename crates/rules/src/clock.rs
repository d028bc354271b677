//! Whether a clock is trusted: its wall time is compared with monotonic time, and with the clock of the store.
//!
//! A wall clock is set by people and by the network, so it can jump; a monotonic clock only counts. Both readings are
//! arguments. The watch stops trusting the clock after a jump beyond a bound. It trusts the clock again when the jump is
//! undone, or when both clocks have agreed for long enough. Not here: what waits meanwhile, and slow drift, which is followed.

use crate::instant::{Micros, SECOND};

/// The largest difference from the clock of the store at which a clock is trusted, in microseconds.
pub const SKEW_MAX: i64 = 5 * SECOND;
/// The difference from the clock of the store above which the server warns, in microseconds.
pub const SKEW_WARN: i64 = SECOND;

/// The bounds within which a clock is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockBounds {
    /// The most by which wall time and monotonic time may diverge between two readings, in microseconds.
    pub jump_max: i64,
    /// How long both must agree after a jump, in microseconds.
    pub steady: i64,
}

impl Default for ClockBounds {
    fn default() -> Self {
        Self { jump_max: 60 * SECOND, steady: 600 * SECOND }
    }
}

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Wall time.
    pub wall: Micros,
    /// Microseconds since an instant that does not change.
    pub monotonic: i64,
}

impl Reading {
    /// How far wall time is ahead of monotonic time: constant while no clock is set.
    fn offset(self) -> i64 {
        self.wall.0.saturating_sub(self.monotonic)
    }
}

/// The time at which requests are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecisionTime {
    /// Wall time.
    pub now: Micros,
    /// Whether the wall clock is trusted.
    pub is_trusted: bool,
}

impl DecisionTime {
    /// A time that is trusted.
    pub fn trusted(now: Micros) -> Self {
        Self { now, is_trusted: true }
    }
}

/// Why a clock is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distrust {
    /// The jump from the trusted time, or the lead over the clock of the store, in microseconds; 0 if it is not known.
    pub jump: i64,
    /// The offset since the last jump, and the monotonic time since which it holds.
    offset: i64,
    since: i64,
}

/// What a reading changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustChange {
    /// The clock was trusted, and is not trusted now.
    Lost(Distrust),
    /// The clock is trusted again.
    Regained,
}

/// The state of trust in a clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockWatch {
    bounds: ClockBounds,
    /// The offset when it was last trusted.
    trusted: Option<i64>,
    distrust: Option<Distrust>,
    /// The lead over the clock of the store, in microseconds.
    ahead: i64,
}

impl ClockWatch {
    /// Without a reading yet: the first one is trusted.
    pub fn new(bounds: ClockBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Sets other bounds.
    pub fn set_bounds(&mut self, bounds: ClockBounds) {
        self.bounds = bounds;
    }

    /// Continues from a clock that was trusted before; `expected` is the trusted time at this reading.
    pub fn resume(&mut self, expected: Micros, reading: Reading) {
        self.trusted = Some(Reading { wall: expected, ..reading }.offset());
    }

    /// Starts untrusted: a server that stopped with an untrusted clock does not know the right time.
    pub fn begin_untrusted(&mut self, reading: Reading) {
        self.trusted = None;
        self.distrust = Some(Distrust { jump: 0, offset: reading.offset(), since: reading.monotonic });
    }

    /// Why the clock is not trusted.
    pub fn distrust(&self) -> Option<Distrust> {
        let skewed = Distrust { jump: self.ahead, offset: 0, since: 0 };
        self.distrust.or_else(|| (self.ahead.abs() > SKEW_MAX).then_some(skewed))
    }

    /// Sets the lead over the clock of the store, in microseconds.
    pub fn compare(&mut self, ahead: i64) {
        self.ahead = ahead;
    }

    /// Checks a reading. Returns what it changes.
    pub fn observe(&mut self, reading: Reading) -> Option<TrustChange> {
        let offset = reading.offset();
        let near = |other: i64| offset.abs_diff(other) <= self.bounds.jump_max.unsigned_abs();
        let Some(distrust) = &mut self.distrust else {
            let Some(trusted) = self.trusted.filter(|trusted| !near(*trusted)) else {
                self.trusted = Some(offset);
                return None;
            };
            let jump = offset.saturating_sub(trusted);
            let distrust = Distrust { jump, offset, since: reading.monotonic };
            self.distrust = Some(distrust);
            return Some(TrustChange::Lost(distrust));
        };
        let is_undone = self.trusted.is_some_and(near);
        if !near(distrust.offset) {
            distrust.since = reading.monotonic;
            distrust.jump = self.trusted.map_or(0, |trusted| offset.saturating_sub(trusted));
        }
        distrust.offset = offset;
        if !is_undone && reading.monotonic.saturating_sub(distrust.since) < self.bounds.steady {
            return None;
        }
        (self.trusted, self.distrust) = (Some(offset), None);
        Some(TrustChange::Regained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600 * SECOND;

    /// Observes a monotonic time, with the wall clock this far ahead of it.
    fn step(watch: &mut ClockWatch, monotonic: i64, ahead: i64) -> Option<TrustChange> {
        watch.observe(Reading { wall: Micros(monotonic + ahead), monotonic })
    }

    #[test]
    fn a_jump_is_doubted_until_it_is_undone() {
        for jump in [25 * HOUR, -25 * HOUR, 61 * SECOND, -61 * SECOND] {
            let mut watch = ClockWatch::default();
            assert_eq!(step(&mut watch, 0, 7), None);
            assert_eq!(step(&mut watch, 9 * HOUR, 7), None, "time passes");
            let Some(TrustChange::Lost(distrust)) = step(&mut watch, 9 * HOUR + 1, 7 + jump) else {
                panic!("{jump}")
            };
            assert_eq!(distrust.jump, jump);
            assert_eq!(step(&mut watch, 9 * HOUR + 2, 7 + jump), None);
            assert_eq!(watch.distrust(), Some(distrust));
            assert_eq!(step(&mut watch, 9 * HOUR + 3, 8), Some(TrustChange::Regained));
            assert_eq!(watch.distrust(), None);
        }
    }

    #[test]
    fn a_new_time_is_trusted_when_both_clocks_agree_for_long() {
        let mut watch = ClockWatch::default();
        step(&mut watch, 0, 0);
        step(&mut watch, 1, HOUR);
        assert_eq!(step(&mut watch, 600 * SECOND, HOUR), None);
        // It jumps once more: the steady time begins again.
        assert_eq!(step(&mut watch, 600 * SECOND + 1, 3 * HOUR), None);
        assert_eq!(watch.distrust().map(|distrust| distrust.jump), Some(3 * HOUR));
        assert_eq!(step(&mut watch, 1_200 * SECOND, 3 * HOUR), None);
        assert_eq!(step(&mut watch, 1_200 * SECOND + 1, 3 * HOUR), Some(TrustChange::Regained));
        assert!(matches!(step(&mut watch, 1_200 * SECOND + 2, 0), Some(TrustChange::Lost(_))));
    }

    #[test]
    fn drift_and_small_corrections_are_followed() {
        let mut watch = ClockWatch::default();
        for minute in 0..10_000 {
            assert_eq!(step(&mut watch, minute * 60 * SECOND, minute * 60 * SECOND / 2_000), None);
        }
        assert_eq!(step(&mut watch, 600_000 * SECOND, 300 * SECOND - 59 * SECOND), None);
    }

    #[test]
    fn a_start_is_checked_against_the_clock_that_was_trusted_before() {
        let mut watch = ClockWatch::default();
        watch.resume(Micros(HOUR), Reading { wall: Micros(0), monotonic: 7 });
        assert_eq!(step(&mut watch, 7, HOUR + SECOND), None);
        watch.resume(Micros(HOUR), Reading { wall: Micros(0), monotonic: 7 });
        assert!(matches!(step(&mut watch, 7, 26 * HOUR), Some(TrustChange::Lost(_))));
        assert_eq!(step(&mut watch, 8, HOUR), Some(TrustChange::Regained));
    }

    #[test]
    fn a_clock_that_is_far_from_the_store_is_doubted_for_as_long_as_it_is() {
        let mut watch = ClockWatch::default();
        step(&mut watch, 0, 0);
        for ahead in [25 * HOUR, -25 * HOUR, SKEW_MAX + 1, -SKEW_MAX - 1] {
            watch.compare(ahead);
            assert_eq!(watch.distrust().map(|distrust| distrust.jump), Some(ahead));
            step(&mut watch, HOUR, 0);
            assert!(watch.distrust().is_some(), "agreeing with itself does not help");
            watch.compare(SKEW_MAX);
            assert_eq!(watch.distrust(), None);
        }
    }

    #[test]
    fn a_start_in_doubt_waits_for_as_long() {
        let mut watch = ClockWatch::new(ClockBounds { jump_max: SECOND, steady: 5 * SECOND });
        watch.begin_untrusted(Reading { wall: Micros(9), monotonic: 9 });
        assert_eq!(step(&mut watch, 4 * SECOND, 0), None);
        assert!(watch.distrust().is_some());
        assert_eq!(step(&mut watch, 5 * SECOND + 9, 0), Some(TrustChange::Regained));
    }
}
