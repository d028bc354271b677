//! The table `bans`: where players are hidden.

use super::fault::corrupt;
use crate::StoreError;
use crate::plan::{BanKey, BoardNo};
use rusqlite::{Connection, params};
use tally_rules::PlayerId;

pub(super) const OF_BOARD: &str = "SELECT player FROM bans WHERE board = ?1 ORDER BY player";
pub(super) const PUT: &str = "REPLACE INTO bans (board, player) VALUES (?1, ?2)";
pub(super) const REMOVE: &str = "DELETE FROM bans WHERE board = ?1 AND player = ?2";

/// Every player hidden on a board, in order of bytes.
pub(super) fn of_board(connection: &Connection, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
    let mut statement = connection.prepare_cached(OF_BOARD)?;
    let mut rows = statement.query(params![board.0])?;
    let mut players = Vec::new();
    while let Some(row) = rows.next()? {
        let player =
            PlayerId::new(row.get_ref(0)?.as_str().map_err(|_| corrupt("bans", "a player is no text"))?);
        players.push(player.map_err(|bad| corrupt("bans", &format!("a player {}", bad.0)))?);
    }
    Ok(players)
}

/// Hides and shows.
pub(super) fn store(connection: &Connection, bans: &[(BanKey, bool)]) -> Result<(), StoreError> {
    for (key, hidden) in bans {
        let sql = if *hidden { PUT } else { REMOVE };
        connection.prepare_cached(sql)?.execute(params![key.board.0, key.player.as_str()])?;
    }
    Ok(())
}
