//! The deletion of a leaderboard that its first score made, if it has no players.

use super::batch::{Replying, RowTarget, ScoreBatchState, ScoreRequestKind, Targets};
use crate::boards::Board;
use crate::failure::Failure;
use std::sync::Arc;
use tally_rules::Rejection;

/// The request to delete it. The reply is whether it was deleted.
#[derive(Debug)]
pub(crate) struct DeleteUnused(pub(crate) Arc<Board>);

impl ScoreRequestKind for DeleteUnused {
    type Decision = bool;
    type Reply = bool;

    fn each_board<'a>(&'a self, each: &mut impl FnMut(&'a Arc<Board>)) {
        each(&self.0);
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn changes_boards(&self) -> bool {
        true
    }

    /// It is alone in its batch, so the ranking in memory is complete.
    fn decide(
        &self,
        state: &mut ScoreBatchState,
        _rows: &[RowTarget],
        _targets: &Targets,
    ) -> Result<bool, Rejection> {
        let deletes = state.check_live(self.0.no).is_ok() && !self.0.is_there();
        state.deleted_unused.extend(deletes.then_some(self.0.no));
        Ok(deletes)
    }

    fn reply(&self, decision: bool, _with: Replying<'_>) -> Result<bool, Failure> {
        Ok(decision)
    }
}
