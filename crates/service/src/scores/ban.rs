//! Hiding a player on a leaderboard, and showing it again. The use case is in `players`.

use super::batch::{
    Access, Effect, Effects, Piece, Players, Replying, RowTarget, ScoreBatchState, ScoreRequestKind, Slicing,
    TargetRow, Targets, score_key,
};
use super::remove::Removed;
use crate::boards::Board;
use crate::failure::Failure;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::outcome::Outcome;
use tally_rules::{PlayerId, Record, Rejection};
use tally_store::{BanKey, ReadSet, Window};

/// A ban, or its end.
#[derive(Clone, Debug)]
pub(crate) struct Ban {
    pub(crate) board: Arc<Board>,
    pub(crate) player: PlayerId,
    /// Whether the player is banned from now on.
    pub(crate) banned: bool,
    pub(crate) audited: Audited,
    pub(crate) idempotency: Option<IdempotencyKey>,
}

#[derive(Debug)]
pub(crate) struct BanDecision {
    /// The records that enter the ranks.
    records: Vec<(Window, Record)>,
    /// Whether the player was not banned before, or was: a replay and a second ban change nothing.
    changed: bool,
    replayed: bool,
}

impl ScoreRequestKind for Ban {
    type Decision = BanDecision;
    type Reply = Removed;

    fn each_row<'a>(&'a self, each: &mut impl FnMut(TargetRow<'a>)) {
        let players = Players::one(&self.player);
        each(TargetRow { board: Some(&self.board), players, access: Access::Ban });
    }

    fn idempotency(&self) -> Option<&IdempotencyKey> {
        self.idempotency.as_ref()
    }

    fn player(&self) -> Option<&PlayerId> {
        Some(&self.player)
    }

    fn changes_boards(&self) -> bool {
        true
    }

    fn read(&self, _targets: &Targets, plan: &mut ReadSet) {
        let packed = self.board.periods().packed_anywhere(self.board.is_shared());
        plan.scores.extend(packed.iter().map(|row| score_key(self.board.no, row.window, &self.player)));
    }

    fn decide(
        &self,
        state: &mut ScoreBatchState,
        rows: &[RowTarget],
        _targets: &Targets,
    ) -> Result<BanDecision, Rejection> {
        if state.replay(self.idempotency.as_ref())?.is_some() {
            return Ok(BanDecision { records: Vec::new(), changed: false, replayed: true });
        }
        state.check_live(self.board.no)?;
        rows[0].at.clone()?;
        state.remember(self.idempotency.as_ref(), Outcome::Removed);
        let ban = BanKey { board: self.board.no, player: self.player.clone() };
        // A ban of this very batch is not published yet.
        let before = state.bans.get(&ban).copied().unwrap_or_else(|| self.board.is_banned(&self.player));
        if before == self.banned {
            return Ok(BanDecision { records: Vec::new(), changed: false, replayed: false });
        }
        state.bans.insert(ban, self.banned);
        state.mark_stale(&self.board, &self.player);
        let action = if self.banned { AuditAction::PlayerBanned } else { AuditAction::PlayerRestored };
        let board = Some(self.board.id.as_str().into());
        state.audit.push(self.audited.row(action, self.player.as_str(), board));
        let mut records = Vec::new();
        for window in &rows[0].windows {
            let key = score_key(self.board.no, *window, &self.player);
            let Some(record) = state.scores.get(&key).copied() else { continue };
            if self.board.is_shared() || !self.banned {
                // The row is written again: its new version makes older published states outdated. The row of a player that is
                // shown again is for servers that follow.
                state.scores.touch(&key);
            }
            records.push((*window, record));
        }
        Ok(BanDecision { records, changed: true, replayed: false })
    }

    fn publish<'a>(&'a self, decision: &'a BanDecision, _rows: &'a [RowTarget], effects: &mut Effects<'a>) {
        if !decision.changed {
            return;
        }
        let ban = || Effect::Ban(&self.player);
        let restore = || Effect::Restore(&self.player, &decision.records);
        effects.add(&self.board, if self.banned { ban() } else { restore() });
    }

    fn reply(&self, decision: BanDecision, _with: Replying<'_>) -> Result<Removed, Failure> {
        Ok(Removed { replayed: decision.replayed })
    }

    fn cut(&self, slicing: &Slicing<'_>, rows: &[RowTarget]) -> Option<Piece<Self>> {
        slicing.of_player(&self.player, self, rows)
    }
}
