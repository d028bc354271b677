//! The start: one durable transaction makes members of those accepted, captures their fees, makes the leaderboard and changes
//! the state; then the applications are cleared. Blocks.

use super::act::{Actor, act_at};
use super::command::{Act, ContestDone, What};
use super::{play, work};
use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::servers;
use crate::tally::Tally;
use std::sync::{Arc, PoisonError};
use tally_rules::contest::start::Failed;
use tally_rules::contest::{Application, By, ContestId, Event, Record, Status};
use tally_rules::idempotency::Identity;
use tally_rules::{Micros, PlayerId, Refusal};
use tally_store::BoardRow;
use tally_store::plan::ALL_TIME;

/// Accepted applications of one read.
const PAGE: usize = 1_000;

/// What came of a start.
#[derive(Clone, Debug)]
pub struct Started {
    /// The contest after it.
    pub done: ContestDone,
    /// Who did not become a member.
    pub failed: Vec<Failed>,
}

/// Starts it.
pub fn start(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    identity: Option<&Identity>,
) -> Result<Started, Failure> {
    let _running = identity.map(|one| tally.begin(&one.key)).transpose()?;
    start_at(tally, id, identity, None, |record| actor.by(record, Event::Start, None))
}

/// The same as of some time.
pub(super) fn start_at(
    tally: &Tally,
    id: &ContestId,
    identity: Option<&Identity>,
    at: Option<Micros>,
    by: impl Fn(&Record) -> Result<By, Refusal>,
) -> Result<Started, Failure> {
    let mut done = {
        let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act_at(tally, id, identity, at, |record| {
            let by = by(record)?;
            let divisions =
                record.contest.division_size.map_or(1, |size| record.desk.accepted.div_ceil(size.get()));
            if tally.boards.len() + divisions as usize > tally.settings.boards_max {
                return Err(Refusal::TooManyBoards.into());
            }
            Ok((by, Act::Start(accepted(tally, record)?)))
        })?;
        if let What::Started(_, boards) = &done.what {
            serve(tally, &done.record, boards)?;
        }
        done
    };
    let failed = match std::mem::replace(&mut done.what, What::Nothing) {
        What::Started(failed, _) => failed,
        _ => done.record.report.as_ref().map_or_else(Vec::new, |report| report.first_failed.clone()),
    };
    // It has started, whatever becomes of this: the keeper goes on with it.
    if let Err(failure) = work::go_on(tally, id) {
        tracing::warn!(%failure, contest = id.as_str(), "clear the applications of a contest; it is tried again");
    }
    Ok(Started { done, failed })
}

/// Everybody who is accepted, in order of acceptance.
fn accepted(tally: &Tally, record: &Record) -> Result<Vec<(PlayerId, Application)>, Failure> {
    let (mut all, mut above) = (Vec::with_capacity(record.desk.accepted as usize), 0);
    loop {
        let page = tally.store.ledger().applications(record.no, Status::Accepted, above, PAGE)?;
        let found = page.len();
        above = page.last().map_or(above, |(_, application)| application.place);
        all.extend(page);
        if found < PAGE {
            return Ok(all);
        }
    }
}

/// Boards that are stored are there for everybody.
fn serve(tally: &Tally, record: &Record, boards: &[BoardRow]) -> Result<(), Failure> {
    for row in boards {
        let broken = |refusal: Refusal| Fault::Broken(refusal.detail());
        let board = Board::new(row.clone(), Vec::new(), &tally.settings.ranking).map_err(broken)?;
        play::tell(&board, record);
        if board.is_shared() {
            servers::open_order(&*tally.store, &board, ALL_TIME, &board.order);
            // Where that fails its first batch does it.
            drop(servers::renew(&*tally.store, &board));
        }
        tally.boards.set(&row.id, Some(Arc::new(board)));
    }
    Ok(())
}
