//! Deleting leaderboards of contests that were settled or cancelled longer ago than `contests.keep`. Otherwise the limit of
//! leaderboards would end series.
//!
//! The contest, its members, prizes and refunds stay. The same transaction as for a request deletes a leaderboard, so only one
//! of several servers does it. It stays while a period with prizes is not closed. Blocks. Not here: rows, which are purged in
//! the background.

use super::execute::find;
use super::play;
use crate::boards::{self, Board};
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::contest::ContestState;
use tally_rules::{Origin, Rejection};
use tally_store::BoardNo;

/// Deletes those that are due. A failure keeps no other leaderboard from it. Contests that are settled cost no read.
pub fn delete_due(tally: &Tally) -> Result<(), Failure> {
    let (Some(keep), Some(now)) = (tally.settings.contests_keep_micros, tally.trusted_now()) else {
        return Ok(());
    };
    let mut done = Ok(());
    for board in tally.boards.from_no(BoardNo(0), usize::MAX) {
        let deleted = is_over(tally, &board).and_then(|since| match since {
            Some(since) if since.0.saturating_add(keep) <= now.0 && !promises(&board) => {
                delete(tally, &board)
            }
            _ => Ok(()),
        });
        done = done.and(deleted);
    }
    done
}

/// Since when the contest of a board is settled or cancelled, if it is.
fn is_over(tally: &Tally, board: &Arc<Board>) -> Result<Option<tally_rules::Micros>, Failure> {
    let ended = |state| matches!(state, ContestState::Settled | ContestState::Cancelled);
    match play::over(board) {
        Some((id, state, _)) if !ended(state) => {
            let record = find(tally, &id)?;
            play::update(board, &record);
            Ok(ended(record.state).then_some(record.since))
        }
        Some((_, _, since)) => Ok(Some(since)),
        None => Ok(None),
    }
}

/// Whether a period with prizes is not closed.
fn promises(board: &Board) -> bool {
    let periods = board.periods();
    periods.rules.iter().any(|state| !state.rule.prizes.table.is_empty() && !state.live.is_empty())
}

fn delete(tally: &Tally, board: &Board) -> Result<(), Failure> {
    match boards::delete(tally, &board.id, &Origin::BACKGROUND, None) {
        Ok(_) => {
            tracing::info!(
                leaderboard = board.id.as_str(),
                "its contest has been over for `contests.keep`: it is deleted"
            );
            Ok(())
        }
        // Another server was faster.
        Err(Failure::Rejected(Rejection::LeaderboardNotFound(_))) => Ok(()),
        Err(failure) => Err(failure),
    }
}
