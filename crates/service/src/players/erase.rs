//! Hiding a player on a board, showing it again, and erasing it everywhere.
//!
//! All three go through the lane of scores, so each has its place among the player's submits.

use crate::failure::Failure;
use crate::scores::command::{Ban, Done, Erase, Request};
use crate::tally::Tally;
use tally_rules::idempotency::Identity;
use tally_rules::{BoardId, PlayerId};

/// Hides a player on a board, or shows it again. Says whether it was a replay.
pub async fn ban(
    tally: &Tally,
    board: &BoardId,
    player: PlayerId,
    hidden: bool,
    identity: Option<Identity>,
) -> Result<bool, Failure> {
    let board = tally.boards.find(board)?;
    let running = identity.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    done(tally.lane.ask(Request::Ban(Ban { board, player, hidden, identity }), running).await?)
}

/// Erases a player: profile, records and bans. Says whether it was a replay.
pub async fn erase(tally: &Tally, player: PlayerId, identity: Option<Identity>) -> Result<bool, Failure> {
    let running = identity.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    let boards = tally.boards.list(None, usize::MAX);
    done(tally.lane.ask(Request::Erase(Erase { player, boards, identity }), running).await?)
}

fn done(done: Done) -> Result<bool, Failure> {
    match done {
        Done::Removed(removed) => Ok(removed.replayed),
        Done::Submitted(_) | Done::Imported(_) => unreachable!("a removal is answered as a removal"),
    }
}
