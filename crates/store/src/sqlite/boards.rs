//! The tables `boards`, `periods` and `deleted_boards`: what boards there are.
//!
//! Choices are stored under the names that users see, so the file can be read without this program. A deleted board
//! leaves `boards` at once, and with it its name is free; its rows elsewhere wait for `purge`.

use super::fault::corrupt;
use super::meta;
use crate::{BoardChange, BoardNo, BoardRow, StoreError};
use rusqlite::{Connection, Row, params};
use tally_rules::definition::{Order, Ranking, ScoreType, Subscore, Ties, Update};
use tally_rules::period::PeriodRule;
use tally_rules::{BoardId, Definition, Micros};

pub(super) const LIVE: &str = "SELECT 1 FROM boards WHERE no = ?1";
pub(super) const ALL: &str = "SELECT no, id, \"order\", \"update\", ranking, ties, score, subscore, all_time, \
     created_at, rules_given, implicit FROM boards ORDER BY no";
pub(super) const BY_NAME: &str = "SELECT no, id, \"order\", \"update\", ranking, ties, score, subscore, all_time, \
     created_at, rules_given, implicit FROM boards WHERE id = ?1";
pub(super) const CREATE: &str = "INSERT INTO boards (no, id, \"order\", \"update\", ranking, ties, score, subscore, \
     all_time, created_at, rules_given, implicit) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
pub(super) const REDEFINE: &str = "UPDATE boards SET \"order\" = ?2, \"update\" = ?3, ranking = ?4, ties = ?5, \
     score = ?6, subscore = ?7, all_time = ?8, rules_given = ?9, implicit = ?10 WHERE no = ?1";
pub(super) const DELETE: &str = "DELETE FROM boards WHERE no = ?1";
pub(super) const MARK_DELETED: &str = "INSERT INTO deleted_boards (no) VALUES (?1)";
pub(super) const PERIODS: &str = "SELECT name, schedule, time_zone, keep, grace_s, rule FROM periods \
     WHERE board = ?1 ORDER BY position";
pub(super) const CREATE_PERIOD: &str = "INSERT INTO periods (board, position, name, schedule, time_zone, keep, \
     grace_s, rule) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
pub(super) const DELETE_PERIODS: &str = "DELETE FROM periods WHERE board = ?1";

/// Whether each board is live.
pub(super) fn live(connection: &Connection, boards: &[BoardNo]) -> Result<Vec<bool>, StoreError> {
    boards
        .iter()
        .map(|board| Ok(connection.prepare_cached(LIVE)?.exists(params![board.0])?))
        .collect::<Result<_, StoreError>>()
}

/// Every live board, in order of number. The caller holds a transaction: periods are read board by board.
pub(super) fn all(connection: &Connection) -> Result<Vec<BoardRow>, StoreError> {
    let mut statement = connection.prepare_cached(ALL)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode(connection, row)?);
    }
    Ok(found)
}

/// The live board of each name.
pub(super) fn by_name(
    connection: &Connection,
    names: &[BoardId],
) -> Result<Vec<Option<BoardRow>>, StoreError> {
    let find = |name: &BoardId| -> Result<Option<BoardRow>, StoreError> {
        let mut statement = connection.prepare_cached(BY_NAME)?;
        let mut rows = statement.query(params![name.as_str()])?;
        rows.next()?.map(|row| decode(connection, row)).transpose()
    };
    names.iter().map(find).collect()
}

/// Creates, redefines and deletes, in order of number.
pub(super) fn store(connection: &Connection, changes: &[BoardChange]) -> Result<(), StoreError> {
    for change in changes {
        match change {
            BoardChange::Create(row) => create(connection, row)?,
            BoardChange::Redefine(no, definition) => redefine(connection, *no, definition)?,
            BoardChange::Delete(no) => delete(connection, *no)?,
        }
    }
    Ok(())
}

