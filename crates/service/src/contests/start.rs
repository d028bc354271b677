//! The start: one transaction makes members of the accepted players, captures their fees, makes the leaderboards and changes
//! the state; then the applications are cleared. Blocks.

use super::actions::{Action, ActionResult, ContestDone};
use super::execute::{ContestActor, Sender, execute_at, find};
use super::{application_store, bounded_steps, play};
use crate::boards::{self, Board, ReservedRoom};
use crate::failure::{Failure, Fault};
use crate::servers::{self, in_doubt};
use crate::tally::Tally;
use std::cell::Cell;
use std::sync::{Arc, PoisonError};
use tally_rules::contest::start::InvalidApplication;
use tally_rules::contest::{ActorKind, Contest, ContestId, ContestRecord, ContestTrigger, state};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{Micros, Rejection};
use tally_store::BoardRow;
use tally_store::plan::ALL_TIME;

/// The reply to a start.
#[derive(Clone, Debug)]
pub struct Started {
    /// The contest after it.
    pub done: ContestDone,
    /// Players that did not become members.
    pub failed: Vec<InvalidApplication>,
}

/// Starts a contest.
pub fn start(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    idempotency: Option<&IdempotencyKey>,
) -> Result<Started, Failure> {
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    start_at(tally, id, (&actor.origin, idempotency), None, |record| {
        actor.by(record, ContestTrigger::Start, None)
    })
}

/// The same as of a given instant.
pub(super) fn start_at(
    tally: &Tally,
    id: &ContestId,
    sender: Sender<'_>,
    at: Option<Micros>,
    by: impl Fn(&ContestRecord) -> Result<ActorKind, Rejection>,
) -> Result<Started, Failure> {
    in_doubt::resolve_all(tally)?;
    let (held, room) = (Cell::new(false), ReservedRoom::begin(tally));
    let done = execute_at(tally, id, sender, at, |record| {
        let by = by(record)?;
        // A caller that may not start it, or not now, freezes nothing.
        if state::transition(record.state, ContestTrigger::Start, by).is_err() {
            return Ok((by, Action::Start(Vec::new())));
        }
        let applications = application_store::of(tally, record)?;
        held.set(true);
        let rows = match applications.freeze(record).and_then(|()| applications.accepted(record)) {
            // Another start has cleared them; the transaction finds that the contest has changed.
            Err(Failure::Rejected(Rejection::ApplicationsLost))
                if application_store::has_moved_on(tally, id, record)? =>
            {
                return Ok((by, Action::Start(Vec::new())));
            }
            rows => rows?,
        };
        let members = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        if !room.reserve(record.contest.boards_of(members) as usize)? {
            return Err(Rejection::TooManyBoards.into());
        }
        Ok((by, Action::Start(rows)))
    });
    if done.is_err() && held.get() {
        thaw(tally, id);
    }
    let mut done = done?;
    if let ActionResult::Started(_, boards) = &done.result {
        let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
        // From here on the leaderboards count instead of their room.
        drop(room);
        serve(tally, &done.record, boards)?;
    } else {
        drop(room);
        if done.state_changed {
            tracing::info!(
                contest = id.as_str(),
                "it has fewer players than `players_min`, so it is cancelled"
            );
        }
    }
    let failed = match std::mem::replace(&mut done.result, ActionResult::Nothing) {
        ActionResult::Started(failed, _) => failed,
        _ => done.record.report.as_ref().map_or_else(Vec::new, |report| report.first_failed.clone()),
    };
    // It has started even if this fails: the scheduler continues.
    let record = ContestRecord::clone(&done.record);
    if let Err(failure) = bounded_steps::run_remaining_steps(tally, id, record)
        .and_then(|record| application_store::clear(tally, id, record))
    {
        tracing::warn!(%failure, contest = id.as_str(), "clear the applications of a contest; it is tried again");
    }
    Ok(Started { done, failed })
}

/// How many leaderboards may still be made, after making room for a contest with so many members.
pub(super) fn boards_free(tally: &Tally, contest: &Contest, members: u32) -> Result<u32, Failure> {
    let free = || tally.settings.boards_max.saturating_sub(tally.boards.len());
    let wanted = contest.boards_of(members) as usize;
    if free() < wanted {
        let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
        boards::make_room(tally, wanted)?;
    }
    Ok(u32::try_from(free()).unwrap_or(u32::MAX))
}

/// Rejects a contest whose leaderboards for so many members would exceed the limit.
pub(super) fn check_boards(tally: &Tally, contest: &Contest, members: u32) -> Result<(), Failure> {
    let free = boards_free(tally, contest, members)?;
    if contest.boards_of(members) > free { Err(Rejection::TooManyBoards.into()) } else { Ok(()) }
}

/// Thaws the applications of a start that failed.
fn thaw(tally: &Tally, id: &ContestId) {
    let gone = find(tally, id).and_then(|record| application_store::of(tally, &record)?.thaw(tally, id));
    if let Err(failure) = gone {
        tracing::debug!(%failure, contest = id.as_str(), "thaw applications; a request that waits for them does it");
    }
}

/// Adds stored leaderboards to those that are served.
pub(super) fn serve(tally: &Tally, record: &ContestRecord, boards: &[BoardRow]) -> Result<(), Failure> {
    for row in boards {
        let broken = |rejection: Rejection| Fault::Broken(rejection.detail());
        let board = Board::new(row.clone(), Vec::new(), &tally.settings.ranking).map_err(broken)?;
        play::update(&board, record);
        if board.is_shared() {
            servers::load_ranking(&*tally.store, &board, ALL_TIME, &board.ranking);
            // If that fails, its first batch does it.
            drop(servers::renew(&*tally.store, &board));
        }
        tally.boards.set(&row.id, Some(Arc::new(board)));
    }
    Ok(())
}
