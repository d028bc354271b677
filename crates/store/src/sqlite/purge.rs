//! Purges rows of deleted boards and windows, in bounded steps.
//!
//! Deleting a board is one short transaction for any size of the board. Its number waits in `deleted_boards`, and its rows
//! are deleted in steps between other transactions. The number is deleted with the last of its rows.

use super::boards::Boards;
use super::bound;
use super::events;
use super::fault::damaged;
use super::memtable::Memtables;
use super::state::Shared;
use super::windows::{Deleted, DeletedKey, encode};
use crate::codec::events::topic_bytes;
use crate::events::Topic;
use crate::{BoardNo, StoreError, WindowKey};
use rusqlite::{Connection, OptionalExtension, params};
use std::ops::Bound;

pub(super) const FIRST: &str = "SELECT no FROM deleted_boards ORDER BY no LIMIT 1";
pub(super) const SCORES: &str = "DELETE FROM scores WHERE (board, part, player) IN \
     (SELECT board, part, player FROM scores WHERE board = ?1 ORDER BY part, player LIMIT ?2)";
pub(super) const IMPORTS: &str = "DELETE FROM imports WHERE (board, digest) IN \
     (SELECT board, digest FROM imports WHERE board = ?1 ORDER BY digest LIMIT ?2)";
pub(super) const BANS: &str = "DELETE FROM bans WHERE (board, player) IN \
     (SELECT board, player FROM bans WHERE board = ?1 ORDER BY player LIMIT ?2)";
pub(super) const WINDOWS: &str = "DELETE FROM parts WHERE (board, part) IN \
     (SELECT board, part FROM parts WHERE board = ?1 ORDER BY part LIMIT ?2)";
pub(super) const BLOCKS: &str = "DELETE FROM blocks WHERE (board, part, version, block) IN \
     (SELECT board, part, version, block FROM blocks WHERE board = ?1 ORDER BY part, version, block LIMIT ?2)";
pub(super) const EVENTS: &str = "DELETE FROM events WHERE (topic, number) IN \
     (SELECT topic, number FROM events WHERE topic = ?1 ORDER BY number LIMIT ?2)";
pub(super) const DONE: &str = "DELETE FROM deleted_boards WHERE no = ?1";

pub(super) const FIRST_WINDOW: &str =
    "SELECT board, part, version FROM deleted_parts ORDER BY board, part, version LIMIT 1";
pub(super) const FIRST_OF_WINDOW: &str = "SELECT board, part, version FROM deleted_parts \
     WHERE board = ?1 AND part = ?2 ORDER BY board, part, version LIMIT 1";
pub(super) const WINDOW_SCORES: &str = "DELETE FROM scores WHERE (board, part, player) IN \
     (SELECT board, part, player FROM scores WHERE board = ?1 AND part = ?2 ORDER BY player LIMIT ?3)";
pub(super) const WINDOW_BLOCKS: &str = "DELETE FROM blocks WHERE (board, part, version, block) IN \
     (SELECT board, part, version, block FROM blocks WHERE board = ?1 AND part = ?2 ORDER BY version, block LIMIT ?3)";
pub(super) const VERSION_BLOCKS: &str = "DELETE FROM blocks WHERE (board, part, version, block) IN \
     (SELECT board, part, version, block FROM blocks WHERE board = ?1 AND part = ?2 AND version = ?4 \
     ORDER BY block LIMIT ?3)";
pub(super) const WINDOW_DONE: &str =
    "DELETE FROM deleted_parts WHERE board = ?1 AND part = ?2 AND version = ?3";

/// Deletes at most `limit` rows. Returns their number.
pub(super) fn some(shared: &Shared, limit: usize) -> Result<usize, StoreError> {
    flush_deleted(shared)?;
    shared.write_tables(|tables| from_tables(tables, bound(limit)))
}

/// The windows of `windows` that have rows to purge.
pub(super) fn unpurged(shared: &Shared, windows: &[WindowKey]) -> Result<Vec<WindowKey>, StoreError> {
    let in_memory = |memtables: &Memtables| -> Vec<bool> {
        let waits = |window: &WindowKey| {
            let from = Bound::Included(DeletedKey::first(*window));
            !memtables.range::<Deleted>(from, |key| key.window == *window, 1).0.is_empty()
        };
        windows.iter().map(waits).collect()
    };
    shared.read(in_memory, |waits, tables| {
        let mut left = Vec::new();
        for (window, waits) in windows.iter().zip(waits) {
            if waits || first(tables, Some(*window))?.is_some() {
                left.push(*window);
            }
        }
        Ok(left)
    })
}

