//! Banning a member, out of ranks and prizes, or restoring it, while the contest runs or is reviewed.
//!
//! The ban goes through the score lane, so it is ordered with scores and before the end of the review. Every ban on a contest's
//! leaderboard comes this way, so the rules of contests apply to each.

use super::execute::{ContestActor, find};
use crate::failure::{Failure, blocking};
use crate::players::erase;
use crate::scores::remove::replay_or_reject;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::contest::{ContestId, ContestTrigger, state};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{BoardId, PlayerId, Rejection};
use tally_store::EntrantKey;

/// Bans a player on a leaderboard, or restores it, by the rules of the leaderboard's contest. Returns whether it was a replay.
pub async fn on_board(
    tally: &Arc<Tally>,
    board: &BoardId,
    actor: &ContestActor,
    player: &PlayerId,
    banned: bool,
    idempotency: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    match ContestId::of_board(board) {
        Some((id, division)) => {
            match of(tally, (&id, Some(division)), actor, player, banned, idempotency).await {
                Err(Failure::Rejected(Rejection::ContestNotFound)) => {
                    Err(Rejection::LeaderboardNotFound(None).into())
                }
                done => done,
            }
        }
        None => erase::ban(tally, board, player.clone(), banned, actor.origin.clone(), idempotency).await,
    }
}

/// Bans a member, or restores it. Returns whether it was a replay.
pub async fn ban(
    tally: &Arc<Tally>,
    id: &ContestId,
    actor: &ContestActor,
    player: &PlayerId,
    banned: bool,
    idempotency: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    of(tally, (id, None), actor, player, banned, idempotency).await
}

/// The same, if the member is in that division or none is named.
async fn of(
    tally: &Arc<Tally>,
    (id, named): (&ContestId, Option<Option<u32>>),
    actor: &ContestActor,
    player: &PlayerId,
    banned: bool,
    idempotency: Option<IdempotencyKey>,
) -> Result<bool, Failure> {
    match member_board(tally, (id, named), actor, player, ContestTrigger::Ban).await? {
        Ok(board) => {
            erase::ban(tally, &board, player.clone(), banned, actor.origin.clone(), idempotency).await
        }
        // It ended meanwhile; a retry still gets the first reply.
        Err(ended) => {
            replay_or_reject(tally, idempotency.as_ref(), ended).await.map(|removed| removed.replayed)
        }
    }
}

/// The leaderboard of a member, in that division or in any, for an act that the actor may do now. The inner error is the
/// state of a contest that allows it no more.
pub(super) async fn member_board(
    tally: &Arc<Tally>,
    (id, named): (&ContestId, Option<Option<u32>>),
    actor: &ContestActor,
    player: &PlayerId,
    act: ContestTrigger,
) -> Result<Result<BoardId, Rejection>, Failure> {
    let (reader, id, actor, player) = (Arc::clone(tally), id.clone(), actor.clone(), player.clone());
    let found = blocking(move || {
        let record = find(&reader, &id)?;
        let by = actor.by(&record, act, None)?;
        let row = state::transition(record.state, act, by);
        match row.and_then(|_| record.check_review()) {
            Err(Rejection::ContestState(ended)) => return Ok(Err(Rejection::ContestState(ended))),
            checked => checked?,
        };
        let key = EntrantKey { contest: record.no, player };
        let enrolled = reader.store.ledger().enrolled(&[key])?.pop().flatten();
        let enrolled = enrolled.filter(|one| named.is_none_or(|division| one.division == division));
        Ok(Ok(id.board(enrolled.ok_or(Rejection::PlayerNotFound)?.division)))
    });
    found.await
}
