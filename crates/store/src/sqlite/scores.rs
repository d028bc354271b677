//! The table `scores`: one record for each player of each window of each board.
//!
//! The write rate depends on this table. A row is written with REPLACE: without a second index, trigger or foreign key,
//! SQLite then descends the tree once and overwrites. INSERT ... ON CONFLICT descends three times.

use super::fault::{corrupt, damaged};
use super::table::{Rows, Table};
use super::windows::encode;
use crate::codec::windows::{put_record, take_record};
use crate::codec::{Input, put_bytes, put_number};
use crate::damage::score_text;
use crate::{BoardNo, CorruptRow, ScoreKey, StoreError, Window};
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
    let mut rows = statement.query(params![key.board.0, encode(key.window)?, key.player.as_str()])?;
    rows.next()?.map(decode).transpose()
}

/// The table `scores` for the journal.
pub(super) struct Scores;

/// The key of a score, with the first bytes of the player inline. Players are elsewhere in memory, and most comparisons end
/// before they are read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NearKey {
    board: BoardNo,
    window: Window,
    head: u128,
    player: PlayerId,
}

impl NearKey {
    pub(super) fn new(board: BoardNo, window: Window, player: PlayerId) -> Self {
        let name = player.as_bytes();
        let mut head = [0; 16];
        let near = name.len().min(head.len());
        head[..near].copy_from_slice(&name[..near]);
        // Big-endian, so that numbers compare as the bytes do.
        Self { board, window, head: u128::from_be_bytes(head), player }
    }

    pub(super) fn is_of(&self, board: BoardNo, window: Window) -> bool {
        self.board == board && self.window == window
    }

    pub(super) fn player(&self) -> &PlayerId {
        &self.player
    }
}

impl From<ScoreKey> for NearKey {
    fn from(key: ScoreKey) -> Self {
        Self::new(key.board, key.window, key.player)
    }
}

impl From<NearKey> for ScoreKey {
    fn from(key: NearKey) -> Self {
        let NearKey { board, window, player, .. } = key;
        Self { board, window, player }
    }
}

impl Table for Scores {
    const TAG: u8 = 0;
    type Key = NearKey;
    type Value = Record;

    fn check(key: &NearKey, _value: Option<&Record>) -> Result<(), StoreError> {
        encode(key.window).map(drop)
    }

    fn put_key(key: &NearKey, out: &mut Vec<u8>) {
        put_number(key.board.0.into(), out);
        put_number(key.window.0, out);
        put_bytes(key.player.as_bytes(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<NearKey> {
        let (board, window) = (BoardNo(input.small()?), Window(input.number()?));
        Some(NearKey::new(board, window, PlayerId::new(input.text()?).ok()?))
    }

    fn put_value(value: &Record, out: &mut Vec<u8>) {
        put_record(value, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<Record> {
        take_record(input)
    }

    fn heap_bytes(key: &NearKey, _value: Option<&Record>) -> usize {
        // Two counters precede a shared name.
        16 + key.player.as_bytes().len()
    }

    /// Neighbours share a page.
    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        let mut put = connection.prepare_cached(PUT)?;
        let mut remove = connection.prepare_cached(REMOVE)?;
        for (key, record) in rows {
            let (board, window, player) = (key.board.0, encode(key.window)?, key.player.as_str());
            match record {
                Some(record) => {
                    put.execute(params![board, window, player, record.score, record.subscore, record.at.0])?
                }
                None => remove.execute(params![board, window, player])?,
            };
        }
        Ok(())
    }
}

/// Scans a window in order of player bytes, for as long as `each` returns true. A corrupt row goes to `skip`, with its
/// player if that is sound.
pub(super) fn scan(
    connection: &Connection,
    (board, window): (BoardNo, Window),
    after: Option<&PlayerId>,
    skip: &mut dyn FnMut(Option<PlayerId>, &CorruptRow),
    each: &mut dyn FnMut(PlayerId, Record) -> bool,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(WALK)?;
    // No player is empty, so the empty text precedes all of them.
    let after = after.map_or("", PlayerId::as_str);
    let mut rows = statement.query(params![board.0, encode(window)?, after])?;
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
                match bad.of_row("scores", || score_text((board, window), bytes)) {
                    StoreError::CorruptRow(bad) => skip(readable, &bad),
                    error => return Err(error),
                }
            }
        }
    }
    Ok(())
}

/// The player of a row with the first columns of [`WALK`].
pub(super) fn player(row: &Row<'_>) -> Result<PlayerId, StoreError> {
    let ValueRef::Text(bytes) = row.get_ref(3)? else {
        return Err(damaged("scores", "a player that is not text"));
    };
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("scores", "a player that is not UTF-8"))?;
    PlayerId::new(text).map_err(|bad| damaged("scores", &format!("a player's name {}", bad.0)))
}

/// The number of records of a window.
pub(super) fn count(connection: &Connection, board: BoardNo, window: Window) -> Result<u64, StoreError> {
    let count: i64 =
        connection.prepare_cached(COUNT)?.query_row(params![board.0, encode(window)?], |row| row.get(0))?;
    u64::try_from(count).map_err(|_| corrupt("scores", "a negative count"))
}

/// Decodes the columns from the first one on.
pub(super) fn decode(row: &Row<'_>) -> Result<Record, StoreError> {
    Ok(Record { score: row.get(0)?, subscore: row.get(1)?, at: Micros(row.get(2)?) })
}
