//! Periods: which one an instant belongs to, given the boundaries.
//!
//! Schedules and time zones are not read here: the service turns them into boundaries, instants at which one period
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

/// With prizes for each, so many are taken to share a rank at most.
const SHARING_MAX: u32 = 10_000_000;

/// What the ranks of each period get when it is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodPrizes {
    /// What ranks get.
    pub table: Vec<Prize>,
    /// What those get who share one.
    pub ties: PrizeTies,
    /// Since when there are prizes: periods that were closed up to then have none. Nothing until a board has them.
    pub from: Option<Micros>,
}

impl Default for PeriodPrizes {
    fn default() -> Self {
        Self { table: Vec::new(), ties: PrizeTies::Split, from: None }
    }
}

impl PeriodPrizes {
    /// Whether a period that is closed at that instant has prizes.
    pub fn are_for(&self, closed: Micros) -> bool {
        !self.table.is_empty() && self.from.is_some_and(|from| from < closed)
    }
}

/// The prizes of one period, as they are paid: written down once, then paid a piece at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// What its prizes are found by.
    pub no: Uuid,
    /// The board.
    pub board: BoardId,
    /// The period, as users call it.
    pub period: String,
    /// How many prizes.
    pub count: u32,
    /// How many of them had their turn.
    pub done: u32,
    /// When they were written down.
    pub at: Micros,
}

impl Payment {
    /// Whether some had no turn yet.
    pub fn is_open(&self) -> bool {
        self.done < self.count
    }
}

/// One rule of repetition of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodRule {
    /// Its number on its board, given once and never again.
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
    /// What is paid when one is closed.
    pub prizes: PeriodPrizes,
}

impl PeriodRule {
    /// Refuses a name that cannot be; the schedule is judged by whoever can read it.
    pub fn check(&self) -> Result<(), WrongField> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        let length = (1..=NAME_BYTES_MAX).contains(&self.name.len());
        if !length || !self.name.bytes().all(allowed) || self.name == "all_time" {
            let why = format!("period name `{}` must be [a-z0-9_-]{{1,32}} and not `all_time`", self.name);
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

/// Seconds from the year 0 to 1970: part numbers count from there, so that none is negative.
const YEAR_ZERO_S: i64 = 62_167_219_200;
/// Bits of a part's number that say its second; the years to 9999 need 39.
const SECOND_BITS: u32 = 40;

/// The number of a rule's part that starts then. It says both, so it is the same wherever it is made.
pub fn window_number(rule: u32, start: Micros) -> u64 {
    let seconds = start.0.div_euclid(crate::instant::SECOND) + YEAR_ZERO_S;
    let seconds = u64::try_from(seconds).unwrap_or(0).min((1 << SECOND_BITS) - 1);
    // 0 is all time, so rules count from 1 here.
    (u64::from(rule) + 1) << SECOND_BITS | seconds
}

/// A stretch of time: its start belongs to it, its end to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first instant.
    pub start: Micros,
    /// The first instant of the next.
    pub end: Micros,
}

impl Span {
    /// Whether the instant lies in it.
    pub fn contains(&self, at: Micros) -> bool {
        self.start <= at && at < self.end
    }
}

/// The period between two neighbouring boundaries that contains the instant; `None` before the first and from the
/// last boundary on. Boundaries are ascending.
pub fn span_of(boundaries: &[Micros], at: Micros) -> Option<Span> {
    assert!(boundaries.is_sorted(), "boundaries ascend");
    let after = boundaries.partition_point(|boundary| *boundary <= at);
    if after == 0 || after == boundaries.len() {
        return None;
    }
    Some(Span { start: boundaries[after - 1], end: boundaries[after] })
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