fn create(connection: &Connection, row: &BoardRow) -> Result<(), StoreError> {
    let next = meta::next_board(connection)?;
    assert!(row.no >= next, "board {} was given before: the next is {}", row.no.0, next.0);
    let after =
        row.no.0.checked_add(1).ok_or_else(|| StoreError::Row("boards: all numbers are given".into()))?;
    meta::set_next_board(connection, BoardNo(after))?;
    let definition = &row.definition;
    connection.prepare_cached(CREATE)?.execute(params![
        row.no.0,
        row.id.as_str(),
        definition.order.as_str(),
        definition.update.as_str(),
        definition.ranking.as_str(),
        definition.ties.as_str(),
        definition.score.as_str(),
        definition.subscore.as_str(),
        definition.all_time,
        row.created_at.0,
        definition.rules_given,
        definition.implicit
    ])?;
    create_periods(connection, row.no, &definition.periods)
}

fn redefine(connection: &Connection, no: BoardNo, definition: &Definition) -> Result<(), StoreError> {
    let rows = connection.prepare_cached(REDEFINE)?.execute(params![
        no.0,
        definition.order.as_str(),
        definition.update.as_str(),
        definition.ranking.as_str(),
        definition.ties.as_str(),
        definition.score.as_str(),
        definition.subscore.as_str(),
        definition.all_time,
        definition.rules_given,
        definition.implicit
    ])?;
    must_be_live(no, rows)?;
    connection.prepare_cached(DELETE_PERIODS)?.execute(params![no.0])?;
    create_periods(connection, no, &definition.periods)
}

fn delete(connection: &Connection, no: BoardNo) -> Result<(), StoreError> {
    let rows = connection.prepare_cached(DELETE)?.execute(params![no.0])?;
    must_be_live(no, rows)?;
    connection.prepare_cached(DELETE_PERIODS)?.execute(params![no.0])?;
    connection.prepare_cached(MARK_DELETED)?.execute(params![no.0])?;
    Ok(())
}

fn must_be_live(no: BoardNo, rows: usize) -> Result<(), StoreError> {
    if rows == 0 {
        return Err(StoreError::Row(format!("boards: there is no board {}", no.0)));
    }
    Ok(())
}

fn create_periods(connection: &Connection, no: BoardNo, periods: &[PeriodRule]) -> Result<(), StoreError> {
    for (position, period) in (0_i64..).zip(periods) {
        connection.prepare_cached(CREATE_PERIOD)?.execute(params![
            no.0,
            position,
            period.name,
            period.schedule,
            period.time_zone,
            period.keep,
            period.grace_s,
            period.no
        ])?;
    }
    Ok(())
}

fn decode(connection: &Connection, row: &Row<'_>) -> Result<BoardRow, StoreError> {
    let no = BoardNo(row.get(0)?);
    let id: String = row.get(1)?;
    let id = BoardId::new(&id).map_err(|bad| corrupt("boards", &format!("a name {}", bad.0)))?;
    let all_time = match row.get::<_, i64>(8)? {
        0 => false,
        1 => true,
        _ => return Err(corrupt("boards", "`all_time` is neither 0 nor 1")),
    };
    let definition = Definition {
        order: choice(row, 2, Order::parse)?,
        update: choice(row, 3, Update::parse)?,
        ranking: choice(row, 4, Ranking::parse)?,
        ties: choice(row, 5, Ties::parse)?,
        score: choice(row, 6, ScoreType::parse)?,
        subscore: choice(row, 7, Subscore::parse)?,
        all_time,
        periods: periods(connection, no)?,
        rules_given: row.get(10)?,
        implicit: row.get(11)?,
    };
    definition.check().map_err(|refusal| {
        corrupt("boards", &format!("`{}` contradicts itself: {refusal:?}", id.as_str()))
    })?;
    Ok(BoardRow { no, id, definition, created_at: Micros(row.get(9)?) })
}

fn periods(connection: &Connection, no: BoardNo) -> Result<Vec<PeriodRule>, StoreError> {
    let mut statement = connection.prepare_cached(PERIODS)?;
    let rows = statement.query_map(params![no.0], |row| {
        Ok(PeriodRule {
            name: row.get(0)?,
            schedule: row.get(1)?,
            time_zone: row.get(2)?,
            keep: row.get(3)?,
            grace_s: row.get(4)?,
            no: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn choice<T>(row: &Row<'_>, column: usize, parse: fn(&str) -> Option<T>) -> Result<T, StoreError> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| corrupt("boards", &format!("no choice is named `{text}`")))
}
