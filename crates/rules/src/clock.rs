//! Whether a clock is believed: its wall time is compared with monotonic time, and with the clock of the store.
//!
//! A wall clock is set by people and by the network, so it can jump; a monotonic clock only counts. Both readings are
//! arguments. A jump beyond a bound puts the wall clock in doubt. It is believed again when the jump is undone, or when it has
//! agreed with the monotonic clock for long enough. Not here: what waits meanwhile, and slow drift, which is followed.

use crate::instant::{Micros, SECOND};

/// A clock that is further from the clock of the store is in doubt, in microseconds.
pub const SKEW_MAX: i64 = 5 * SECOND;
/// A clock that is further from the clock of the store is worth a warning, in microseconds.
pub const SKEW_WARN: i64 = SECOND;

/// When a clock is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockBounds {
    /// The most by which wall time and monotonic time may part between two readings, in microseconds.
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
    /// Microseconds since some instant that stays the same.
    pub monotonic: i64,
}

impl Reading {
    /// How far wall time is ahead of monotonic time: constant while no clock is set.
    fn offset(self) -> i64 {
        self.wall.0.saturating_sub(self.monotonic)
    }
}

/// Why a clock is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// By how much it has jumped from where it was believed, or is ahead of the clock of the store, in microseconds; 0 where that
    /// is not known.
    pub jump: i64,
    /// Its offset since the last jump, and since when that is so by the monotonic clock.
    offset: i64,
    since: i64,
}

/// What a reading changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The clock was believed, and is not any more.
    Doubted(Doubt),
    /// It is believed again.
    Believed,
}

/// What is known of a clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockWatch {
    bounds: ClockBounds,
    /// The offset when it was last believed.
    believed: Option<i64>,
    doubt: Option<Doubt>,
    /// How far it is ahead of the clock of the store.
    ahead: i64,
}

