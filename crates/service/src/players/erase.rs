//! Hiding a player on a board, showing it again, and erasing it everywhere.
//!
//! All three go through the lane of scores, so each has its place among the player's submits.

use crate::boards::Board;
use crate::failure::{Failure, blocking};
use crate::periods::keeper;
use crate::scores::command::{Ban, Done, Erase, Request};
use crate::scores::remove::gone;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::idempotency::Identity;
use tally_rules::{BoardId, PlayerId};
use tally_store::Part;

/// Hides a player on a board, or shows it again. Says whether it was a replay.
pub async fn ban(
    tally: &Arc<Tally>,
    board: &BoardId,
    player: PlayerId,
    hidden: bool,
    identity: Option<Identity>,
) -> Result<bool, Failure> {
    let board = match tally.boards.find(board) {
        Ok(board) => board,
        Err(refusal) => return gone(tally, identity.as_ref(), refusal).await.map(|_| true),
    };
    let running = identity.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    let ban = Ban { board: Arc::clone(&board), player: player.clone(), hidden, identity };
    let replayed = done(tally.lane.ask(Request::Ban(ban), running).await?)?;
    let periods = !board.periods().rules.is_empty();
    if periods {
        let tally = Arc::clone(tally);
        blocking(move || keeper::refresh_player(&tally, &board, &player)).await?;
    }
    Ok(replayed)
}

/// Erases a player: profile, records and bans. Says whether it was a replay.
pub async fn erase(
    tally: &Arc<Tally>,
    player: PlayerId,
    identity: Option<Identity>,
) -> Result<bool, Failure> {
    let running = identity.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    let boards = tally.boards.list(None, usize::MAX);
    let (tally, of) = (Arc::clone(tally), (boards.clone(), player.clone()));
    let reader = Arc::clone(&tally);
    let parts = blocking(move || parts_of_all(&reader, &of.0, &of.1)).await?;
    let erase = Erase { player, boards, identity };
    let replayed = done(tally.lane.ask(Request::Erase(erase), running).await?)?;
    let refresh =
        move || parts.iter().try_for_each(|(board, parts)| keeper::refresh_parts(&tally, board, parts));
    blocking(refresh).await?;
    Ok(replayed)
}

/// A board, and some of its periods.
type PartsOf = (Arc<Board>, Vec<Part>);

/// Periods in which a player has a record.
fn parts_of_all(tally: &Tally, boards: &[Arc<Board>], player: &PlayerId) -> Result<Vec<PartsOf>, Failure> {
    let mut all = Vec::new();
    for board in boards {
        all.push((Arc::clone(board), keeper::parts_of(&*tally.store, board, player)?));
    }
    Ok(all)
}

fn done(done: Done) -> Result<bool, Failure> {
    match done {
        Done::Removed(removed) => Ok(removed.replayed),
        _ => unreachable!("a removal is answered as a removal"),
    }
}
