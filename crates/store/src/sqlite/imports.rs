//! The table `imports`: the position of each imported file in its board.

use super::fault::damaged;
use super::table::{Rows, Table};
use crate::codec::{Input, put_number};
use crate::plan::BoardNo;
use crate::{ImportKey, ImportRow, StoreError};
use rusqlite::{Connection, Row, params};

pub(super) const GET: &str =
    "SELECT lines, taken, refused, finished FROM imports WHERE board = ?1 AND digest = ?2";
pub(super) const PUT: &str = "REPLACE INTO imports (board, digest, lines, taken, refused, finished) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(super) const REMOVE: &str = "DELETE FROM imports WHERE board = ?1 AND digest = ?2";

/// The progress of one import.
pub(super) fn get(connection: &Connection, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![key.board.0, key.digest])?;
    rows.next()?.map(decode).transpose()
}

/// The table `imports` for the journal.
pub(super) struct Imports;

impl Table for Imports {
    const TAG: u8 = 2;
    type Key = ImportKey;
    type Value = ImportRow;

    fn check(_key: &ImportKey, value: Option<&ImportRow>) -> Result<(), StoreError> {
        let counts = value.into_iter().flat_map(|row| [row.lines, row.taken, row.refused]);
        counts.map(encode).try_for_each(|count| count.map(drop))
    }

    fn put_key(key: &ImportKey, out: &mut Vec<u8>) {
        put_number(key.board.0.into(), out);
        out.extend_from_slice(&key.digest);
    }

    fn take_key(input: &mut Input<'_>) -> Option<ImportKey> {
        Some(ImportKey { board: BoardNo(input.small()?), digest: input.fixed()? })
    }

    fn put_value(value: &ImportRow, out: &mut Vec<u8>) {
        for count in [value.lines, value.taken, value.refused] {
            put_number(count, out);
        }
        out.push(value.finished.into());
    }

    fn take_value(input: &mut Input<'_>) -> Option<ImportRow> {
        let (lines, taken, refused) = (input.number()?, input.number()?, input.number()?);
        Some(ImportRow { lines, taken, refused, finished: input.boolean()? })
    }

    fn heap_bytes(_key: &ImportKey, _value: Option<&ImportRow>) -> usize {
        0
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, row) in rows {
            match row {
                Some(row) => connection.prepare_cached(PUT)?.execute(params![
                    key.board.0,
                    key.digest,
                    encode(row.lines)?,
                    encode(row.taken)?,
                    encode(row.refused)?,
                    row.finished
                ])?,
                None => connection.prepare_cached(REMOVE)?.execute(params![key.board.0, key.digest])?,
            };
        }
        Ok(())
    }
}

fn encode(count: u64) -> Result<i64, StoreError> {
    i64::try_from(count).map_err(|_| StoreError::Row(format!("imports: {count} is more than can be counted")))
}

pub(super) fn decode(row: &Row<'_>) -> Result<ImportRow, StoreError> {
    let count = |column: usize| -> Result<u64, StoreError> {
        u64::try_from(row.get::<_, i64>(column)?).map_err(|_| damaged("imports", "a negative count"))
    };
    let finished = match row.get::<_, i64>(3)? {
        0 => false,
        1 => true,
        _ => return Err(damaged("imports", "`finished` is neither 0 nor 1")),
    };
    Ok(ImportRow { lines: count(0)?, taken: count(1)?, refused: count(2)?, finished })
}
