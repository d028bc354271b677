//! Hiding a member, out of ranks and prizes, or showing it again: while the contest runs.
//!
//! It is hiding on the board, in the lane of scores, so it has its place among scores and before the end. A contest's board is
//! not hidden on by any other way, so the rules of contests judge every such request.

use super::act::{Actor, find};
use crate::failure::{Failure, blocking};
use crate::players::erase;
use crate::scores::remove::gone;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::contest::{ContestId, Event, state};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{BoardId, PlayerId, Rejection};
use tally_store::EntrantKey;

/// Hides a player on a board, or shows it again, by the rules of the contest whose board it is. Says whether it was a replay.
pub async fn on_board(
    tally: &Arc<Tally>,
    board: &BoardId,
    actor: &Actor,
    player: &PlayerId,
    hidden: bool,
    identity: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    match ContestId::of_board(board) {
        Some((id, division)) => {
            match of(tally, (&id, Some(division)), actor, player, hidden, identity).await {
                Err(Failure::Refused(Rejection::ContestNotFound)) => {
                    Err(Rejection::LeaderboardNotFound(None).into())
                }
                done => done,
            }
        }
        None => erase::ban(tally, board, player.clone(), hidden, identity).await,
    }
}

/// Hides a member, or shows it again. Says whether it was a replay.
pub async fn ban(
    tally: &Arc<Tally>,
    id: &ContestId,
    actor: &Actor,
    player: &PlayerId,
    hidden: bool,
    identity: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    of(tally, (id, None), actor, player, hidden, identity).await
}

/// The same, where the member is of that division if one is named.
async fn of(
    tally: &Arc<Tally>,
    (id, named): (&ContestId, Option<Option<u32>>),
    actor: &Actor,
    player: &PlayerId,
    hidden: bool,
    identity: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    let (reader, id, actor, who) = (Arc::clone(tally), id.clone(), actor.clone(), player.clone());
    let board = blocking(move || {
        let record = find(&reader, &id)?;
        let by = actor.by(&record, Event::Ban, None)?;
        match state::judge(record.state, Event::Ban, by) {
            Err(Rejection::ContestState(ended)) => return Ok(Err(Rejection::ContestState(ended))),
            judged => judged?,
        };
        let key = EntrantKey { contest: record.no, player: who };
        let enrolled = reader.store.ledger().enrolled(&[key])?.pop().flatten();
        let enrolled = enrolled.filter(|one| named.is_none_or(|division| one.division == division));
        Ok(Ok(id.board(enrolled.ok_or(Rejection::PlayerNotFound)?.division)))
    });
    match board.await? {
        Ok(board) => erase::ban(tally, &board, player.clone(), hidden, identity).await,
        // It ended meanwhile; what was done before is still said.
        Err(ended) => gone(tally, identity.as_ref(), ended).await.map(|removed| removed.replayed),
    }
}
