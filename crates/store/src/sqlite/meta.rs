//! The table `meta`: small named values, the number of the next board, and the flush position.
//!
//! Names that begin with `store.` belong to the store and are refused to callers.

use super::fault::corrupt;
use crate::{BoardNo, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

const OWN: &str = "store.";
const NEXT_BOARD: &str = "store.next_board";
const FLUSHED: &str = "store.folded";
const FLUSHING: &str = "store.folding";

pub(super) const GET: &str = "SELECT value FROM meta WHERE name = ?1";
pub(super) const PUT: &str = "REPLACE INTO meta (name, value) VALUES (?1, ?2)";

pub(super) fn get(connection: &Connection, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(connection.prepare_cached(GET)?.query_row(params![name], |row| row.get(0)).optional()?)
}

/// Stores a value of the caller.
pub(super) fn put(connection: &Connection, name: &str, value: &[u8]) -> Result<(), StoreError> {
    if name.starts_with(OWN) {
        return Err(StoreError::Row(format!("the name `{name}` is kept for the store itself")));
    }
    put_own(connection, name, value)
}

/// The number of the next new board.
pub(super) fn next_board(connection: &Connection) -> Result<BoardNo, StoreError> {
    let next = number(connection, NEXT_BOARD, "the next board")?;
    u32::try_from(next).map(BoardNo).map_err(|_| corrupt("meta", "the number for the next board is invalid"))
}

/// Stores the number of the next new board.
pub(super) fn set_next_board(connection: &Connection, next: BoardNo) -> Result<(), StoreError> {
    put_own(connection, NEXT_BOARD, next.0.to_string().as_bytes())
}

/// The batch of the journal up to which all rows are in the tables.
pub(super) fn flushed(connection: &Connection) -> Result<u64, StoreError> {
    number(connection, FLUSHED, "the last flushed batch")
}

/// The batch up to which some rows may be in the tables: more than [`flushed`] during a flush.
pub(super) fn flushing(connection: &Connection) -> Result<u64, StoreError> {
    number(connection, FLUSHING, "the last batch of the flush")
}

/// Stores it before the first row of a flush, in its transaction.
pub(super) fn set_flushing(connection: &Connection, batch: u64) -> Result<(), StoreError> {
    put_own(connection, FLUSHING, batch.to_string().as_bytes())
}

/// Stores it with the last row of a flush, in its transaction.
pub(super) fn set_flushed(connection: &Connection, batch: u64) -> Result<(), StoreError> {
    put_own(connection, FLUSHED, batch.to_string().as_bytes())
}

fn number(connection: &Connection, name: &str, of: &str) -> Result<u64, StoreError> {
    let value = get(connection, name)?.ok_or_else(|| corrupt("meta", &format!("no number for {of}")))?;
    let number = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| corrupt("meta", &format!("the number for {of} is invalid")))
}

/// Stores a value of the store or of a caller.
pub(super) fn put_own(connection: &Connection, name: &str, value: &[u8]) -> Result<(), StoreError> {
    connection.prepare_cached(PUT)?.execute(params![name, value])?;
    Ok(())
}