impl ClockWatch {
    /// One that has not seen a reading yet: the first is believed.
    pub fn new(bounds: ClockBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Other bounds from now on.
    pub fn set_bounds(&mut self, bounds: ClockBounds) {
        self.bounds = bounds;
    }

    /// Starts with what was believed before: that it would be so late at this reading.
    pub fn resume(&mut self, expected: Micros, reading: Reading) {
        self.believed = Some(Reading { wall: expected, ..reading }.offset());
    }

    /// Starts in doubt: a server that stopped in doubt did not learn which time is right.
    pub fn begin_untrusted(&mut self, reading: Reading) {
        self.believed = None;
        self.doubt = Some(Doubt { jump: 0, offset: reading.offset(), since: reading.monotonic });
    }

    /// Why the clock is not believed.
    pub fn doubt(&self) -> Option<Doubt> {
        let skewed = Doubt { jump: self.ahead, offset: 0, since: 0 };
        self.doubt.or_else(|| (self.ahead.abs() > SKEW_MAX).then_some(skewed))
    }

    /// Says how far the clock is ahead of the clock of the store, in microseconds.
    pub fn compare(&mut self, ahead: i64) {
        self.ahead = ahead;
    }

    /// Judges a reading; gives what it changes.
    pub fn look(&mut self, reading: Reading) -> Option<Turn> {
        let offset = reading.offset();
        let near = |other: i64| offset.abs_diff(other) <= self.bounds.jump_max.unsigned_abs();
        let Some(doubt) = &mut self.doubt else {
            let Some(believed) = self.believed.filter(|believed| !near(*believed)) else {
                self.believed = Some(offset);
                return None;
            };
            let jump = offset.saturating_sub(believed);
            let doubt = Doubt { jump, offset, since: reading.monotonic };
            self.doubt = Some(doubt);
            return Some(Turn::Doubted(doubt));
        };
        let is_undone = self.believed.is_some_and(near);
        if !near(doubt.offset) {
            doubt.since = reading.monotonic;
            doubt.jump = self.believed.map_or(0, |believed| offset.saturating_sub(believed));
        }
        doubt.offset = offset;
        if !is_undone && reading.monotonic.saturating_sub(doubt.since) < self.bounds.steady {
            return None;
        }
        (self.believed, self.doubt) = (Some(offset), None);
        Some(Turn::Believed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600 * SECOND;

    /// Looks at a monotonic time, with the wall clock so far ahead of it.
    fn look(watch: &mut ClockWatch, monotonic: i64, ahead: i64) -> Option<Turn> {
        watch.look(Reading { wall: Micros(monotonic + ahead), monotonic })
    }

    #[test]
    fn a_jump_is_doubted_until_it_is_undone() {
        for jump in [25 * HOUR, -25 * HOUR, 61 * SECOND, -61 * SECOND] {
            let mut watch = ClockWatch::default();
            assert_eq!(look(&mut watch, 0, 7), None);
            assert_eq!(look(&mut watch, 9 * HOUR, 7), None, "time passes");
            let Some(Turn::Doubted(doubt)) = look(&mut watch, 9 * HOUR + 1, 7 + jump) else {
                panic!("{jump}")
            };
            assert_eq!(doubt.jump, jump);
            assert_eq!(look(&mut watch, 9 * HOUR + 2, 7 + jump), None);
            assert_eq!(watch.distrust(), Some(doubt));
            assert_eq!(look(&mut watch, 9 * HOUR + 3, 8), Some(Turn::Believed));
            assert_eq!(watch.distrust(), None);
        }
    }

    #[test]
    fn a_new_time_is_believed_when_both_clocks_agree_for_long() {
        let mut watch = ClockWatch::default();
        look(&mut watch, 0, 0);
        look(&mut watch, 1, HOUR);
        assert_eq!(look(&mut watch, 600 * SECOND, HOUR), None);
        // It jumps once more: the time begins again.
        assert_eq!(look(&mut watch, 600 * SECOND + 1, 3 * HOUR), None);
        assert_eq!(watch.distrust().map(|doubt| doubt.jump), Some(3 * HOUR));
        assert_eq!(look(&mut watch, 1_200 * SECOND, 3 * HOUR), None);
        assert_eq!(look(&mut watch, 1_200 * SECOND + 1, 3 * HOUR), Some(Turn::Believed));
        assert!(matches!(look(&mut watch, 1_200 * SECOND + 2, 0), Some(Turn::Doubted(_))));
    }

    #[test]
    fn drift_and_small_corrections_are_followed() {
        let mut watch = ClockWatch::default();
        for minute in 0..10_000 {
            assert_eq!(look(&mut watch, minute * 60 * SECOND, minute * 60 * SECOND / 2_000), None);
        }
        assert_eq!(look(&mut watch, 600_000 * SECOND, 300 * SECOND - 59 * SECOND), None);
    }

    #[test]
    fn a_start_is_judged_by_what_was_believed_before() {
        let mut watch = ClockWatch::default();
        watch.resume(Micros(HOUR), Reading { wall: Micros(0), monotonic: 7 });
        assert_eq!(look(&mut watch, 7, HOUR + SECOND), None);
        watch.resume(Micros(HOUR), Reading { wall: Micros(0), monotonic: 7 });
        assert!(matches!(look(&mut watch, 7, 26 * HOUR), Some(Turn::Doubted(_))));
        assert_eq!(look(&mut watch, 8, HOUR), Some(Turn::Believed));
    }

    #[test]
    fn a_clock_that_is_far_from_the_store_is_doubted_for_as_long_as_it_is() {
        let mut watch = ClockWatch::default();
        look(&mut watch, 0, 0);
        for ahead in [25 * HOUR, -25 * HOUR, SKEW_MAX + 1, -SKEW_MAX - 1] {
            watch.compare(ahead);
            assert_eq!(watch.distrust().map(|doubt| doubt.jump), Some(ahead));
            look(&mut watch, HOUR, 0);
            assert!(watch.distrust().is_some(), "agreeing with itself does not help");
            watch.compare(SKEW_MAX);
            assert_eq!(watch.distrust(), None);
        }
    }

    #[test]
    fn a_start_in_doubt_waits_for_as_long() {
        let mut watch = ClockWatch::new(ClockBounds { jump_max: SECOND, steady: 5 * SECOND });
        watch.begin_untrusted(Reading { wall: Micros(9), monotonic: 9 });
        assert_eq!(look(&mut watch, 4 * SECOND, 0), None);
        assert!(watch.distrust().is_some());
        assert_eq!(look(&mut watch, 5 * SECOND + 9, 0), Some(Turn::Believed));
    }
}
