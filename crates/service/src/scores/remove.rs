//! Removing a player from the open parts of a board.

use super::command::{Done, Remove, Removed, Request};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{BoardId, PlayerId, Rejection};

/// Removes a player. It goes through the lane of scores, so it has its place among the player's submits.
pub async fn remove(
    tally: &Tally,
    board: &BoardId,
    player: PlayerId,
    identity: Option<IdempotencyKey>,
) -> Result<Removed, Failure> {
    tally.of_present(board, || remove_once(tally, board, player.clone(), identity.clone())).await
}

async fn remove_once(
    tally: &Tally,
    board: &BoardId,
    player: PlayerId,
    identity: Option<IdempotencyKey>,
) -> Result<Removed, Failure> {
    let board = match tally.find(board).await {
        Ok(board) => board,
        Err(rejection) => return gone(tally, identity.as_ref(), rejection).await,
    };
    let running = identity.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    let done = tally.lane.ask(Request::Remove(Remove { board, player, identity }), running).await?;
    match done {
        Done::Removed(removed) => Ok(removed),
        _ => unreachable!("a removal is answered as a removal"),
    }
}

/// What to say of a change whose board is gone: its first answer, if it was done before.
pub(crate) async fn gone(
    tally: &Tally,
    identity: Option<&IdempotencyKey>,
    rejection: Rejection,
) -> Result<Removed, Failure> {
    let stored = match identity {
        Some(identity) => tally.stored(identity).await?,
        None => None,
    };
    stored.map(|_| Removed { replayed: true }).ok_or(Failure::Refused(rejection))
}
