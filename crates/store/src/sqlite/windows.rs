//! The tables `parts`, `blocks` and `deleted_parts`: periods, and the archives of closed ones.

use super::fault::damaged;
use super::table::{Rows, Table};
use crate::StoreError;
use crate::codec::windows::{put_window, take_window};
use crate::codec::{Input, put_bytes, put_number, put_signed};
use crate::plan::{BlockKey, BoardNo, Garbage, StoredBlock, Window, WindowKey, WindowRow};
use rusqlite::{Connection, Row, params};
use tally_rules::Micros;
use tally_rules::period::TimeSpan;

pub(super) const OF_BOARD: &str = "SELECT part, rule, starts, ends, closed, version, stale, total FROM parts \
     WHERE board = ?1 ORDER BY part";
pub(super) const PUT: &str = "REPLACE INTO parts (board, part, rule, starts, ends, closed, version, stale, total) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
pub(super) const REMOVE: &str = "DELETE FROM parts WHERE board = ?1 AND part = ?2";
pub(super) const BLOCK: &str = "SELECT distinct_better, entries FROM blocks \
     WHERE board = ?1 AND part = ?2 AND version = ?3 AND block = ?4";
pub(super) const PUT_BLOCK: &str = "REPLACE INTO blocks (board, part, version, block, distinct_better, entries) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(super) const REMOVE_BLOCK: &str =
    "DELETE FROM blocks WHERE board = ?1 AND part = ?2 AND version = ?3 AND block = ?4";
pub(super) const MARK_DELETED: &str = "REPLACE INTO deleted_parts (board, part, version) VALUES (?1, ?2, ?3)";

/// Every stored window of a board.
pub(super) fn of_board(connection: &Connection, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
    let mut statement = connection.prepare_cached(OF_BOARD)?;
    let mut rows = statement.query(params![board.0])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode(row)?);
    }
    Ok(found)
}

/// One archive block of a closed window.
pub(super) fn block(connection: &Connection, key: &BlockKey) -> Result<Option<StoredBlock>, StoreError> {
    let mut statement = connection.prepare_cached(BLOCK)?;
    let of = &key.window;
    let mut rows =
        statement.query(params![of.board.0, encode(of.window)?, key.version, count(key.block)?])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    decode_block(row).map(Some)
}

/// Decodes the columns from the first one on.
pub(super) fn decode_block(row: &Row<'_>) -> Result<StoredBlock, StoreError> {
    Ok(StoredBlock { distinct_better: number(row, 0)?, entries: row.get(1)? })
}

/// The table `parts` for the journal.
pub(super) struct Windows;

impl Table for Windows {
    const TAG: u8 = 5;
    type Key = WindowKey;
    type Value = WindowRow;

    fn check(key: &WindowKey, value: Option<&WindowRow>) -> Result<(), StoreError> {
        encode(key.window)?;
        let Some(row) = value else { return Ok(()) };
        if row.span.end <= row.span.start {
            return Err(StoreError::Row("parts: a period ends before it starts".into()));
        }
        count(row.total).map(drop)
    }

