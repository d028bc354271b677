//! Rows of deleted boards, a few at a time.
//!
//! A board's deletion is one short transaction whatever its size; its number waits in `deleted_boards` and its rows go
//! in pieces between other transactions. The number is forgotten with the last of its rows.

use crate::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

pub(super) const FIRST: &str = "SELECT no FROM deleted_boards ORDER BY no LIMIT 1";
pub(super) const SCORES: &str = "DELETE FROM scores WHERE (board, part, player) IN \
     (SELECT board, part, player FROM scores WHERE board = ?1 ORDER BY part, player LIMIT ?2)";
pub(super) const IMPORTS: &str = "DELETE FROM imports WHERE (board, digest) IN \
     (SELECT board, digest FROM imports WHERE board = ?1 ORDER BY digest LIMIT ?2)";
pub(super) const BANS: &str = "DELETE FROM bans WHERE (board, player) IN \
     (SELECT board, player FROM bans WHERE board = ?1 ORDER BY player LIMIT ?2)";
pub(super) const DONE: &str = "DELETE FROM deleted_boards WHERE no = ?1";

/// Deletes at most `limit` rows; returns how many.
pub(super) fn some(connection: &Connection, limit: i64) -> Result<usize, StoreError> {
    let mut left = limit;
    let mut deleted = 0;
    while left > 0 {
        let first = connection.prepare_cached(FIRST)?.query_row([], |row| row.get(0)).optional()?;
        let Some(board): Option<i64> = first else { break };
        for sql in [SCORES, IMPORTS, BANS] {
            let rows = connection.prepare_cached(sql)?.execute(params![board, left])?;
            deleted += rows;
            left -= rows.cast_signed() as i64;
        }
        // What is left of the limit says that nothing is left of the board.
        if left > 0 {
            connection.prepare_cached(DONE)?.execute(params![board])?;
        }
    }
    Ok(deleted)
}
