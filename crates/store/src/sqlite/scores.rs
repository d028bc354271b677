//! The table `scores`: one record for each player of each part of each board.
//!
//! The table that rates depend on. A row is written with REPLACE: without a second index, trigger or foreign key SQLite
//! then descends the tree once and overwrites, where INSERT ... ON CONFLICT descends three times.

use super::codec::{Input, put_bytes, put_number, put_signed};
use super::fault::{corrupt, damaged};
use super::parts::encode;
use super::table::{Rows, Table};
use crate::damage::score_text;
use crate::{BoardNo, DamagedRow, Part, ScoreKey, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Statement, params};
use tally_rules::{Micros, PlayerId, Record};

pub(super) const GET: &str =
    "SELECT score, subscore, at FROM scores WHERE board = ?1 AND part = ?2 AND player = ?3";
pub(super) const PUT: &str =
    "REPLACE INTO scores (board, part, player, score, subscore, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(super) const REMOVE: &str = "DELETE FROM scores WHERE board = ?1 AND part = ?2 AND player = ?3";
pub(super) const WALK: &str = "SELECT score, subscore, at, player FROM scores \
     WHERE board = ?1 AND part = ?2 AND player > ?3 ORDER BY player";
pub(super) const COUNT: &str = "SELECT count(*) FROM scores WHERE board = ?1 AND part = ?2";

/// The record of a key, by the statement [`GET`].
pub(super) fn get(statement: &mut Statement<'_>, key: &ScoreKey) -> Result<Option<Record>, StoreError> {
    let mut rows = statement.query(params![key.board.0, encode(key.part)?, key.player.as_str()])?;
    rows.next()?.map(decode).transpose()
}

/// The table, for the journal.
pub(super) struct Scores;

/// A score's key with the first bytes of the name beside it. Names lie elsewhere in memory, and most comparisons end
/// before they have to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NearKey {
    board: BoardNo,
    part: Part,
    head: u128,
    player: PlayerId,
}

impl NearKey {
    pub(super) fn new(board: BoardNo, part: Part, player: PlayerId) -> Self {
        let name = player.as_bytes();
        let mut head = [0; 16];
        let near = name.len().min(head.len());
        head[..near].copy_from_slice(&name[..near]);
        // Big-endian, so that numbers compare as the bytes do.
        Self { board, part, head: u128::from_be_bytes(head), player }
    }

    pub(super) fn is_of(&self, board: BoardNo, part: Part) -> bool {
        self.board == board && self.part == part
    }

    pub(super) fn player(&self) -> &PlayerId {
        &self.player
    }
}

impl From<ScoreKey> for NearKey {
    fn from(key: ScoreKey) -> Self {
        Self::new(key.board, key.part, key.player)
    }
}

impl From<NearKey> for ScoreKey {
    fn from(key: NearKey) -> Self {
        let NearKey { board, part, player, .. } = key;
        Self { board, part, player }
    }
}

impl Table for Scores {
    const TAG: u8 = 0;
    type Key = NearKey;
    type Value = Record;

    fn check(key: &NearKey, _value: Option<&Record>) -> Result<(), StoreError> {
        encode(key.part).map(drop)
    }

    fn put_key(key: &NearKey, out: &mut Vec<u8>) {
        put_number(key.board.0.into(), out);
        put_number(key.part.0, out);
        put_bytes(key.player.as_bytes(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<NearKey> {
        let (board, part) = (BoardNo(input.small()?), Part(input.number()?));
        Some(NearKey::new(board, part, PlayerId::new(input.text()?).ok()?))
    }

    fn put_value(value: &Record, out: &mut Vec<u8>) {
        put_signed(value.score, out);
        put_signed(value.subscore, out);
        put_signed(value.at.0, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<Record> {
        let (score, subscore) = (input.signed()?, input.signed()?);
        Some(Record { score, subscore, at: Micros(input.signed()?) })
    }

    fn heap_bytes(key: &NearKey, _value: Option<&Record>) -> usize {
        // Two counters stand before a shared name.
        16 + key.player.as_bytes().len()
    }

    /// Neighbours share a page.
    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        let mut put = connection.prepare_cached(PUT)?;
        let mut remove = connection.prepare_cached(REMOVE)?;
        for (key, record) in rows {
            let (board, part, player) = (key.board.0, encode(key.part)?, key.player.as_str());
            match record {
                Some(record) => {
                    put.execute(params![board, part, player, record.score, record.subscore, record.at.0])?
                }
                None => remove.execute(params![board, part, player])?,
            };
        }
        Ok(())
    }
}

/// Walks a part in order of player bytes for as long as `each` says so. A row that cannot be read goes to `skip`, with its
/// player where that is one.
pub(super) fn walk(
    connection: &Connection,
    (board, part): (BoardNo, Part),
    after: Option<&PlayerId>,
    skip: &mut dyn FnMut(Option<PlayerId>, &DamagedRow),
    each: &mut dyn FnMut(PlayerId, Record) -> bool,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(WALK)?;
    // No player's name is empty, so the empty one stands before all of them.
    let after = after.map_or("", PlayerId::as_str);
    let mut rows = statement.query(params![board.0, encode(part)?, after])?;
    while let Some(row) = rows.next()? {
        let (player, record) = (player(row), decode(row));
        match (player, record) {
            (Ok(player), Ok(record)) => {
                if !each(player, record) {
                    break;
                }
            }
            (player, record) => {
                let readable = player.as_ref().ok().cloned();
                let bad = player.err().or(record.err()).expect("one of both");
                let bytes = row.get_ref(3)?.as_bytes().unwrap_or_default();
                match bad.of_row("scores", || score_text((board, part), bytes)) {
                    StoreError::Damaged(bad) => skip(readable, &bad),
                    error => return Err(error),
                }
            }
        }
    }
    Ok(())
}

/// The player of a row that begins like one of [`WALK`].
pub(super) fn player(row: &Row<'_>) -> Result<PlayerId, StoreError> {
    let ValueRef::Text(bytes) = row.get_ref(3)? else {
        return Err(damaged("scores", "a player that is not text"));
    };
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("scores", "a player that is not UTF-8"))?;
    PlayerId::new(text).map_err(|bad| damaged("scores", &format!("a player's name {}", bad.0)))
}

/// How many records a part has.
pub(super) fn count(connection: &Connection, board: BoardNo, part: Part) -> Result<u64, StoreError> {
    let count: i64 =
        connection.prepare_cached(COUNT)?.query_row(params![board.0, encode(part)?], |row| row.get(0))?;
    u64::try_from(count).map_err(|_| corrupt("scores", "a negative count"))
}

/// The columns from the first one on.
pub(super) fn decode(row: &Row<'_>) -> Result<Record, StoreError> {
    Ok(Record { score: row.get(0)?, subscore: row.get(1)?, at: Micros(row.get(2)?) })
}
