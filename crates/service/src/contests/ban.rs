//! Hiding a member, out of ranks and prizes, or showing it again: while the contest runs.
//!
//! It is hiding on the board, in the lane of scores, so it has its place among scores and before the end.

use super::act::{Actor, find};
use crate::failure::{Failure, blocking};
use crate::players::erase;
use crate::scores::remove::gone;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::contest::{ContestId, Event, state};
use tally_rules::idempotency::Identity;
use tally_rules::{PlayerId, Refusal};
use tally_store::EntrantKey;

/// Hides a member, or shows it again. Says whether it was a replay.
pub async fn ban(
    tally: &Arc<Tally>,
    id: &ContestId,
    actor: &Actor,
    player: &PlayerId,
    hidden: bool,
    identity: Option<Identity>,
) -> Result<bool, Failure> {
    let (of, id, actor, who) = (Arc::clone(tally), id.clone(), actor.clone(), player.clone());
    let board = blocking(move || {
        let record = find(&of, &id)?;
        let by = actor.by(&record, Event::Ban, None)?;
        match state::judge(record.state, Event::Ban, by) {
            Err(Refusal::ContestState(ended)) => return Ok(Err(Refusal::ContestState(ended))),
            judged => judged?,
        };
        let key = EntrantKey { contest: record.no, player: who };
        let enrolled = of.store.ledger().enrolled(&[key])?.pop().flatten();
        Ok(Ok(id.board(enrolled.ok_or(Refusal::PlayerNotFound)?.division)))
    });
    match board.await? {
        Ok(board) => erase::ban(tally, &board, player.clone(), hidden, identity).await,
        // It ended meanwhile; what was done before is still said.
        Err(ended) => gone(tally, identity.as_ref(), ended).await.map(|removed| removed.replayed),
    }
}
