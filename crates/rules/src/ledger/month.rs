//! Months of the calendar in UTC: what the ledger is archived by.
//!
//! Not here: the clock, and which months are over.

use crate::instant::{self, Micros};
use std::fmt;

const DAY: i64 = 24 * 3600 * 1_000_000;

/// A month, counted from January of the year 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(pub u32);

impl Month {
    /// The month of an instant. Instants before 1970 count as its first.
    pub fn of(at: Micros) -> Self {
        let (year, month, _) = instant::date(at.0.max(0) / DAY);
        Self(u32::try_from(year * 12 + month - 1).unwrap_or(u32::MAX))
    }

    /// Reads `2026-01`.
    pub fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let digits =
            |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(year, 4) || !digits(month, 2) {
            return None;
        }
        let (year, month): (u32, u32) = (year.parse().ok()?, month.parse().ok()?);
        (year >= 1970 && (1..=12).contains(&month)).then(|| Self(year * 12 + month - 1))
    }

    /// Its first instant.
    pub fn start(self) -> Micros {
        let (year, month) = (i64::from(self.0 / 12), i64::from(self.0 % 12));
        let (year, from_march) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
        let (era, of_era) = (year / 400, year % 400);
        let of_year = (153 * from_march + 2) / 5;
        let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
        Micros(days.saturating_mul(DAY))
    }

    /// The next one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The one so many months before.
    #[must_use]
    pub fn back(self, months: u32) -> Self {
        Self(self.0.saturating_sub(months))
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.0 / 12, self.0 % 12 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_has_its_first_instant_and_all_until_the_next_one() {
        for (text, start) in [
            ("1970-01", 0),
            ("1970-02", 31),
            ("2000-03", 11_017),
            ("2024-02", 19_754),
            ("2024-03", 19_783),
            ("2026-01", 20_454),
            ("2100-03", 47_541),
        ] {
            let month = Month::parse(text).unwrap();
            assert_eq!(month.start(), Micros(start * DAY), "{text}");
            assert_eq!(month.to_string(), text);
        }
        for number in 1970 * 12..2500 * 12 {
            let month = Month(number);
            assert_eq!(Month::of(month.start()), month);
            assert_eq!(Month::of(month.next().start().plus(-1)), month);
        }
    }

    #[test]
    fn other_texts_are_no_months() {
        for text in
            ["", "2026", "2026-1", "2026-13", "2026-00", "1969-12", "02026-01", "2026-01-01", "+026-01"]
        {
            assert_eq!(Month::parse(text), None, "{text}");
        }
    }
}
