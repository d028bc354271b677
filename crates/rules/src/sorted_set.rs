//! A board as a sorted set: the options of an addition, and the positions of a range.
//!
//! The terms are those of Redis (ZADD, ZRANGE): members ascend by score, positions count from the lowest, negative ones
//! from the highest. Additions keep the board's update rule: `best` keeps the better score, `sum` adds.

use crate::definition::{Definition, Order, Update};
use crate::instant::Micros;
use crate::record::{self, Record, Updated};
use crate::rejection::Rejection;
use crate::score;

/// The options of an addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Add {
    /// Adds only players without a record.
    pub new_only: bool,
    /// Changes only players with a record.
    pub present_only: bool,
    /// Changes a record only to a greater score. A player without a record is added.
    pub greater: bool,
    /// Changes a record only to a lower score. A player without a record is added.
    pub less: bool,
    /// Adds the score to the present one.
    pub increment: bool,
}

/// Why a board refuses an addition with these options.
pub const SUM_TAKES_INCREMENTS: &str = "this leaderboard sums: use ZINCRBY or LB.SUBMIT";
/// See [`SUM_TAKES_INCREMENTS`].
pub const BEST_TAKES_NO_INCREMENTS: &str = "this leaderboard keeps the best score: it cannot be incremented";
/// See [`SUM_TAKES_INCREMENTS`].
pub const BEST_HAS_ONE_DIRECTION: &str =
    "this leaderboard keeps the best score: GT goes with descending order, LT with ascending";
/// See [`SUM_TAKES_INCREMENTS`].
pub const SUM_HAS_NO_DIRECTION: &str = "this leaderboard sums: GT and LT do not go with it";

impl Add {
    /// Refuses options that the board's update rule gives no meaning.
    pub fn check(&self, definition: &Definition) -> Result<(), &'static str> {
        match definition.update {
            Update::Latest => Ok(()),
            Update::Sum if !self.increment => Err(SUM_TAKES_INCREMENTS),
            Update::Sum if self.greater || self.less => Err(SUM_HAS_NO_DIRECTION),
            Update::Sum => Ok(()),
            Update::Best if self.increment => Err(BEST_TAKES_NO_INCREMENTS),
            Update::Best => match definition.order {
                Order::Descending if self.less => Err(BEST_HAS_ONE_DIRECTION),
                Order::Ascending if self.greater => Err(BEST_HAS_ONE_DIRECTION),
                Order::Descending | Order::Ascending => Ok(()),
            },
        }
    }

    /// The record after an addition to the shown window; `None` if a condition does not hold.
    pub fn apply(
        &self,
        definition: &Definition,
        present: Option<Record>,
        given: i64,
        at: Micros,
    ) -> Result<Option<Updated>, Rejection> {
        if present.is_some() && self.new_only || present.is_none() && self.present_only {
            return Ok(None);
        }
        let Some(old) = present else {
            let record = Record { score: given, subscore: 0, at };
            return Ok(Some(Updated { record, changed: true }));
        };
        let score = if self.increment { score::sum(definition.score, old.score, given)? } else { given };
        if self.greater && score <= old.score || self.less && score >= old.score {
            return Ok(None);
        }
        // `sum` takes the increment, the other update rules take the new score.
        let given = if definition.update == Update::Sum { given } else { score };
        // A later addition counts, even if an earlier one has a later instant.
        let at = at.max(old.at);
        record::apply(definition, present, Record { score: given, subscore: 0, at }).map(Some)
    }

    /// The submit for the other target windows, given the record of the shown window now.
    pub fn elsewhere(&self, definition: &Definition, given: i64, shown: &Record) -> Record {
        let score = if definition.update == Update::Latest { shown.score } else { given };
        Record { score, subscore: 0, at: shown.at }
    }
}

/// The range `start..=stop` of `total` positions; a negative position counts from the end. `None` if it is empty.
pub fn places(start: i64, stop: i64, total: u64) -> Option<std::ops::Range<u64>> {
    let last = i64::try_from(total).ok()?;
    let from_end = |place: i64| if place < 0 { place.saturating_add(last) } else { place };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(last - 1));
    (start <= stop && start < last).then(|| start.cast_unsigned()..stop.cast_unsigned() + 1)
}

