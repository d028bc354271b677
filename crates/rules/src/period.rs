//! Periods: the period of an instant, given the boundaries.
//!
//! This module reads no schedules and time zones: the service turns them into boundaries, instants at which one period
//! ends and the next begins.

use crate::contest::prize::{self, Prize, PrizeTies};
use crate::ids::BoardId;
use crate::instant::Micros;
use crate::ledger::Uuid;
use crate::rejection::WrongField;

/// The longest name of a period.
pub const NAME_BYTES_MAX: usize = 32;

/// How many closed periods are kept by default.
pub const KEEP_DEFAULT: u32 = 12;

/// The most players that may share a rank with prizes by `each`.
const SHARING_MAX: u32 = 10_000_000;

/// The prizes of each period of a rule when it is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodPrizes {
    /// The prizes of the ranks.
    pub table: Vec<Prize>,
    /// What players get that share a rank.
    pub ties: PrizeTies,
    /// The instant since which there are prizes: periods closed up to then have none. `None` until there are prizes.
    pub from: Option<Micros>,
}

impl Default for PeriodPrizes {
    fn default() -> Self {
        Self { table: Vec::new(), ties: PrizeTies::Split, from: None }
    }
}

impl PeriodPrizes {
    /// Whether a period that is closed at this instant has prizes.
    pub fn are_for(&self, closed: Micros) -> bool {
        !self.table.is_empty() && self.from.is_some_and(|from| from < closed)
    }
}

/// The payment of one period's prizes: stored once, then paid in bounded steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodPayment {
    /// The key of its prizes.
    pub no: Uuid,
    /// The board.
    pub board: BoardId,
    /// The name of the period for users.
    pub period: String,
    /// The number of prizes.
    pub count: u32,
    /// The number of prizes that were tried.
    pub done: u32,
    /// When the prizes were stored.
    pub at: Micros,
}

impl PeriodPayment {
    /// Whether prizes remain.
    pub fn is_open(&self) -> bool {
        self.done < self.count
    }
}

/// A period rule of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodRule {
    /// Its number on its board, which is never reused.
    pub no: u32,
    /// `[a-z0-9_-]{1,32}`, not `all_time`.
    pub name: String,
    /// Five-field cron.
    pub schedule: String,
    /// An IANA time zone.
    pub time_zone: String,
    /// How many closed periods are kept.
    pub keep: u32,
    /// How long after its end a period still takes scores that happened in it, in seconds.
    pub grace_s: u32,
    /// The prizes of a closed period.
    pub prizes: PeriodPrizes,
}

impl PeriodRule {
    /// Refuses an invalid name or table of prizes. The service checks the schedule.
    pub fn check(&self) -> Result<(), WrongField> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        let length = (1..=NAME_BYTES_MAX).contains(&self.name.len());
        if !length || !self.name.bytes().all(allowed) || self.name == "all_time" {
            let why = format!(
                "period name `{}` must be 1 to {NAME_BYTES_MAX} of a to z, 0 to 9, `_` and `-`, and not `all_time`",
                self.name
            );
            return Err(WrongField::new("/name", why));
        }
        let PeriodPrizes { table, ties, .. } = &self.prizes;
        if table.len() > prize::PRIZES_MAX {
            let why = format!("period `{}` has more than {} ranges of prizes", self.name, prize::PRIZES_MAX);
            return Err(WrongField::new("/prizes", why));
        }
        prize::check(table, *ties, SHARING_MAX).map_err(|(at, field, why)| {
            let why = format!("period `{}`: prizes/{at}/{field} {why}", self.name);
            WrongField::new(format!("/prizes/{at}/{field}"), why)
        })
    }
}

/// Seconds from the year 0 to 1970. Window numbers count from the year 0, so that none is negative.
const YEAR_ZERO_S: i64 = 62_167_219_200;
/// Bits of a window number for its second; the years to 9999 need 39.
const SECOND_BITS: u32 = 40;

/// The number of the window of a rule that starts at `start`. It contains both, so every server computes the same number.
pub fn window_number(rule: u32, start: Micros) -> u64 {
    let seconds = start.0.div_euclid(crate::instant::SECOND) + YEAR_ZERO_S;
    let seconds = u64::try_from(seconds).unwrap_or(0).min((1 << SECOND_BITS) - 1);
    // 0 is all time, so the rules count from 1 here.
    (u64::from(rule) + 1) << SECOND_BITS | seconds
}

/// A half-open span of time: it contains its start but not its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// The first instant.
    pub start: Micros,
    /// The first instant after it.
    pub end: Micros,
}

impl TimeSpan {
    /// Whether it contains the instant.
    pub fn contains(&self, at: Micros) -> bool {
        self.start <= at && at < self.end
    }
}

/// The period between two neighbouring boundaries that contains the instant. `None` before the first boundary and from
/// the last one on. Boundaries are ascending.
pub fn span_of(boundaries: &[Micros], at: Micros) -> Option<TimeSpan> {
    assert!(boundaries.is_sorted(), "boundaries ascend");
    let after = boundaries.partition_point(|boundary| *boundary <= at);
    if after == 0 || after == boundaries.len() {
        return None;
    }
    Some(TimeSpan { start: boundaries[after - 1], end: boundaries[after] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_boundary_belongs_to_the_next_period() {
        let boundaries = [Micros(10), Micros(20), Micros(30)];
        let start = |at| span_of(&boundaries, Micros(at)).map(|span| span.start.0);
        assert_eq!(
            [start(9), start(10), start(19), start(20), start(29), start(30)],
            [None, Some(10), Some(10), Some(20), Some(20), None]
        );
    }

    proptest! {
        #[test]
        fn exactly_one_span_contains_an_instant_between_the_ends(
            mut boundaries in proptest::collection::vec(-50i64..50, 0..12), at in -60i64..60
        ) {
            boundaries.sort_unstable();
            boundaries.dedup();
            let boundaries: Vec<Micros> = boundaries.into_iter().map(Micros).collect();
            let plain = boundaries.windows(2).find(|pair| pair[0].0 <= at && at < pair[1].0);
            let got = span_of(&boundaries, Micros(at));
            prop_assert_eq!(got.map(|span| (span.start, span.end)), plain.map(|pair| (pair[0], pair[1])));
            prop_assert!(got.is_none_or(|span| span.contains(Micros(at))));
        }
    }
}
