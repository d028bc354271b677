//! The table `bans`: banned players.

use super::fault::damaged;
use super::table::{Rows, Table};
use crate::StoreError;
use crate::codec::{Input, put_bytes, put_number};
use crate::plan::{BanKey, BoardNo};
use rusqlite::{Connection, params};
use tally_rules::PlayerId;

pub(super) const OF_BOARD: &str = "SELECT player FROM bans WHERE board = ?1 ORDER BY player";
pub(super) const PUT: &str = "REPLACE INTO bans (board, player) VALUES (?1, ?2)";
pub(super) const REMOVE: &str = "DELETE FROM bans WHERE board = ?1 AND player = ?2";

/// Every banned player of a board, in order of bytes.
pub(super) fn of_board(connection: &Connection, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
    let mut statement = connection.prepare_cached(OF_BOARD)?;
    let mut rows = statement.query(params![board.0])?;
    let mut players = Vec::new();
    while let Some(row) = rows.next()? {
        let player =
            PlayerId::new(row.get_ref(0)?.as_str().map_err(|_| damaged("bans", "a player is no text"))?);
        players.push(player.map_err(|bad| damaged("bans", &format!("a player {}", bad.0)))?);
    }
    Ok(players)
}

/// The table `bans` for the journal.
pub(super) struct Bans;

impl Table for Bans {
    const TAG: u8 = 4;
    type Key = BanKey;
    type Value = ();

    fn check(_key: &BanKey, _value: Option<&()>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &BanKey, out: &mut Vec<u8>) {
        put_number(key.board.0.into(), out);
        put_bytes(key.player.as_bytes(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<BanKey> {
        Some(BanKey { board: BoardNo(input.small()?), player: PlayerId::new(input.text()?).ok()? })
    }

    fn put_value((): &(), _out: &mut Vec<u8>) {}

    fn take_value(_input: &mut Input<'_>) -> Option<()> {
        Some(())
    }

    fn heap_bytes(key: &BanKey, _value: Option<&()>) -> usize {
        16 + key.player.as_bytes().len()
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, banned) in rows {
            let sql = if banned.is_some() { PUT } else { REMOVE };
            connection.prepare_cached(sql)?.execute(params![key.board.0, key.player.as_str()])?;
        }
        Ok(())
    }
}
