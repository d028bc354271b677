//! Instants: microseconds since 1970 in UTC, and the source of the server's instants.
//!
//! An instant of the source orders rows and decides ties. It never goes back, so after one wrong reading of the clock it may be
//! ahead of the clock for long. So it does not decide the period of a row: the clock does.

use crate::rejection::Rejection;
use std::fmt;

/// Microseconds since 1970-01-01T00:00:00Z; negative before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub i64);

/// For messages: `2026-11-21T08:20:00Z`, with a fraction if it has one.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.0.div_euclid(SECOND), self.0.rem_euclid(SECOND));
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = date(days);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if fraction > 0 {
            write!(f, ".{fraction:06}")?;
        }
        f.write_str("Z")
    }
}

/// Year, month and day in UTC of a day since 1970.
pub(crate) fn date(days: i64) -> (i64, i64, i64) {
    // The calendar repeats every 400 years, which have 146,097 days, and years begin in March here: a leap day is the last.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let (month, next) = if from_march < 10 { (from_march + 3, 0) } else { (from_march - 9, 1) };
    (year + era * 400 + next, month, day)
}

/// One second.
pub const SECOND: i64 = 1_000_000;

/// How far a caller's instant may be ahead of the server's clock and still count as now.
pub const AHEAD_MAX_MICROS: i64 = 5 * SECOND;

impl Micros {
    /// This instant moved by this many microseconds, saturating.
    pub fn plus(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Microseconds from `earlier` to this one.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// When a row happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTime {
    /// The instant that is stored and decides ties.
    pub at: Micros,
    /// The instant that decides the periods: the caller's, else the clock's.
    pub counted_at: Micros,
}

/// Gives strictly increasing instants, even when the clock stops or is set back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Instants {
    last: Micros,
}

impl Instants {
    /// Starts after `last`, the newest instant given before a restart.
    pub fn after(last: Micros) -> Self {
        Self { last }
    }

    /// The newest instant given.
    pub fn newest(&self) -> Micros {
        self.last
    }

    /// The next instant: not before `now`, and after every instant given before.
    pub fn next(&mut self, now: Micros) -> Micros {
        self.last = now.max(self.last.plus(1));
        self.last
    }

    /// The time of a row: the caller's instant if it is not in the future, else the next instant of this source.
    pub fn of_row(&mut self, given: Option<Micros>, now: Micros) -> Result<RowTime, Rejection> {
        match given {
            Some(at) if at <= now => {
                // Later rows get later instants even if the clock is set back meanwhile, as after a restart.
                self.last = self.last.max(at);
                Ok(RowTime { at, counted_at: at })
            }
            Some(at) if at.since(now) > AHEAD_MAX_MICROS => Err(Rejection::AtInFuture(at)),
            Some(_) | None => Ok(self.row_now(now)),
        }
    }

    /// The time of a row that happens now.
    pub fn row_now(&mut self, now: Micros) -> RowTime {
        RowTime { at: self.next(now), counted_at: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_given_time_is_later_whatever_the_clock_does() {
        let mut instants = Instants::default();
        assert_eq!(instants.of_row(Some(Micros(900)), Micros(1_000)).unwrap().at, Micros(900));
        assert_eq!(
            instants.of_row(None, Micros(500)).unwrap(),
            RowTime { at: Micros(901), counted_at: Micros(500) }
        );
        assert_eq!(instants.of_row(Some(Micros(300)), Micros(500)).unwrap().at, Micros(300));
        assert_eq!(instants.newest(), Micros(901));
    }

    #[test]
    fn instants_strictly_increase_through_a_clock_that_steps_back() {
        let mut instants = Instants::after(Micros(100));
        let clock = [90, 90, 150, 140, 150, 151];
        let given: Vec<i64> = clock.iter().map(|now| instants.next(Micros(*now)).0).collect();
        assert_eq!(given, [101, 102, 150, 151, 152, 153]);
    }

    #[test]
    fn a_little_ahead_counts_as_now_and_more_is_refused() {
        let now = Micros(1_000 * SECOND);
        let mut instants = Instants::default();
        let time = |at, counted_at| Ok(RowTime { at, counted_at });
        assert_eq!(instants.of_row(Some(Micros(5)), now), time(Micros(5), Micros(5)));
        assert_eq!(instants.of_row(Some(now.plus(AHEAD_MAX_MICROS)), now), time(now, now));
        let ahead = now.plus(AHEAD_MAX_MICROS + 1);
        assert_eq!(instants.of_row(Some(ahead), now), Err(Rejection::AtInFuture(ahead)));
        assert_eq!(instants.of_row(None, now), time(now.plus(1), now));
    }

    #[test]
    fn an_instant_is_written_in_utc() {
        for (at, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_399 * SECOND, "2000-02-28T23:59:59Z"),
            (951_782_400 * SECOND, "2000-02-29T00:00:00Z"),
            (951_868_800 * SECOND + 50, "2000-03-01T00:00:00.000050Z"),
            (1_767_225_599 * SECOND, "2025-12-31T23:59:59Z"),
            (1_893_456_000 * SECOND, "2030-01-01T00:00:00Z"),
        ] {
            assert_eq!(Micros(at).to_string(), text);
        }
    }

    #[test]
    fn rows_are_of_the_clock_when_instants_are_ahead() {
        let now = Micros(7);
        let mut instants = Instants::after(Micros(90 * SECOND));
        for nth in 1..3 {
            assert_eq!(
                instants.of_row(None, now),
                Ok(RowTime { at: Micros(90 * SECOND + nth), counted_at: now })
            );
        }
    }
}
