//! Erasing a player on every leaderboard. The use case is in `players`.

use super::batch::{
    Effect, Effects, Piece, Replying, RowTarget, ScoreBatchState, ScoreRequestKind, Shards, Slicing, Targets,
    score_key,
};
use super::remove::Removed;
use crate::boards::Board;
use crate::contests::play;
use crate::failure::Failure;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::outcome::Outcome;
use tally_rules::{PlayerId, Rejection};
use tally_store::{BanKey, ReadSet, ScoreKey};

#[derive(Clone, Debug)]
pub(crate) struct Erase {
    pub(crate) player: PlayerId,
    /// Every leaderboard.
    pub(crate) boards: Vec<Arc<Board>>,
    /// Whether the player had applications, which are withdrawn by now.
    pub(crate) had_applied: bool,
    /// `None` for a member's player: the erasure of the member has a row.
    pub(crate) audited: Option<Audited>,
    pub(crate) idempotency: Option<IdempotencyKey>,
}

impl Erase {
    fn keys(&self, targets: &Targets) -> Vec<ScoreKey> {
        let windows = self.boards.iter().flat_map(|board| targets.every_window(board));
        windows.map(|(board, window)| score_key(board, window, &self.player)).collect()
    }

    /// Whether a ban on this leaderboard goes. In a contest it stays, because erasing a player is no way round it. That of a member
    /// goes: its contests are played, and another member may get the name.
    fn lifts_ban(&self, board: &Arc<Board>) -> bool {
        self.audited.is_none() || !play::of(board)
    }
}

impl ScoreRequestKind for Erase {
    type Decision = Removed;
    type Reply = Removed;

    fn each_board<'a>(&'a self, each: &mut impl FnMut(&'a Arc<Board>)) {
        self.boards.iter().for_each(each);
    }

    fn idempotency(&self) -> Option<&IdempotencyKey> {
        self.idempotency.as_ref()
    }

    fn weight(&self) -> usize {
        self.boards.len()
    }

    fn player(&self) -> Option<&PlayerId> {
        Some(&self.player)
    }

    fn changes_boards(&self) -> bool {
        true
    }

    fn shards(&self, shards: &mut Shards<'_>) {
        shards.player(&self.player);
    }

    fn read(&self, targets: &Targets, plan: &mut ReadSet) {
        plan.scores.extend(self.keys(targets));
        plan.profiles.push(self.player.clone());
    }

    fn decide(
        &self,
        state: &mut ScoreBatchState,
        _rows: &[RowTarget],
        targets: &Targets,
    ) -> Result<Removed, Rejection> {
        if state.replay(self.idempotency.as_ref())?.is_some() {
            return Ok(Removed { replayed: true });
        }
        let keys = self.keys(targets);
        // A ban of this very batch is not published yet.
        let mut bans = Vec::new();
        for board in self.boards.iter().filter(|board| self.lifts_ban(board)) {
            let ban = BanKey { board: board.no, player: self.player.clone() };
            if state.bans.get(&ban).copied().unwrap_or_else(|| board.is_banned(&self.player)) {
                bans.push(ban);
            }
        }
        let is_known = self.had_applied
            || !bans.is_empty()
            || state.profiles.get(&self.player).is_some()
            || keys.iter().any(|key| state.scores.get(key).is_some());
        if !is_known {
            return Err(Rejection::PlayerNotFound);
        }
        self.boards.iter().for_each(|board| state.mark_stale(board, &self.player));
        keys.iter().for_each(|key| state.scores.set(key, None));
        state.bans.extend(bans.into_iter().map(|ban| (ban, false)));
        state.profiles.set(&self.player, None);
        state.remember(self.idempotency.as_ref(), Outcome::Removed);
        let row = |act: &Audited| act.row(AuditAction::PlayerErased, self.player.as_str(), None);
        state.audit.extend(self.audited.as_ref().map(row));
        Ok(Removed { replayed: false })
    }

    fn publish<'a>(&'a self, decision: &'a Removed, _rows: &'a [RowTarget], effects: &mut Effects<'a>) {
        for board in self.boards.iter().filter(|_| !decision.replayed) {
            effects.add(board, Effect::LeaveAll(&self.player));
            if self.lifts_ban(board) {
                effects.add(board, Effect::Restore(&self.player, &[]));
            }
        }
    }

    fn reply(&self, decision: Removed, _with: Replying<'_>) -> Result<Removed, Failure> {
        Ok(decision)
    }

    fn cut(&self, slicing: &Slicing<'_>, rows: &[RowTarget]) -> Option<Piece<Self>> {
        slicing.of_player(&self.player, self, rows)
    }
}
