//! The tables `parts`, `blocks` and `deleted_parts`: periods, and the order of closed ones.

use super::check::{count, part as check_part};
use super::connect::Flavour;
use super::row::{Answers, Fields};
use super::text::{Row, Script};
use crate::StoreError;
use crate::plan::{Block, BlockKey, BoardNo, Gone, Part, PartKey, PartRow};
use tally_rules::Micros;
use tally_rules::period::Span;

/// Periods of a board, whose number follows.
pub(super) const SELECT: &str =
    "SELECT part, rule, `starts`, `ends`, closed, version, stale, total FROM parts WHERE board = ";

/// Asks for every period of a board.
pub(super) fn select(board: BoardNo) -> Script {
    let mut script = Script::default();
    script.sql(SELECT).number(board.0).sql(" ORDER BY part").end();
    script
}

/// The answer.
pub(super) fn read(answers: &mut Answers) -> Result<Vec<PartRow>, StoreError> {
    let mut found = Vec::new();
    answers.each(1, "parts", |row| {
        found.push(decode(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// The next columns.
pub(super) fn decode(row: &mut Fields<'_>) -> Result<PartRow, StoreError> {
    Ok(PartRow {
        part: Part(row.number()?),
        rule: row.small()?,
        span: Span { start: Micros(row.signed()?), end: Micros(row.signed()?) },
        closed: row.truth()?,
        version: row.small()?,
        stale: row.truth()?,
        total: row.number()?,
    })
}

/// The next columns.
pub(super) fn decode_block(row: &mut Fields<'_>) -> Result<Block, StoreError> {
    Ok(Block { distinct_better: row.number()?, entries: row.bytes()?.to_vec() })
}

/// Asks for one block.
pub(super) fn select_block(key: &BlockKey) -> Script {
    let mut script = Script::default();
    script.sql("SELECT distinct_better, entries FROM blocks WHERE board = ").number(key.part.board.0);
    script.sql(" AND part = ").number(key.part.part.0).sql(" AND version = ").number(key.version);
    script.sql(" AND block = ").number(key.block).end();
    script
}

/// The answer.
pub(super) fn read_block(mut answers: Answers) -> Result<Option<Block>, StoreError> {
    let mut found = None;
    answers.each(1, "blocks", |row| {
        found = Some(decode_block(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// What no row can hold.
pub(super) fn check(key: PartKey, row: Option<&PartRow>) -> Result<(), StoreError> {
    check_part(key.part)?;
    let Some(row) = row else { return Ok(()) };
    if row.span.end <= row.span.start {
        return Err(StoreError::Row("parts: a period ends before it starts".into()));
    }
    count("parts", row.total)
}

/// What no row can hold.
pub(super) fn check_block(key: &BlockKey, block: &Block) -> Result<(), StoreError> {
    check_part(key.part.part)?;
    count("blocks", key.block)?;
    count("blocks", block.distinct_better)
}

fn put_key(row: &mut Row<'_>, key: &PartKey) {
    row.number(key.board.0).number(key.part.0);
}

/// Writes and removes periods.
pub(super) fn write(script: &mut Script, rows: &[(PartKey, Option<PartRow>)], flavour: Flavour) {
    let tail = |script: &mut Script| {
        flavour.replace(script, &["rule", "`starts`", "`ends`", "closed", "version", "stale", "total"])
    };
    let head =
        "INSERT INTO parts (board, part, rule, `starts`, `ends`, closed, version, stale, total) VALUES ";
    let there = rows.iter().filter_map(|(key, row)| Some((key, row.as_ref()?)));
    script.upserts(head, there, tail, |row, (key, part)| {
        put_key(row, key);
        row.number(part.rule).signed(part.span.start.0).signed(part.span.end.0);
        row.number(u8::from(part.closed))
            .number(part.version)
            .number(u8::from(part.stale))
            .number(part.total);
    });
    let removed = rows.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| key);
    script.keys("DELETE FROM parts WHERE (board, part) IN (", removed, ")", put_key);
}

/// Writes blocks.
pub(super) fn write_blocks(script: &mut Script, rows: &[(BlockKey, Block)], flavour: Flavour) {
    let tail = |script: &mut Script| flavour.replace(script, &["distinct_better", "entries"]);
    let head = "INSERT INTO blocks (board, part, version, block, distinct_better, entries) VALUES ";
    script.upserts(head, rows, tail, |row, (key, block)| {
        put_key(row, &key.part);
        row.number(key.version).number(key.block).number(block.distinct_better).bytes(&block.entries);
    });
}

/// Leaves parts and blocks to the purge.
pub(super) fn write_gone(script: &mut Script, rows: &[Gone]) {
    let head = "INSERT INTO deleted_parts (board, part, version) VALUES ";
    script.rows(head, rows, " ON DUPLICATE KEY UPDATE board = deleted_parts.board", |row, gone| {
        let (part, version) = match gone {
            Gone::Part(part) => (part, -1),
            Gone::Blocks(part, version) => (part, i64::from(*version)),
        };
        put_key(row, part);
        row.signed(version);
    });
}
