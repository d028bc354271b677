//! The table `scores`: one record for each player of each part of each board.
//!
//! The table that rates depend on. A row is written with REPLACE: without a second index, trigger or foreign key SQLite
//! then descends the tree once and overwrites, where INSERT ... ON CONFLICT descends three times.

use super::fault::corrupt;
use super::parts::encode;
use crate::{BoardNo, Part, ScoreKey, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use tally_rules::{Micros, PlayerId, Record};

pub(super) const GET: &str =
    "SELECT score, subscore, at FROM scores WHERE board = ?1 AND part = ?2 AND player = ?3";
pub(super) const PUT: &str =
    "REPLACE INTO scores (board, part, player, score, subscore, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(super) const REMOVE: &str = "DELETE FROM scores WHERE board = ?1 AND part = ?2 AND player = ?3";
pub(super) const WALK: &str = "SELECT score, subscore, at, player FROM scores \
     WHERE board = ?1 AND part = ?2 AND player > ?3 ORDER BY player LIMIT ?4";
pub(super) const COUNT: &str = "SELECT count(*) FROM scores WHERE board = ?1 AND part = ?2";

/// The record of each key of a plan.
pub(super) fn load(connection: &Connection, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(GET)?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let mut rows = statement.query(params![key.board.0, encode(key.part)?, key.player.as_str()])?;
        found.push(rows.next()?.map(decode).transpose()?);
    }
    Ok(found)
}

/// Writes and removes records, in order of their keys: neighbours share a page.
pub(super) fn store(
    connection: &Connection,
    changes: &[(ScoreKey, Option<Record>)],
) -> Result<(), StoreError> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut put = connection.prepare_cached(PUT)?;
    for (key, record) in changes {
        let (board, part, player) = (key.board.0, encode(key.part)?, key.player.as_str());
        match record {
            Some(record) => {
                put.execute(params![board, part, player, record.score, record.subscore, record.at.0])?
            }
            None => connection.prepare_cached(REMOVE)?.execute(params![board, part, player])?,
        };
    }
    Ok(())
}

/// Walks a part in order of player bytes, see [`crate::Store::walk_scores`].
pub(super) fn walk(
    connection: &Connection,
    (board, part): (BoardNo, Part),
    after: Option<&PlayerId>,
    limit: i64,
    each: &mut dyn FnMut(PlayerId, Record),
) -> Result<usize, StoreError> {
    let mut statement = connection.prepare_cached(WALK)?;
    // No player's name is empty, so the empty one stands before all of them.
    let after = after.map_or("", PlayerId::as_str);
    let mut rows = statement.query(params![board.0, encode(part)?, after, limit])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let ValueRef::Text(bytes) = row.get_ref(3)? else {
            return Err(corrupt("scores", "a player that is not text"));
        };
        let text = std::str::from_utf8(bytes).map_err(|_| corrupt("scores", "a player that is not UTF-8"))?;
        let player =
            PlayerId::new(text).map_err(|bad| corrupt("scores", &format!("a player's name {}", bad.0)))?;
        each(player, decode(row)?);
        count += 1;
    }
    Ok(count)
}

/// How many records a part has.
pub(super) fn count(connection: &Connection, board: BoardNo, part: Part) -> Result<u64, StoreError> {
    let count: i64 =
        connection.prepare_cached(COUNT)?.query_row(params![board.0, encode(part)?], |row| row.get(0))?;
    u64::try_from(count).map_err(|_| corrupt("scores", "a negative count"))
}

fn decode(row: &Row<'_>) -> Result<Record, StoreError> {
    Ok(Record { score: row.get(0)?, subscore: row.get(1)?, at: Micros(row.get(2)?) })
}
