//! The table `meta`: small values under names, and the number of the next board.
//!
//! Names that begin with `store.` are the store's own and refused to callers.

use super::fault::corrupt;
use crate::{BoardNo, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

const OWN: &str = "store.";
const NEXT_BOARD: &str = "store.next_board";

pub(super) const GET: &str = "SELECT value FROM meta WHERE name = ?1";
pub(super) const PUT: &str = "REPLACE INTO meta (name, value) VALUES (?1, ?2)";

/// A remembered value.
pub(super) fn get(connection: &Connection, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(connection.prepare_cached(GET)?.query_row(params![name], |row| row.get(0)).optional()?)
}

/// Remembers a value of the caller's.
pub(super) fn put(connection: &Connection, name: &str, value: &[u8]) -> Result<(), StoreError> {
    if name.starts_with(OWN) {
        return Err(StoreError::Row(format!("the name `{name}` is kept for the store itself")));
    }
    put_any(connection, name, value)
}

/// The number for the next new board.
pub(super) fn next_board(connection: &Connection) -> Result<BoardNo, StoreError> {
    let value =
        get(connection, NEXT_BOARD)?.ok_or_else(|| corrupt("meta", "no number for the next board"))?;
    let number = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
    number.map(BoardNo).ok_or_else(|| corrupt("meta", "the number for the next board is none"))
}

/// Says which number the next new board gets.
pub(super) fn set_next_board(connection: &Connection, next: BoardNo) -> Result<(), StoreError> {
    put_any(connection, NEXT_BOARD, next.0.to_string().as_bytes())
}

fn put_any(connection: &Connection, name: &str, value: &[u8]) -> Result<(), StoreError> {
    connection.prepare_cached(PUT)?.execute(params![name, value])?;
    Ok(())
}
