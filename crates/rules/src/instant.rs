//! Instants: microseconds since 1970 in UTC, and the source of the server's instants.
//!
//! An instant of the source orders rows and decides ties. It never goes back, so after one wrong reading of the clock it may be
//! ahead of the clock for long. So it does not decide the period of a row: the clock does.

use crate::rejection::Rejection;

/// Microseconds since 1970-01-01T00:00:00Z; negative before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub i64);

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
            Some(at) if at.since(now) > AHEAD_MAX_MICROS => Err(Rejection::AtInFuture),
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
        assert_eq!(instants.of_row(Some(now.plus(AHEAD_MAX_MICROS + 1)), now), Err(Rejection::AtInFuture));
        assert_eq!(instants.of_row(None, now), time(now.plus(1), now));
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
