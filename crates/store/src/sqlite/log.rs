//! SQLite's write-ahead log: looking at it and flushing it into its file.

use crate::StoreError;
use rusqlite::Connection;

/// Only looks.
pub(super) const LOOK: &str = "PRAGMA wal_checkpoint(NOOP)";
/// Flushes what no reader and no writer is in the way of.
pub(super) const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Flushes everything and lets the log start over, waiting for others.
pub(super) const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";
/// The same, and empties the file of the log.
pub(super) const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// What SQLite says of the log, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Log {
    /// Whether the checkpoint was kept from doing all that it should.
    pub(super) busy: bool,
    /// Pages in it.
    pub(super) pages: u64,
    /// Pages of it that are flushed.
    pub(super) flushed: u64,
}

/// Runs one of the above.
pub(super) fn checkpoint(connection: &Connection, how: &str) -> Result<Log, StoreError> {
    let log = connection.prepare_cached(how)?.query_row([], |row| {
        let pages = |column: usize| -> rusqlite::Result<u64> {
            // Minus one where there is no log yet.
            Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
        };
        Ok(Log { busy: row.get::<_, i64>(0)? != 0, pages: pages(1)?, flushed: pages(2)? })
    })?;
    Ok(Log { flushed: log.flushed.min(log.pages), ..log })
}
