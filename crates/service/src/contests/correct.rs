//! Correcting a score with a reason: of any leaderboard, or of a member while its contest is reviewed.
//!
//! Like a ban it goes through the score lane, so it is ordered with the end of the review. Not here: the record (`scores::correct`).

use super::ban::member_board;
use super::execute::ContestActor;
use crate::audit;
use crate::failure::Failure;
use crate::periods::ALL_TIME_NAME;
use crate::scores::correct as records;
use crate::scores::submit::{NewScore, RowResult, earlier};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::contest::{ContestId, ContestTrigger};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, PlayerId, Rejection};

/// Sets the score of a member; the reply is that of a submit.
pub async fn correct(
    tally: &Arc<Tally>,
    id: &ContestId,
    actor: &ContestActor,
    player: &PlayerId,
    (score, subscore): (ScoreInput, Option<i64>),
    idempotency: Option<IdempotencyKey>,
) -> RowResult {
    of(tally, (id, None), actor, player, (score, subscore), idempotency).await
}

/// The same, if the member is in that division or none is named.
async fn of(
    tally: &Arc<Tally>,
    (id, named): (&ContestId, Option<Option<u32>>),
    actor: &ContestActor,
    player: &PlayerId,
    (score, subscore): (ScoreInput, Option<i64>),
    idempotency: Option<IdempotencyKey>,
) -> RowResult {
    let audited = audit::begin(actor.origin.clone(), tally.now())?;
    let found = member_board(tally, (id, named), actor, player, ContestTrigger::Correct).await?;
    let board = found.clone().unwrap_or_else(|_| id.board(None));
    let new = NewScore { board, player: player.clone(), score, subscore, at: None, idempotency };
    match found {
        Ok(_) => records::correct(tally, &new, None, &audited).await,
        // It ended meanwhile; a retry still gets the first reply.
        Err(ended) => earlier(tally, &new, ended).await,
    }
}

/// Sets the score of a player on a leaderboard, by the rules of its contest if it has one. The reply is that of a submit.
pub async fn on_board(
    tally: &Arc<Tally>,
    board: &BoardId,
    actor: &ContestActor,
    (player, period): (&PlayerId, Option<&str>),
    (score, subscore): (ScoreInput, Option<i64>),
    idempotency: Option<IdempotencyKey>,
) -> RowResult {
    let Some((id, division)) = ContestId::of_board(board) else {
        let audited = audit::begin(actor.origin.clone(), tally.now())?;
        let (board, player) = (board.clone(), player.clone());
        let new = NewScore { board, player, score, subscore, at: None, idempotency };
        return records::correct(tally, &new, period, &audited).await;
    };
    if period.is_some_and(|period| period != ALL_TIME_NAME) {
        return Err(Rejection::PeriodNotFound.into());
    }
    match of(tally, (&id, Some(division)), actor, player, (score, subscore), idempotency).await {
        Err(Failure::Rejected(Rejection::ContestNotFound)) => {
            Err(Rejection::LeaderboardNotFound(None).into())
        }
        done => done,
    }
}