/// Deletes at most `limit` rows of one window. Returns whether nothing of it is left.
pub(super) fn window(shared: &Shared, window: WindowKey, limit: usize) -> Result<bool, StoreError> {
    flush_deleted(shared)?;
    shared.write_tables(|tables| {
        of_windows(tables, Some(window), bound(limit))?;
        Ok(first(tables, Some(window))?.is_none())
    })
}

/// Flushes waiting deletions. The last rows of a deleted board precede its deletion, so they are in the tables when it is.
fn flush_deleted(shared: &Shared) -> Result<(), StoreError> {
    let waits = shared.memtables().each().any(|memtable| {
        !memtable.layer::<Deleted>().rows().is_empty()
            || memtable.layer::<Boards>().rows().values().any(Option::is_none)
    });
    if waits { shared.flushing.flush_now(shared) } else { Ok(()) }
}

fn from_tables(connection: &Connection, limit: i64) -> Result<usize, StoreError> {
    let deleted = of_boards(connection, limit)?;
    let left = limit - deleted.cast_signed() as i64;
    Ok(deleted + of_windows(connection, None, left)?)
}

/// Deletes every row of all deleted windows.
pub(super) fn windows(connection: &Connection) -> Result<(), StoreError> {
    of_windows(connection, None, i64::MAX).map(drop)
}

/// The first row of `deleted_parts`, of all or of one window: board, window and version.
fn first(connection: &Connection, only: Option<WindowKey>) -> Result<Option<(i64, i64, i64)>, StoreError> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let found = match only {
        None => connection.prepare_cached(FIRST_WINDOW)?.query_row([], read),
        Some(WindowKey { board, window }) => {
            connection.prepare_cached(FIRST_OF_WINDOW)?.query_row(params![board.0, encode(window)?], read)
        }
    };
    Ok(found.optional()?)
}

fn of_windows(connection: &Connection, only: Option<WindowKey>, mut left: i64) -> Result<usize, StoreError> {
    let mut deleted = 0;
    while left > 0 {
        let Some((board, window, version)) = first(connection, only)? else { break };
        let mut run = |sql: &str, version: Option<i64>| -> Result<(), StoreError> {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = match version {
                Some(version) => statement.execute(params![board, window, left, version])?,
                None => statement.execute(params![board, window, left])?,
            };
            deleted += rows;
            left -= rows.cast_signed() as i64;
            Ok(())
        };
        if version < 0 {
            run(WINDOW_SCORES, None)?;
            run(WINDOW_BLOCKS, None)?;
        } else {
            run(VERSION_BLOCKS, Some(version))?;
        }
        if left > 0 {
            connection.prepare_cached(WINDOW_DONE)?.execute(params![board, window, version])?;
        }
    }
    Ok(deleted)
}

fn of_boards(connection: &Connection, limit: i64) -> Result<usize, StoreError> {
    let mut left = limit;
    let mut deleted = 0;
    while left > 0 {
        let first = connection.prepare_cached(FIRST)?.query_row([], |row| row.get(0)).optional()?;
        let Some(board): Option<i64> = first else { break };
        for sql in [SCORES, IMPORTS, BANS, WINDOWS, BLOCKS] {
            let rows = connection.prepare_cached(sql)?.execute(params![board, left])?;
            deleted += rows;
            left -= rows.cast_signed() as i64;
        }
        let no = u32::try_from(board).map_err(|_| damaged("deleted_boards", "a number that no board has"))?;
        let topic = topic_bytes(Topic::Board(BoardNo(no)));
        let rows = connection.prepare_cached(EVENTS)?.execute(params![topic, left])?;
        deleted += rows;
        left -= rows.cast_signed() as i64;
        // A remaining limit means that the board has no rows left.
        if left > 0 {
            connection.prepare_cached(events::REMOVE_LAST)?.execute(params![topic])?;
            connection.prepare_cached(DONE)?.execute(params![board])?;
        }
    }
    Ok(deleted)
}
