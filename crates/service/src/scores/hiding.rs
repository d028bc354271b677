//! What a batch decides about players as such: hiding one on a board, showing it again, erasing it everywhere.
//!
//! Not here: scores and their removal (`decide`).

use super::aim::{Aims, RowAim};
use super::command::{Ban, Erase};
use super::decide::{Decision, State};
use super::plan::score_key;
use crate::boards::Board;
use crate::contests::play;
use std::sync::Arc;
use tally_rules::outcome::Outcome;
use tally_rules::{PlayerId, Rejection};
use tally_store::{BanKey, PartKey, PartRow, ScoreKey};

impl State {
    pub(super) fn ban(&mut self, ban: &Ban, aim: &RowAim) -> Result<Decision, Rejection> {
        let replayed = self.replay(ban.identity.as_ref())?.is_some();
        if !replayed {
            self.check_live(ban.board.no)?;
            aim.at.clone()?;
            self.bans.insert(BanKey { board: ban.board.no, player: ban.player.clone() }, ban.hidden);
            self.mark_stale(&ban.board, &ban.player);
            self.remember(ban.identity.as_ref(), Outcome::Removed);
        }
        let mut records = Vec::new();
        for part in &aim.parts {
            let key = score_key(ban.board.no, *part, &ban.player);
            let Some(record) = self.scores.get(&key).copied() else { continue };
            if ban.board.is_shared() && !replayed {
                // The row is written anew, so that its version says that whatever was published of it before is old.
                self.scores.touch(&key);
            }
            records.push((*part, record));
        }
        Ok(Decision::Ban { records, replayed })
    }

    pub(super) fn erase(&mut self, erase: &Erase, aims: &Aims) -> Result<Decision, Rejection> {
        if self.replay(erase.identity.as_ref())?.is_some() {
            return Ok(Decision::Erase { replayed: true });
        }
        let ban = |no| BanKey { board: no, player: erase.player.clone() };
        let keys: Vec<ScoreKey> = erase
            .boards
            .iter()
            .flat_map(|board| aims.every_part(board))
            .map(|(no, part)| score_key(no, part, &erase.player))
            .collect();
        // A ban of this very batch is not published yet. In a contest a ban stays: erasing is no way round it.
        let hidden = |board: &Arc<Board>| {
            let known = self.bans.get(&ban(board.no)).copied();
            !play::of(board) && known.unwrap_or_else(|| board.hides(&erase.player))
        };
        let known = erase.had_applied
            || self.profiles.get(&erase.player).is_some()
            || keys.iter().any(|key| self.scores.get(key).is_some())
            || erase.boards.iter().any(hidden);
        if !known {
            return Err(Rejection::PlayerNotFound);
        }
        let hiding: Vec<_> =
            erase.boards.iter().filter(|board| hidden(board)).map(|board| ban(board.no)).collect();
        erase.boards.iter().for_each(|board| self.mark_stale(board, &erase.player));
        keys.iter().for_each(|key| self.scores.set(key, None));
        self.bans.extend(hiding.into_iter().map(|ban| (ban, false)));
        self.profiles.set(&erase.player, None);
        self.remember(erase.identity.as_ref(), Outcome::Removed);
        Ok(Decision::Erase { replayed: false })
    }

    /// Notes, with the change itself, that the stored orders of a player's closed periods are no longer right: whoever
    /// asked writes them anew before the answer, and if that is cut short, the next start does.
    fn mark_stale(&mut self, board: &Board, player: &PlayerId) {
        for row in board.periods().packed_anywhere(board.is_shared()) {
            let key = score_key(board.no, row.part, player);
            if self.scores.is_loaded(&key) && self.scores.get(&key).is_some() {
                let part = PartKey { board: board.no, part: row.part };
                self.parts.insert(part, Some(PartRow { stale: true, ..row }));
            }
        }
    }
}