    fn put_key(key: &WindowKey, out: &mut Vec<u8>) {
        put_number(key.board.0.into(), out);
        put_number(key.window.0, out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<WindowKey> {
        Some(WindowKey { board: BoardNo(input.small()?), window: Window(input.number()?) })
    }

    fn put_value(value: &WindowRow, out: &mut Vec<u8>) {
        put_window(value, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<WindowRow> {
        take_window(input)
    }

    fn heap_bytes(_key: &WindowKey, _value: Option<&WindowRow>) -> usize {
        0
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, row) in rows {
            match row {
                Some(row) => connection.prepare_cached(PUT)?.execute(params![
                    key.board.0,
                    encode(key.window)?,
                    row.rule,
                    row.span.start.0,
                    row.span.end.0,
                    row.closed,
                    row.version,
                    row.stale,
                    count(row.total)?
                ])?,
                None => {
                    connection.prepare_cached(REMOVE)?.execute(params![key.board.0, encode(key.window)?])?
                }
            };
        }
        Ok(())
    }
}

/// The table `blocks` for the journal.
pub(super) struct Blocks;

impl Table for Blocks {
    const TAG: u8 = 6;
    type Key = BlockKey;
    type Value = StoredBlock;

    fn check(key: &BlockKey, value: Option<&StoredBlock>) -> Result<(), StoreError> {
        encode(key.window.window)?;
        count(key.block)?;
        value.map_or(Ok(0), |block| count(block.distinct_better)).map(drop)
    }

    fn put_key(key: &BlockKey, out: &mut Vec<u8>) {
        Windows::put_key(&key.window, out);
        put_number(key.version.into(), out);
        put_number(key.block, out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<BlockKey> {
        let window = Windows::take_key(input)?;
        Some(BlockKey { window, version: input.small()?, block: input.number()? })
    }

    fn put_value(value: &StoredBlock, out: &mut Vec<u8>) {
        put_number(value.distinct_better, out);
        put_bytes(&value.entries, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<StoredBlock> {
        Some(StoredBlock { distinct_better: input.number()?, entries: input.bytes()?.to_vec() })
    }

    fn heap_bytes(_key: &BlockKey, value: Option<&StoredBlock>) -> usize {
        value.map_or(0, |block| block.entries.len())
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, block) in rows {
            let (board, window) = (key.window.board.0, encode(key.window.window)?);
            let number = count(key.block)?;
            match block {
                Some(block) => connection.prepare_cached(PUT_BLOCK)?.execute(params![
                    board,
                    window,
                    key.version,
                    number,
                    count(block.distinct_better)?,
                    block.entries
                ])?,
                None => connection.prepare_cached(REMOVE_BLOCK)?.execute(params![
                    board,
                    window,
                    key.version,
                    number
                ])?,
            };
        }
        Ok(())
    }
}

/// The table `deleted_parts` for the journal: what is to be purged. Only the purge removes a row.
pub(super) struct Deleted;

/// A window, and a version of its blocks or -1 for the whole window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeletedKey {
    pub(super) window: WindowKey,
    version: i64,
}

impl DeletedKey {
    /// The first possible key of a window.
    pub(super) fn first(window: WindowKey) -> Self {
        Self { window, version: -1 }
    }
}

impl From<Garbage> for DeletedKey {
    fn from(gone: Garbage) -> Self {
        match gone {
            Garbage::Window(window) => Self::first(window),
            Garbage::Blocks(window, version) => Self { window, version: version.into() },
        }
    }
}

impl From<DeletedKey> for Garbage {
    fn from(key: DeletedKey) -> Self {
        Self::of(key.window, key.version)
    }
}

impl Table for Deleted {
    const TAG: u8 = 7;
    type Key = DeletedKey;
    type Value = ();

    fn check(key: &DeletedKey, _value: Option<&()>) -> Result<(), StoreError> {
        encode(key.window.window).map(drop)
    }

    fn put_key(key: &DeletedKey, out: &mut Vec<u8>) {
        Windows::put_key(&key.window, out);
        put_signed(key.version, out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<DeletedKey> {
        Some(DeletedKey { window: Windows::take_key(input)?, version: input.signed()? })
    }

    fn put_value((): &(), _out: &mut Vec<u8>) {}

    fn take_value(_input: &mut Input<'_>) -> Option<()> {
        Some(())
    }

    fn heap_bytes(_key: &DeletedKey, _value: Option<&()>) -> usize {
        0
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, _) in rows {
            let window = encode(key.window.window)?;
            connection.prepare_cached(MARK_DELETED)?.execute(params![
                key.window.board.0,
                window,
                key.version
            ])?;
        }
        Ok(())
    }
}

/// Window numbers are below 2^63: a rule's number and a second of the years that have names.
pub(super) fn encode(window: Window) -> Result<i64, StoreError> {
    i64::try_from(window.0).map_err(|_| StoreError::Row(format!("parts: {} is no part", window.0)))
}

fn count(count: u64) -> Result<i64, StoreError> {
    i64::try_from(count).map_err(|_| StoreError::Row(format!("parts: {count} is more than can be counted")))
}

fn number(row: &Row<'_>, column: usize) -> Result<u64, StoreError> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|_| damaged("parts", "a negative count"))
}

fn boolean(row: &Row<'_>, column: usize) -> Result<bool, StoreError> {
    match row.get::<_, i64>(column)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(damaged("parts", "a flag is neither 0 nor 1")),
    }
}

/// Decodes the columns from the first one on.
pub(super) fn decode(row: &Row<'_>) -> Result<WindowRow, StoreError> {
    Ok(WindowRow {
        window: Window(number(row, 0)?),
        rule: row.get(1)?,
        span: TimeSpan { start: Micros(row.get(2)?), end: Micros(row.get(3)?) },
        closed: boolean(row, 4)?,
        version: row.get(5)?,
        stale: boolean(row, 6)?,
        total: number(row, 7)?,
    })
}
