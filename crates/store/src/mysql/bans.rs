//! The table `bans`: where players are hidden.

use super::player;
use super::row::Answers;
use super::text::{Row, Script};
use crate::StoreError;
use crate::plan::{BanKey, BoardNo};
use tally_rules::PlayerId;

/// Asks for every player hidden on a board.
pub(super) fn select(board: BoardNo) -> Script {
    let mut script = Script::default();
    script.sql("SELECT player FROM bans WHERE board = ").number(board.0).sql(" ORDER BY player").end();
    script
}

/// The answer, in order of bytes.
pub(super) fn read(answers: &mut Answers) -> Result<Vec<PlayerId>, StoreError> {
    let mut players = Vec::new();
    answers.each(1, "bans", |row| {
        players.push(player(row)?);
        Ok(())
    })?;
    Ok(players)
}

/// Hides and shows.
pub(super) fn write(script: &mut Script, rows: &[(BanKey, bool)]) {
    let put = |row: &mut Row<'_>, (key, _): &(BanKey, bool)| {
        row.number(key.board.0).bytes(key.player.as_bytes());
    };
    let head = "INSERT INTO bans (board, player) VALUES ";
    let hidden = rows.iter().filter(|(_, hidden)| *hidden);
    script.rows(head, hidden, " ON DUPLICATE KEY UPDATE board = bans.board", put);
    let head = "DELETE FROM bans WHERE (board, player) IN (";
    script.keys(head, rows.iter().filter(|(_, hidden)| !hidden), ")", put);
}
