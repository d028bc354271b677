//! The tables `parts`, `blocks` and `deleted_parts`: periods, and the order of closed ones.

use super::fault::corrupt;
use crate::StoreError;
use crate::plan::{Block, BlockKey, BoardNo, Gone, Part, PartKey, PartRow};
use rusqlite::{Connection, Row, params};
use tally_rules::Micros;
use tally_rules::period::Span;

pub(super) const OF_BOARD: &str = "SELECT part, rule, starts, ends, closed, version, stale, total FROM parts \
     WHERE board = ?1 ORDER BY part";
pub(super) const PUT: &str = "REPLACE INTO parts (board, part, rule, starts, ends, closed, version, stale, total) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
pub(super) const REMOVE: &str = "DELETE FROM parts WHERE board = ?1 AND part = ?2";
pub(super) const BLOCK: &str = "SELECT distinct_better, entries FROM blocks \
     WHERE board = ?1 AND part = ?2 AND version = ?3 AND block = ?4";
pub(super) const PUT_BLOCK: &str = "REPLACE INTO blocks (board, part, version, block, distinct_better, entries) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(super) const MARK_DELETED: &str = "REPLACE INTO deleted_parts (board, part, version) VALUES (?1, ?2, ?3)";

/// Every part of a board that has a row.
pub(super) fn of_board(connection: &Connection, board: BoardNo) -> Result<Vec<PartRow>, StoreError> {
    let mut statement = connection.prepare_cached(OF_BOARD)?;
    let mut rows = statement.query(params![board.0])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode(row)?);
    }
    Ok(found)
}

/// Writes and removes parts.
pub(super) fn store(connection: &Connection, parts: &[(PartKey, Option<PartRow>)]) -> Result<(), StoreError> {
    for (key, row) in parts {
        match row {
            Some(row) => connection.prepare_cached(PUT)?.execute(params![
                key.board.0,
                encode(key.part)?,
                row.rule,
                row.span.start.0,
                row.span.end.0,
                row.closed,
                row.version,
                row.stale,
                count(row.total)?
            ])?,
            None => connection.prepare_cached(REMOVE)?.execute(params![key.board.0, encode(key.part)?])?,
        };
    }
    Ok(())
}

/// One block of a closed part's order.
pub(super) fn block(connection: &Connection, key: &BlockKey) -> Result<Option<Block>, StoreError> {
    let mut statement = connection.prepare_cached(BLOCK)?;
    let of = &key.part;
    let mut rows = statement.query(params![of.board.0, encode(of.part)?, key.version, count(key.block)?])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(Block { distinct_better: number(row, 0)?, entries: row.get(1)? }))
}

/// Writes blocks.
pub(super) fn store_blocks(connection: &Connection, blocks: &[(BlockKey, Block)]) -> Result<(), StoreError> {
    for (key, block) in blocks {
        connection.prepare_cached(PUT_BLOCK)?.execute(params![
            key.part.board.0,
            encode(key.part.part)?,
            key.version,
            count(key.block)?,
            count(block.distinct_better)?,
            block.entries
        ])?;
    }
    Ok(())
}

/// Remembers what is to be purged.
pub(super) fn mark_gone(connection: &Connection, gone: &[Gone]) -> Result<(), StoreError> {
    for one in gone {
        let (key, version) = match one {
            Gone::Part(key) => (key, -1),
            Gone::Blocks(key, version) => (key, i64::from(*version)),
        };
        connection.prepare_cached(MARK_DELETED)?.execute(params![key.board.0, encode(key.part)?, version])?;
    }
    Ok(())
}

/// Part numbers are below 2^63: a rule's number and a second of the years that have names.
pub(super) fn encode(part: Part) -> Result<i64, StoreError> {
    i64::try_from(part.0).map_err(|_| StoreError::Row(format!("parts: {} is no part", part.0)))
}

fn count(count: u64) -> Result<i64, StoreError> {
    i64::try_from(count).map_err(|_| StoreError::Row(format!("parts: {count} is more than can be counted")))
}

fn number(row: &Row<'_>, column: usize) -> Result<u64, StoreError> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|_| corrupt("parts", "a negative count"))
}

fn truth(row: &Row<'_>, column: usize) -> Result<bool, StoreError> {
    match row.get::<_, i64>(column)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(corrupt("parts", "a truth is neither 0 nor 1")),
    }
}

fn decode(row: &Row<'_>) -> Result<PartRow, StoreError> {
    Ok(PartRow {
        part: Part(number(row, 0)?),
        rule: row.get(1)?,
        span: Span { start: Micros(row.get(2)?), end: Micros(row.get(3)?) },
        closed: truth(row, 4)?,
        version: row.get(5)?,
        stale: truth(row, 6)?,
        total: number(row, 7)?,
    })
}
