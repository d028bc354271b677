//! Ending a contest that is played: no score is decided while the ledger's lane stores that, and none after it. Each blocks.

use super::actions::{Action, ContestDone};
use super::execute::{ContestActor, execute, execute_at};
use super::{application_store, bounded_steps};
use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::contest::division;
use tally_rules::contest::{ActorKind, ContestId, ContestRecord, ContestState, ContestTrigger};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{Definition, Micros, Origin};
use tally_store::BoardNo;

/// Ends playing: the review begins.
pub fn finish(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    execute(tally, id, (&actor.origin, idempotency), |record| {
        Ok((actor.by(record, ContestTrigger::Finish, None)?, Action::Finish(boards(tally, id, record)?)))
    })
}

/// Ends it by the clock, at its own end.
pub(super) fn finish_at(tally: &Tally, id: &ContestId, at: Micros) -> Result<ContestDone, Failure> {
    execute_at(tally, id, (&Origin::BACKGROUND, None), Some(at), |record| {
        Ok((ActorKind::Clock, Action::Finish(boards(tally, id, record)?)))
    })
}

/// Cancels it: holds are released, and captured fees are paid back.
pub fn cancel(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let done = execute(tally, id, (&actor.origin, idempotency), |record| {
        Ok((actor.by(record, ContestTrigger::Cancel, None)?, Action::Cancel(boards(tally, id, record)?)))
    })?;
    // It is cancelled even if this fails: the scheduler continues.
    let record = ContestRecord::clone(&done.record);
    if let Err(failure) = bounded_steps::run_remaining_steps(tally, id, record)
        .and_then(|record| application_store::clear(tally, id, record))
    {
        tracing::warn!(%failure, contest = id.as_str(), "release what a contest held; it is tried again");
    }
    Ok(done)
}

/// The boards of a contest that has started, in order of divisions.
pub(super) fn of_contest(tally: &Tally, id: &ContestId, record: &ContestRecord) -> Vec<Arc<Board>> {
    let board = |division| tally.board(&id.board(division));
    match record.contest.division_size {
        _ if record.members == 0 && record.report.is_none() => Vec::new(),
        None => board(None).into_iter().collect(),
        Some(size) => division::sizes(record.members, size).filter_map(|(n, _)| board(Some(n))).collect(),
    }
}

/// The same without gaps: another server may have made one that is not in memory here yet.
pub(super) fn all_of_contest(
    tally: &Tally,
    id: &ContestId,
    record: &ContestRecord,
) -> Result<Vec<Arc<Board>>, Failure> {
    let boards = of_contest(tally, id, record);
    let wanted = match (record.report.is_some(), record.contest.division_size) {
        (false, _) => 0,
        (true, None) => 1,
        (true, Some(size)) => division::sizes(record.members, size).count(),
    };
    if boards.len() != wanted {
        let why = format!("{} of {wanted} leaderboards of the contest are known here", boards.len());
        return Err(Fault::Contention(why).into());
    }
    Ok(boards)
}

/// The leaderboards of a contest that is played or reviewed. With several servers the action is a change of theirs, so other
/// servers plan their batches again.
pub(super) fn boards(
    tally: &Tally,
    id: &ContestId,
    record: &ContestRecord,
) -> Result<Vec<(BoardNo, Definition)>, Failure> {
    if !(record.state == ContestState::Running || record.is_in_review()) || !tally.has_others() {
        return Ok(Vec::new());
    }
    let change = |board: Arc<Board>| (board.no, board.present_definition());
    Ok(all_of_contest(tally, id, record)?.into_iter().map(change).collect())
}
