//! Joining a contest that runs, in the store whatever kept its applications. Blocks.
//!
//! The first member of a division makes its leaderboard. So members of a contest with divisions join one at a time on each server, as
//! contests start.

use super::actions::{Action, ActionResult};
use super::application_store::{ApplicationRequest, AttemptResult};
use super::execute::{attempt, find};
use super::start;
use crate::boards::ReservedRoom;
use crate::failure::Failure;
use crate::servers::in_doubt;
use std::sync::PoisonError;
use tally_rules::contest::{ContestRecord, ContestTrigger};
use tally_rules::ledger::member::Handle;
use tally_rules::{PlayerId, Rejection};
use tally_store::BoardRow;

pub(super) fn join(request: &ApplicationRequest<'_>, player: &PlayerId) -> AttemptResult {
    if request.record.contest.division_size.is_none() {
        return join_at(request, request.record.clone(), player, |_, _| Ok(()));
    }
    let tally = request.tally;
    in_doubt::resolve_all(tally)?;
    let room = ReservedRoom::begin(tally);
    let record = find(tally, request.id)?;
    if record.new_division().is_some() && !room.reserve(1)? {
        return Err(Rejection::TooManyBoards.into());
    }
    join_at(request, record, player, |record, board| {
        let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
        // From here on the leaderboard counts instead of its room.
        drop(room);
        start::serve(tally, record, &[board])
    })
}

fn join_at(
    request: &ApplicationRequest<'_>,
    record: ContestRecord,
    player: &PlayerId,
    serve: impl FnOnce(&ContestRecord, BoardRow) -> Result<(), Failure>,
) -> AttemptResult {
    let by = request.actor.by(&record, ContestTrigger::Apply, Some(player))?;
    let ledger = request.tally.store.ledger();
    let needs = record.contest.needs_members();
    let member = if needs { ledger.member_of(&Handle::Player(player.clone()))? } else { None };
    let action = Action::Apply { player: player.clone(), member, accept: None };
    let sender = (&request.actor.origin, request.idempotency);
    let Some(mut done) = attempt(request.tally, request.id, record, (sender, None), (by, action))? else {
        return Ok(None);
    };
    if let ActionResult::Joined(application, board) = done.result {
        done.result = ActionResult::Applied(application);
        board.map_or(Ok(()), |board| serve(&done.record, board))?;
    }
    Ok(Some(done))
}
