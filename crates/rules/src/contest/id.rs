//! Names of contests, and the names that derive from them: of their boards, and of the contests of a series.

use crate::ids::{BadId, BoardId, CONTEST_PREFIX};

/// The longest name of a contest, in bytes.
pub const CONTEST_BYTES_MAX: usize = 64;

/// What a contest of a series adds to the name of the series: a hyphen and twelve digits.
const OCCURRENCE_BYTES: usize = 13;

/// A contest's name: `[A-Za-z0-9._-]{1,64}`. It needs no escape anywhere, and a colon after it ends it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContestId(std::sync::Arc<str>);

/// A minute on the calendar of some time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minute {
    /// 0 to 9999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
}

impl ContestId {
    /// Checks a name.
    pub fn new(text: &str) -> Result<Self, BadId> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=CONTEST_BYTES_MAX).contains(&text.len()) || !text.bytes().all(allowed) {
            return Err(BadId("must be 1 to 64 of the letters A-Z and a-z, digits, `.`, `_` and `-`"));
        }
        // Clients and proxies rewrite these path segments.
        if text == "." || text == ".." {
            return Err(BadId("must not be `.` or `..`"));
        }
        Ok(Self(text.into()))
    }

    /// Checks the name of a series. It is shorter, because its contests have longer names.
    pub fn of_series(text: &str) -> Result<Self, BadId> {
        if text.len() > CONTEST_BYTES_MAX - OCCURRENCE_BYTES {
            return Err(BadId(
                "must be at most 51 bytes: `-` and twelve digits follow in the names of its contests",
            ));
        }
        Self::new(text)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The contest of this series that starts in this minute.
    pub fn occurrence(&self, at: Minute) -> Self {
        let Minute { year, month, day, hour, minute } = at;
        let name = format!("{}-{year:04}{month:02}{day:02}{hour:02}{minute:02}", self.0);
        Self::new(&name).expect("a series leaves room for the minute")
    }

    /// What the names of the contests of this series begin with. It comes before them.
    pub fn occurrences(&self) -> Self {
        Self::new(&format!("{}-", self.0)).expect("a series leaves room for the minute")
    }

    /// The contest's board, or the board of one of its divisions.
    pub fn board(&self, division: Option<u32>) -> BoardId {
        let of = division.map_or_else(String::new, |n| format!(":{n}"));
        BoardId::new(&format!("{CONTEST_PREFIX}{}{of}", self.0)).expect("short, and of plain letters")
    }

    /// The contest and the division that a board belongs to, by its name.
    pub fn of_board(board: &BoardId) -> Option<(Self, Option<u32>)> {
        let name = board.as_str().strip_prefix(CONTEST_PREFIX)?;
        let (id, division) = match name.split_once(':') {
            Some((id, n)) => (id, Some(n.parse().ok()?)),
            None => (name, None),
        };
        let id = Self::new(id).ok()?;
        // Other spellings of a number name nothing.
        (id.board(division) == *board).then_some((id, division))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for text in ["a", "Friday-cup_2.0", "...", &"x".repeat(64)] {
            assert_eq!(ContestId::new(text).unwrap().as_str(), text);
        }
        for text in ["", ".", "..", "a b", "a:b", "a@b", "ä", "a/b", "a\n", &"x".repeat(65)] {
            assert!(ContestId::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_series_leaves_room_for_its_minute() {
        let at = Minute { year: 2026, month: 3, day: 9, hour: 4, minute: 5 };
        let series = ContestId::of_series(&"s".repeat(51)).unwrap();
        let name = series.occurrence(at);
        assert!(name.as_str().starts_with(series.occurrences().as_str()));
        assert_eq!((name.as_str().len(), &name.as_str()[51..]), (64, "-202603090405"));
        assert!(ContestId::of_series(&"s".repeat(52)).is_err());
        assert!(ContestId::of_series("a b").is_err());
    }

    #[test]
    fn boards_tell_their_contest() {
        let id = ContestId::new("cup.1").unwrap();
        assert_eq!(id.board(None).as_str(), "contest:cup.1");
        assert_eq!(id.board(Some(12)).as_str(), "contest:cup.1:12");
        for division in [None, Some(0), Some(u32::MAX)] {
            assert_eq!(ContestId::of_board(&id.board(division)), Some((id.clone(), division)));
        }
        for other in [
            "contest",
            "contest:",
            "contest:a b",
            "contest:a:",
            "contest:a:x",
            "contest:a:01",
            "contest:a:1:2",
            "x",
        ] {
            assert_eq!(ContestId::of_board(&BoardId::new(other).unwrap()), None, "{other}");
        }
    }
}
