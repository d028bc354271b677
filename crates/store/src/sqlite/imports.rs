//! The table `imports`: how far each file has come into its board.

use super::fault::corrupt;
use crate::{ImportKey, ImportRow, StoreError};
use rusqlite::{Connection, Row, params};

pub(super) const GET: &str =
    "SELECT lines, taken, refused, finished FROM imports WHERE board = ?1 AND digest = ?2";
pub(super) const PUT: &str = "REPLACE INTO imports (board, digest, lines, taken, refused, finished) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// The progress of one import.
pub(super) fn get(connection: &Connection, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![key.board.0, key.digest])?;
    rows.next()?.map(decode).transpose()
}

/// The progress of each import of a plan.
pub(super) fn load(
    connection: &Connection,
    keys: &[ImportKey],
) -> Result<Vec<Option<ImportRow>>, StoreError> {
    keys.iter().map(|key| get(connection, key)).collect()
}

/// Stores progress.
pub(super) fn store(connection: &Connection, imports: &[(ImportKey, ImportRow)]) -> Result<(), StoreError> {
    for (key, row) in imports {
        connection.prepare_cached(PUT)?.execute(params![
            key.board.0,
            key.digest,
            encode(row.lines)?,
            encode(row.taken)?,
            encode(row.refused)?,
            row.finished
        ])?;
    }
    Ok(())
}

fn encode(count: u64) -> Result<i64, StoreError> {
    i64::try_from(count).map_err(|_| StoreError::Row(format!("imports: {count} is more than can be counted")))
}

fn decode(row: &Row<'_>) -> Result<ImportRow, StoreError> {
    let count = |column: usize| -> Result<u64, StoreError> {
        u64::try_from(row.get::<_, i64>(column)?).map_err(|_| corrupt("imports", "a negative count"))
    };
    let finished = match row.get::<_, i64>(3)? {
        0 => false,
        1 => true,
        _ => return Err(corrupt("imports", "`finished` is neither 0 nor 1")),
    };
    Ok(ImportRow { lines: count(0)?, taken: count(1)?, refused: count(2)?, finished })
}
