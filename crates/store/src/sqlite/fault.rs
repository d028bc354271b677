//! Faults of SQLite as kinds of [`StoreError`]: by what the caller must do, never by text.
//!
//! All codes are in one place, so that none has two meanings. A row that is read is input: one that tally cannot have
//! written is reported as corrupt and never causes a panic. Not here: any retry.

use crate::damage::hex;
use crate::{CorruptRow, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, Row};

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(code) => of_code(code, text),
            None => of_rusqlite(&error, text),
        }
    }
}

/// A corrupt row: tally cannot have written it. The caller adds the key if it knows it.
pub(super) fn damaged(table: &'static str, what: &str) -> StoreError {
    StoreError::CorruptRow(Box::new(CorruptRow { table, key: String::new(), what: what.into() }))
}

/// A column of a corrupt row, as a part of its key.
pub(super) fn column_text(row: &Row<'_>, column: usize) -> String {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(number)) => number.to_string(),
        Ok(ValueRef::Text(bytes)) => {
            std::str::from_utf8(bytes).map_or_else(|_| hex(bytes), |text| text.escape_debug().to_string())
        }
        Ok(ValueRef::Blob(bytes)) => hex(bytes),
        Ok(ValueRef::Null | ValueRef::Real(_)) | Err(_) => "?".into(),
    }
}

/// A corrupt value that the whole store depends on.
pub(super) fn corrupt(table: &str, what: &str) -> StoreError {
    StoreError::Corrupt(format!("{table}: {what}"))
}

/// An error of the operating system on one of our files.
pub(super) fn file(doing: &str, path: &std::path::Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("{doing} `{}`: {error}", path.display()))
}

fn of_code(code: ErrorCode, text: String) -> StoreError {
    use ErrorCode::{
        ConstraintViolation, DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase, TooBig,
        TypeMismatch, Unknown,
    };
    if matches!(code, DatabaseBusy | DatabaseLocked) {
        StoreError::Conflict(text)
    } else if matches!(code, ConstraintViolation | TooBig | TypeMismatch) {
        StoreError::Row(text)
    } else if matches!(code, DatabaseCorrupt | NotADatabase | Unknown) {
        // `Unknown` is SQLITE_ERROR: a statement does not compile, so the schema is not the one that tally made.
        StoreError::Corrupt(text)
    } else {
        // Full disk, I/O, permissions, memory, an interrupt. Nothing was done, and a later attempt may succeed.
        StoreError::Unavailable(text)
    }
}

/// Faults that rusqlite found before or after SQLite: in a read value, in a written value, or in its use.
fn of_rusqlite(error: &rusqlite::Error, text: String) -> StoreError {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, NulError, QueryReturnedNoRows,
        ToSqlConversionFailure, Utf8Error,
    };
    if matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    ) {
        damaged("", &text)
    } else if matches!(error, QueryReturnedNoRows) {
        StoreError::Corrupt(text)
    } else if matches!(error, ToSqlConversionFailure(_) | NulError(_)) {
        StoreError::Row(text)
    } else {
        StoreError::Unavailable(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_fault_asks_for_the_right_reaction() {
        let rows = [
            (5, "conflict"),
            (6, "conflict"),
            (19, "row"),
            (18, "row"),
            (20, "row"),
            (13, "away"),
            (10, "away"),
            (8, "away"),
            (14, "away"),
            (7, "away"),
            (11, "corrupt"),
            (26, "corrupt"),
            (1, "corrupt"),
            // Extended codes: a unique constraint, a failed sync, a snapshot that is too old.
            (2067, "row"),
            (1034, "away"),
            (517, "conflict"),
        ];
        for (code, wanted) in rows {
            let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            let got = match StoreError::from(error) {
                StoreError::Conflict(_) => "conflict",
                StoreError::Row(_) => "row",
                StoreError::Unavailable(_) => "away",
                StoreError::Corrupt(_) => "corrupt",
                StoreError::InDoubt { .. }
                | StoreError::Partly(_)
                | StoreError::CorruptRow(_)
                | StoreError::Archive { .. }
                | StoreError::Locked(_)
                | StoreError::NoAccess(_)
                | StoreError::Skewed(_)
                | StoreError::Replication(_)
                | StoreError::TooNew { .. }
                | StoreError::TooOld { .. }
                | StoreError::Layout(_)
                | StoreError::ShardUnavailable { .. }
                | StoreError::NotOurs(_) => "said by another place",
            };
            assert_eq!(got, wanted, "{code}");
        }
    }
}
