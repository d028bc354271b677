//! Names that callers choose: boards and players.
//!
//! A value of these types is valid, so code behind the listeners does not check again. They are compared as bytes and
//! cheap to clone.

use std::sync::Arc;

/// The longest board or player id, in bytes.
pub const ID_BYTES_MAX: usize = 128;

/// Names with this prefix belong to contests.
pub const CONTEST_PREFIX: &str = "contest:";

/// A leaderboard's name: 1..128 bytes of UTF-8 without control characters and without `@`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoardId(Arc<str>);

/// A player's name: 1..128 bytes of UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerId(Arc<str>);

/// Why a name was refused, as a sentence that begins with "must".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadId(pub &'static str);

impl BoardId {
    /// Checks a board's name.
    pub fn new(text: &str) -> Result<Self, BadId> {
        check_length(text)?;
        if text.contains('@') {
            return Err(BadId("must not contain `@`, which separates a board from a period"));
        }
        if text.chars().any(char::is_control) {
            return Err(BadId("must not contain control characters"));
        }
        Ok(Self(text.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name is reserved for contests.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(CONTEST_PREFIX)
    }
}

impl std::borrow::Borrow<str> for BoardId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PlayerId {
    /// Checks a player's name.
    pub fn new(text: &str) -> Result<Self, BadId> {
        check_length(text)?;
        Ok(Self(text.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes that decide ties.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn check_length(text: &str) -> Result<(), BadId> {
    if text.is_empty() {
        return Err(BadId("must not be empty"));
    }
    if text.len() > ID_BYTES_MAX {
        return Err(BadId("must be at most 128 bytes of UTF-8"));
    }
    // Clients and proxies rewrite these path segments.
    if text == "." || text == ".." {
        return Err(BadId("must not be `.` or `..`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_bytes_not_characters() {
        assert!(PlayerId::new(&"ä".repeat(64)).is_ok());
        assert!(PlayerId::new(&"ä".repeat(65)).is_err());
        assert!(BoardId::new("").is_err());
    }

    #[test]
    fn at_signs_and_control_characters_are_for_players_only() {
        for text in ["a@b", "a\nb", "a\u{7f}b"] {
            assert!(BoardId::new(text).is_err(), "{text:?}");
            assert!(PlayerId::new(text).is_ok(), "{text:?}");
        }
        for text in [".", ".."] {
            assert!(BoardId::new(text).is_err());
            assert!(PlayerId::new(text).is_err());
        }
    }

    #[test]
    fn contest_names_are_reserved() {
        assert!(BoardId::new("contest:cup").unwrap().is_reserved());
        assert!(!BoardId::new("contests").unwrap().is_reserved());
    }
}
