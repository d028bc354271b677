//! The tables `boards`, `periods` and `deleted_boards`: the boards and their definitions.
//!
//! Choices are stored under the names that users see, so the file can be read without this program. A deleted board leaves
//! `boards` at once, and its name is free. Its rows in other tables wait for `purge`.

use super::fault::{corrupt, damaged};
use super::meta;
use super::table::{Rows, Table};
use crate::codec::boards::{encode_prizes, put_board, take_board, take_period_prizes};
use crate::codec::{Input, put_number};
use crate::{BoardNo, BoardRow, CorruptRow, StoreError};
use rusqlite::{Connection, Row, params};
use tally_rules::definition::{Order, Ranking, ScoreType, Subscore, Ties, Update};
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::{BoardId, Definition, Micros};

pub(super) const ALL: &str = "SELECT no, id, \"order\", \"update\", ranking, ties, score, subscore, all_time, \
     created_at, rules_given, implicit FROM boards ORDER BY no";
pub(super) const PUT: &str = "INSERT INTO boards (no, id, \"order\", \"update\", ranking, ties, score, subscore, \
     all_time, created_at, rules_given, implicit) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
     ON CONFLICT (no) DO UPDATE SET \"order\" = excluded.\"order\", \"update\" = excluded.\"update\", \
     ranking = excluded.ranking, ties = excluded.ties, score = excluded.score, subscore = excluded.subscore, \
     all_time = excluded.all_time, rules_given = excluded.rules_given, \
     implicit = excluded.implicit";
pub(super) const DELETE: &str = "DELETE FROM boards WHERE no = ?1";
pub(super) const MARK_DELETED: &str = "REPLACE INTO deleted_boards (no) VALUES (?1)";
pub(super) const PERIODS: &str = "SELECT name, schedule, time_zone, keep, grace_s, rule, prizes FROM periods \
     WHERE board = ?1 ORDER BY position";
pub(super) const CREATE_PERIOD: &str = "INSERT INTO periods (board, position, name, schedule, time_zone, keep, \
     grace_s, rule, prizes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
pub(super) const DELETE_PERIODS: &str = "DELETE FROM periods WHERE board = ?1";

/// Every live board, in order of number; a corrupt one goes to `skip` by its name. The caller holds a transaction, because
/// periods are read board by board.
pub(super) fn all(
    connection: &Connection,
    skip: &mut dyn FnMut(Option<BoardNo>, CorruptRow),
) -> Result<Vec<BoardRow>, StoreError> {
    let mut statement = connection.prepare_cached(ALL)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match decode(connection, row) {
            Ok(board) => found.push(board),
            Err(StoreError::CorruptRow(bad)) => {
                let key =
                    row.get_ref(1)?.as_bytes().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
                let no = row.get(0).ok().map(BoardNo);
                skip(no, CorruptRow { table: "boards", key, what: bad.what });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The tables for the journal. A deleted board leaves its number to `purge`.
pub(super) struct Boards;

impl Table for Boards {
    const TAG: u8 = 8;
    type Key = BoardNo;
    type Value = BoardRow;

    fn check(key: &BoardNo, value: Option<&BoardRow>) -> Result<(), StoreError> {
        if key.0 == u32::MAX {
            return Err(StoreError::Row("boards: all numbers are given".into()));
        }
        let refused = value.and_then(|row| row.definition.check().err());
        refused.map_or(Ok(()), |why| Err(StoreError::Row(format!("boards: {why:?}"))))
    }

    fn put_key(key: &BoardNo, out: &mut Vec<u8>) {
        put_number(key.0.into(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<BoardNo> {
        input.small().map(BoardNo)
    }

    fn put_value(value: &BoardRow, out: &mut Vec<u8>) {
        put_board(value, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<BoardRow> {
        take_board(input)
    }

    fn heap_bytes(_key: &BoardNo, value: Option<&BoardRow>) -> usize {
        value.map_or(0, |row| 256 * (1 + row.definition.periods.len()))
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (no, row) in rows {
            let after = no.0.checked_add(1).ok_or_else(|| corrupt("boards", "the last number is given"))?;
            if meta::next_board(connection)?.0 < after {
                meta::set_next_board(connection, BoardNo(after))?;
            }
            connection.prepare_cached(DELETE_PERIODS)?.execute(params![no.0])?;
            match row {
                Some(row) => put(connection, row)?,
                None => {
                    connection.prepare_cached(DELETE)?.execute(params![no.0])?;
                    connection.prepare_cached(MARK_DELETED)?.execute(params![no.0])?;
                }
            }
        }
        Ok(())
    }
}

fn put(connection: &Connection, row: &BoardRow) -> Result<(), StoreError> {
    let definition = &row.definition;
    connection.prepare_cached(PUT)?.execute(params![
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
            period.no,
            (period.prizes != PeriodPrizes::default()).then(|| encode_prizes(&period.prizes))
        ])?;
    }
    Ok(())
}

pub(super) fn decode(connection: &Connection, row: &Row<'_>) -> Result<BoardRow, StoreError> {
    let no = BoardNo(row.get(0)?);
    let id: String = row.get(1)?;
    let id = BoardId::new(&id).map_err(|bad| damaged("boards", &format!("a name {}", bad.0)))?;
    let all_time = match row.get::<_, i64>(8)? {
        0 => false,
        1 => true,
        _ => return Err(damaged("boards", "`all_time` is neither 0 nor 1")),
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
    definition.check().map_err(|rejection| {
        damaged("boards", &format!("`{}` contradicts itself: {rejection:?}", id.as_str()))
    })?;
    Ok(BoardRow { no, id, definition, created_at: Micros(row.get(9)?) })
}

fn periods(connection: &Connection, no: BoardNo) -> Result<Vec<PeriodRule>, StoreError> {
    let mut statement = connection.prepare_cached(PERIODS)?;
    let mut rows = statement.query(params![no.0])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let bytes: Option<Vec<u8>> = row.get(6)?;
        let prizes = bytes.map(|bytes| take_period_prizes(&mut Input::new(&bytes)));
        let bad = || damaged("periods", "prizes that cannot be");
        found.push(PeriodRule {
            name: row.get(0)?,
            schedule: row.get(1)?,
            time_zone: row.get(2)?,
            keep: row.get(3)?,
            grace_s: row.get(4)?,
            no: row.get(5)?,
            prizes: prizes.map_or(Some(PeriodPrizes::default()), |read| read).ok_or_else(bad)?,
        });
    }
    Ok(found)
}

fn choice<T>(row: &Row<'_>, column: usize, parse: fn(&str) -> Option<T>) -> Result<T, StoreError> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| damaged("boards", &format!("no choice is named `{text}`")))
}
