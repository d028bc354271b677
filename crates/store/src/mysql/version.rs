//! The version that a transaction gives its rows, as SQL text.

use super::text::{RowScript, Script};

/// The version that rows of a transaction get.
#[derive(Clone, Copy, Debug)]
pub(super) enum Version {
    /// Computed from the rows that were read.
    Number(u64),
    /// The database's clock, which the same message reads into a variable.
    Session,
}

impl Version {
    pub(super) fn put(self, script: &mut Script) {
        match self {
            Self::Number(number) => script.number(number),
            Self::Session => script.sql("@version"),
        };
    }

    pub(super) fn put_in(self, row: &mut RowScript<'_>) {
        match self {
            Self::Number(number) => row.number(number),
            Self::Session => row.sql("@version"),
        };
    }
}