/// One end of a range over members' bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Before every member.
    Lowest,
    /// After every member.
    Highest,
    /// From this member on, inclusive.
    Inclusive(Vec<u8>),
    /// This member excluded.
    Exclusive(Vec<u8>),
}

impl Bound {
    /// Whether a member is below a range that starts here.
    pub fn is_above(&self, member: &[u8]) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Inclusive(bytes) => member < bytes.as_slice(),
            Self::Exclusive(bytes) => member <= bytes.as_slice(),
        }
    }

    /// Whether a member is within a range that ends here.
    pub fn reaches(&self, member: &[u8]) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Inclusive(bytes) => member <= bytes.as_slice(),
            Self::Exclusive(bytes) => member < bytes.as_slice(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted_set() -> Definition {
        Definition { update: Update::Latest, ..Definition::default() }
    }

    fn record(score: i64) -> Record {
        Record { score, subscore: 0, at: Micros(1) }
    }

    #[test]
    fn conditions_of_an_addition() {
        let none = Add::default();
        let rows = [
            // (options, present, given, the score after; None if the condition does not hold)
            (none, None, 5, Some(5)),
            (none, Some(3), 5, Some(5)),
            (Add { new_only: true, ..none }, Some(3), 5, None),
            (Add { present_only: true, ..none }, None, 5, None),
            (Add { greater: true, ..none }, Some(5), 5, None),
            (Add { greater: true, ..none }, Some(4), 5, Some(5)),
            (Add { greater: true, ..none }, None, 5, Some(5)),
            (Add { less: true, ..none }, Some(4), 5, None),
            (Add { less: true, increment: true, ..none }, Some(4), -1, Some(3)),
            (Add { increment: true, ..none }, None, 7, Some(7)),
        ];
        for (options, present, given, after) in rows {
            let got = options.apply(&sorted_set(), present.map(record), given, Micros(2)).unwrap();
            assert_eq!(got.map(|one| one.record.score), after, "{options:?} {present:?} {given}");
        }
    }

    #[test]
    fn a_board_of_sums_adds_and_one_of_the_best_keeps_it() {
        let sum = Definition { update: Update::Sum, ..Definition::default() };
        let increment = Add { increment: true, ..Add::default() };
        let got = increment.apply(&sum, Some(record(3)), 4, Micros(2)).unwrap().unwrap();
        assert_eq!((got.record.score, got.changed), (7, true));
        assert_eq!(Add::default().check(&sum), Err(SUM_TAKES_INCREMENTS));
        let best = Definition::default();
        let got = Add::default().apply(&best, Some(record(3)), 2, Micros(2)).unwrap().unwrap();
        assert_eq!((got.record.score, got.changed), (3, false));
        assert_eq!(increment.check(&best), Err(BEST_TAKES_NO_INCREMENTS));
        assert_eq!(Add { less: true, ..Add::default() }.check(&best), Err(BEST_HAS_ONE_DIRECTION));
        assert_eq!(Add { greater: true, ..Add::default() }.check(&best), Ok(()));
    }

    proptest! {
        #[test]
        fn places_are_those_of_a_slice(start in -12_i64..12, stop in -12_i64..12, total in 0_u64..8) {
            let all: Vec<u64> = (0..total).collect();
            let n = total.cast_signed();
            let at = |place: i64| if place < 0 { place + n } else { place };
            let want: Vec<u64> =
                all.iter().copied().filter(|one| at(start) <= one.cast_signed() && one.cast_signed() <= at(stop)).collect();
            let got: Vec<u64> = places(start, stop, total).map(Iterator::collect).unwrap_or_default();
            prop_assert_eq!(got, want);
        }

        #[test]
        fn no_place_overflows(start in any::<i64>(), stop in any::<i64>(), total in any::<u64>()) {
            if let Some(range) = places(start, stop, total) {
                prop_assert!(range.start < range.end && range.end <= total);
            }
        }
    }
}
