//! Removing a player from the open parts of a board.

use super::command::{Done, Remove, Removed, Request};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::idempotency::Identity;
use tally_rules::{BoardId, PlayerId};

/// Removes a player. It goes through the lane of scores, so it has its place among the player's submits.
pub async fn remove(
    tally: &Tally,
    board: &BoardId,
    player: PlayerId,
    identity: Option<Identity>,
) -> Result<Removed, Failure> {
    let board = tally.boards.find(board)?;
    let running = identity.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    let done = tally.lane.ask(Request::Remove(Remove { board, player, identity }), running).await?;
    match done {
        Done::Removed(removed) => Ok(removed),
        Done::Submitted(_) | Done::Imported(_) => unreachable!("a removal is answered as a removal"),
    }
}
