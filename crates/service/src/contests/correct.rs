//! Correcting a score of a member while its contest is reviewed, with a reason.
//!
//! Like a ban it goes through the score lane, so it is ordered with the end of the review. Not here: the record (`scores::correct`).

use super::execute::{ContestActor, find};
use crate::audit;
use crate::failure::blocking;
use crate::scores::correct as records;
use crate::scores::submit::{NewScore, RowResult, earlier};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::contest::{ContestId, Event, state};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::score::ScoreInput;
use tally_rules::{PlayerId, Rejection};
use tally_store::EntrantKey;

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
    let (reader, name, by, who) = (Arc::clone(tally), id.clone(), actor.clone(), player.clone());
    let checked = blocking(move || {
        let record = find(&reader, &name)?;
        let by = by.by(&record, Event::Correct, None)?;
        let row = state::transition(record.state, Event::Correct, by);
        match row.and_then(|_| record.check_review()) {
            Err(Rejection::ContestState(ended)) => return Ok(Err(Rejection::ContestState(ended))),
            checked => checked?,
        };
        let key = EntrantKey { contest: record.no, player: who };
        let enrolled = reader.store.ledger().enrolled(&[key])?.pop().flatten();
        Ok(Ok(enrolled.ok_or(Rejection::PlayerNotFound)?.division))
    });
    let checked = checked.await?;
    let board = id.board(checked.as_ref().ok().copied().flatten());
    let player = player.clone();
    let new = NewScore { board, player, score, subscore, at: None, identity };
    match checked {
        Ok(_) => records::correct(tally, &new, &audited).await,
        // It ended meanwhile; a retry still gets the first reply.
        Err(ended) => earlier(tally, &new, ended).await,
    }
}
