//! Correcting a score of a member while its contest is reviewed, with a reason.
//!
//! Like a ban it goes through the score lane, so it is ordered with the end of the review. Not here: the record (`scores::correct`).

use super::ban::member_board;
use super::execute::ContestActor;
use crate::audit;
use crate::scores::correct as records;
use crate::scores::submit::{NewScore, RowResult, earlier};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::PlayerId;
use tally_rules::contest::{ContestId, Event};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::score::ScoreInput;

/// Sets the score of a member; the reply is that of a submit.
pub async fn correct(
    tally: &Arc<Tally>,
    id: &ContestId,
    actor: &ContestActor,
    player: &PlayerId,
    (score, subscore): (ScoreInput, Option<i64>),
    identity: Option<IdempotencyKey>,
) -> RowResult {
    let audited = audit::begin(actor.origin.clone(), tally.now())?;
    let found = member_board(tally, (id, None), actor, player, Event::Correct).await?;
    let board = found.clone().unwrap_or_else(|_| id.board(None));
    let new = NewScore { board, player: player.clone(), score, subscore, at: None, identity };
    match found {
        Ok(_) => records::correct(tally, &new, &audited).await,
        // It ended meanwhile; a retry still gets the first reply.
        Err(ended) => earlier(tally, &new, ended).await,
    }
}
