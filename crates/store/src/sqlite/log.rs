//! SQLite's write-ahead log: its state, and its checkpoints.

use crate::StoreError;
use rusqlite::Connection;

/// Only reads the state.
pub(super) const NOOP: &str = "PRAGMA wal_checkpoint(NOOP)";
/// Flushes the pages that no reader or writer blocks.
pub(super) const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Flushes everything and lets the log start over; waits for others.
pub(super) const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";
/// Like [`RESTART`], and truncates the file of the log.
pub(super) const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// The state of the log, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Log {
    /// Whether the checkpoint was blocked from completing.
    pub(super) busy: bool,
    /// The number of its pages.
    pub(super) pages: u64,
    /// The number of its flushed pages.
    pub(super) flushed: u64,
}

/// Runs one of the above.
pub(super) fn checkpoint(connection: &Connection, how: &str) -> Result<Log, StoreError> {
    let log = connection.prepare_cached(how)?.query_row([], |row| {
        let pages = |column: usize| -> rusqlite::Result<u64> {
            // Minus one if there is no log yet.
            Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
        };
        Ok(Log { busy: row.get::<_, i64>(0)? != 0, pages: pages(1)?, flushed: pages(2)? })
    })?;
    Ok(Log { flushed: log.flushed.min(log.pages), ..log })
}
