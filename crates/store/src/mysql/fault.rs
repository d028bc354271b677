//! Faults of the database and of the connection, as kinds of [`StoreError`]: by number, never by text.
//!
//! All codes are in one place, so that none has two meanings. Not here: any retry, and what a fault at COMMIT means (`run`).

use crate::{CorruptRow, StoreError};
use mysql_async::Error;

/// Why a message failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The database refused a statement. The statements after it were not run, and the connection is sound.
    Refused {
        /// The number of the error.
        code: u16,
        /// The text of the database.
        text: String,
        /// The number of statements of the message that were certainly answered.
        answered: usize,
    },
    /// The connection is lost, or no answer came in time. It is unknown which statements were run.
    Lost(String),
    /// The message was not sent, because it cannot be built.
    NotSent(StoreError),
}

impl Fault {
    pub(super) fn of(error: &Error, answered: usize) -> Self {
        match error {
            Error::Server(error) => {
                // These end the connection: shutdown, killed, closed while idle.
                if matches!(error.code, 1053 | 1152 | 1317 | 1927 | 4031) {
                    return Self::Lost(error.to_string());
                }
                Self::Refused { code: error.code, text: error.to_string(), answered }
            }
            error => Self::Lost(error.to_string()),
        }
    }

    /// Whether the connection can be used for the next transaction.
    pub(super) fn spares_link(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if !matches!(of_code(*code), Kind::Unavailable))
    }
}

/// The error for the caller when nothing was done.
impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Lost(why) => Self::Unavailable(why),
            Fault::NotSent(error) => error,
            Fault::Refused { code, text, .. } => match of_code(code) {
                Kind::Conflict => Self::Conflict(text),
                Kind::Row => Self::Row(text),
                Kind::Corrupt => Self::Corrupt(text),
                Kind::Unavailable => Self::Unavailable(text),
            },
        }
    }
}

/// Duplicate key.
pub(super) const DUPLICATE: u16 = 1062;

/// Lock wait timeout.
pub(super) const LOCK_WAIT: u16 = 1205;

/// The column to add exists.
pub(super) const COLUMN_THERE: u16 = 1060;

/// The column to drop does not exist.
pub(super) const COLUMN_GONE: u16 = 1091;

/// A null in a column that must not be null: the lease has another number, a board is deleted, or a cached wallet differs
/// from the row.
pub(super) const NULL: u16 = 1048;

/// Whether another transaction conflicted. Nothing was done then, at any position in a message.
pub(super) fn is_conflict(code: u16) -> bool {
    matches!(of_code(code), Kind::Conflict)
}

/// Whether a server gives no access to this user, with this password, from this host, to this database, or by this connection.
pub(super) fn refuses_login(code: u16) -> bool {
    // No such database, no right to it, a wrong password, a host or a plugin that may not, a password that has expired, a locked
    // account (MySQL, MariaDB), no TLS.
    matches!(code, 1044 | 1045 | 1049 | 1130 | 1251 | 1524 | 1698 | 1862 | 3118 | 3159 | 4151)
}

enum Kind {
    Conflict,
    Row,
    Corrupt,
    Unavailable,
}

fn of_code(code: u16) -> Kind {
    match code {
        // Deadlock, lock wait, no wait, changed since it was read. Duplicate key: a row that was missing when it was read
        // exists now (taken names are found before).
        1213 | LOCK_WAIT | 3572 | 1020 | DUPLICATE | 1586 | NULL => Kind::Conflict,
        // Invalid text, too long, out of range, a check (MySQL, MariaDB), a row too large, a message too large.
        1366 | 1406 | 1264 | 1690 | 3819 | 4025 | 1118 | 1153 | 1292 => Kind::Row,
        // A table or a column is missing, or its pages are corrupt.
        1146 | 1054 | 1932 | 1034 | 1712 | 1194 | 1195 | 1877 => Kind::Corrupt,
        // Read-only, disk full, too many connections, missing permissions, and bugs such as a statement that does not parse.
        // Nothing was done, and a later attempt or another connection may succeed.
        _ => Kind::Unavailable,
    }
}

/// A corrupt row: tally cannot have written it. The caller adds the key if the row is at hand.
pub(super) fn damaged(table: &'static str, what: &str) -> StoreError {
    StoreError::CorruptRow(Box::new(CorruptRow { table, key: String::new(), what: what.into() }))
}

/// A corrupt value that the whole store depends on.
pub(super) fn corrupt(table: &str, what: &str) -> StoreError {
    StoreError::Corrupt(format!("{table}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_fault_asks_for_the_right_reaction() {
        let rows = [
            (1213, "conflict"),
            (1205, "conflict"),
            (1062, "conflict"),
            (1048, "conflict"),
            (1406, "row"),
            (1264, "row"),
            (3819, "row"),
            (4025, "row"),
            (1040, "away"),
            (1203, "away"),
            (1290, "away"),
            (1836, "away"),
            (1021, "away"),
            (1114, "away"),
            (1045, "away"),
            (1064, "away"),
            (1146, "corrupt"),
        ];
        for (code, wanted) in rows {
            let fault = Fault::Refused { code, text: String::new(), answered: 0 };
            let got = match StoreError::from(fault) {
                StoreError::Conflict(_) => "conflict",
                StoreError::Row(_) => "row",
                StoreError::Unavailable(_) => "away",
                StoreError::Corrupt(_) => "corrupt",
                other => panic!("{other:?}"),
            };
            assert_eq!(got, wanted, "{code}");
        }
        assert!(matches!(StoreError::from(Fault::Lost("x".into())), StoreError::Unavailable(_)));
    }
}
