//! The tables `parts`, `blocks` and `deleted_parts`: periods, and the archives of closed ones.

use super::check::{count, window as check_part};
use super::row::{Fields, ResultSets};
use super::table::Table;
use super::text::{RowScript, Script};
use crate::StoreError;
use crate::plan::{BlockKey, BoardNo, Garbage, StoredBlock, Window, WindowKey, WindowRow};
use tally_rules::Micros;
use tally_rules::period::TimeSpan;

/// Reads the periods of a board, whose number follows.
pub(super) const SELECT: &str =
    "SELECT part, rule, `starts`, `ends`, closed, version, stale, total FROM parts WHERE board = ";

pub(super) struct Windows;

impl Table for Windows {
    const NAME: &'static str = "parts";
    const KEY: &'static str = "(board, part)";
    const READ: &'static str = "board, part, rule, `starts`, `ends`, closed, version, stale, total";
    const REPLACED: &'static [&'static str] =
        &["rule", "`starts`", "`ends`", "closed", "version", "stale", "total"];
    const BLANK: &'static str = "";
    type Key = WindowKey;
    type Value = WindowRow;

    fn put_key(row: &mut RowScript<'_>, key: &WindowKey) {
        put_key(row, key);
    }

    fn put(row: &mut RowScript<'_>, window: &WindowRow) {
        row.number(window.rule).signed(window.span.start.0).signed(window.span.end.0);
        row.number(u8::from(window.closed)).number(window.version);
        row.number(u8::from(window.stale)).number(window.total);
    }

    fn decode(row: &mut Fields<'_>) -> Result<(WindowKey, WindowRow), StoreError> {
        let board = BoardNo(row.small()?);
        let window = decode(row)?;
        Ok((WindowKey { board, window: window.window }, window))
    }
}

pub(super) struct Blocks;

impl Table for Blocks {
    const NAME: &'static str = "blocks";
    const KEY: &'static str = "(board, part, version, block)";
    const READ: &'static str = "board, part, version, block, distinct_better, entries";
    const REPLACED: &'static [&'static str] = &["distinct_better", "entries"];
    const BLANK: &'static str = "";
    type Key = BlockKey;
    type Value = StoredBlock;

    fn put_key(row: &mut RowScript<'_>, key: &BlockKey) {
        put_key(row, &key.window);
        row.number(key.version).number(key.block);
    }

    fn put(row: &mut RowScript<'_>, block: &StoredBlock) {
        row.number(block.distinct_better).bytes(&block.entries);
    }

    fn decode(row: &mut Fields<'_>) -> Result<(BlockKey, StoredBlock), StoreError> {
        let key = BlockKey { window: key(row)?, version: row.small()?, block: row.number()? };
        Ok((key, decode_block(row)?))
    }
}

/// Queries every period of a board.
pub(super) fn select(board: BoardNo) -> Script {
    let mut script = Script::default();
    script.sql(SELECT).number(board.0).sql(" ORDER BY part").end();
    script
}

/// Reads the answer of [`select`].
pub(super) fn read(results: &mut ResultSets) -> Result<Vec<WindowRow>, StoreError> {
    results.list(1, "parts", decode)
}

/// Reads the next two columns as the key of a window.
pub(super) fn key(row: &mut Fields<'_>) -> Result<WindowKey, StoreError> {
    Ok(WindowKey { board: BoardNo(row.small()?), window: Window(row.number()?) })
}

fn decode(row: &mut Fields<'_>) -> Result<WindowRow, StoreError> {
    Ok(WindowRow {
        window: Window(row.number()?),
        rule: row.small()?,
        span: TimeSpan { start: Micros(row.signed()?), end: Micros(row.signed()?) },
        closed: row.boolean()?,
        version: row.small()?,
        stale: row.boolean()?,
        total: row.number()?,
    })
}

/// Reads the next columns.
pub(super) fn decode_block(row: &mut Fields<'_>) -> Result<StoredBlock, StoreError> {
    Ok(StoredBlock { distinct_better: row.number()?, entries: row.bytes()?.to_vec() })
}

/// Queries one block.
pub(super) fn select_block(key: &BlockKey) -> Script {
    let mut script = Script::default();
    script.sql("SELECT distinct_better, entries FROM blocks WHERE board = ").number(key.window.board.0);
    script.sql(" AND part = ").number(key.window.window.0).sql(" AND version = ").number(key.version);
    script.sql(" AND block = ").number(key.block).end();
    script
}

/// Refuses values that no row can hold.
pub(super) fn check(key: WindowKey, row: Option<&WindowRow>) -> Result<(), StoreError> {
    check_part(key.window)?;
    let Some(row) = row else { return Ok(()) };
    if row.span.end <= row.span.start {
        return Err(StoreError::Row("parts: a period ends before it starts".into()));
    }
    count("parts", row.total)
}

/// Refuses values that no row can hold.
pub(super) fn check_block(key: &BlockKey, block: &StoredBlock) -> Result<(), StoreError> {
    check_part(key.window.window)?;
    count("blocks", key.block)?;
    count("blocks", block.distinct_better)
}

/// Writes the board and the number of a period.
pub(super) fn put_key(row: &mut RowScript<'_>, key: &WindowKey) {
    row.number(key.board.0).number(key.window.0);
}

/// Marks windows and blocks for the purge.
pub(super) fn write_gone(script: &mut Script, rows: &[Garbage]) {
    let head = "INSERT INTO deleted_parts (board, part, version) VALUES ";
    script.rows(head, rows, " ON DUPLICATE KEY UPDATE board = deleted_parts.board", |row, gone| {
        let (window, version) = match gone {
            Garbage::Window(window) => (window, -1),
            Garbage::Blocks(window, version) => (window, i64::from(*version)),
        };
        put_key(row, window);
        row.signed(version);
    });
}
