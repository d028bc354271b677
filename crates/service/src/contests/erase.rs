//! The applications of an erased player. Blocks.
//!
//! Applications of open contests are withdrawn, and their holds are released. A member of a contest stays one: the paid fee
//! belongs to it, and settling and refunds scan the members. Its scores are erased as on all leaderboards, and its rank with
//! them. A rejection stays until the contest's applications are cleared, because erasing must not undo it. Not here:
//! leaderboards and profiles (`players::erase`).

use super::execute::ActingAs;
use super::pages::each_of_contests;
use super::{application_store, apply};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::{ContestId, ContestRecord, ContestState};
use tally_rules::{Actor, PlayerId, Rejection};

/// Withdraws every application that can be withdrawn. Returns whether there was one.
pub(crate) fn take_back(tally: &Tally, player: &PlayerId, actor: Actor) -> Result<bool, Failure> {
    let mut found = false;
    let done = each_of_contests(tally, &[ContestState::Open], |page| {
        for (id, record) in page {
            found |= of_contest(tally, (id, record), player, actor)?;
        }
        Ok(())
    });
    // An application that was withdrawn stays so.
    done.map_err(|failure| if found { failure.after_a_window() } else { failure })?;
    Ok(found)
}

fn of_contest(
    tally: &Tally,
    (id, record): (&ContestId, &ContestRecord),
    player: &PlayerId,
    actor: Actor,
) -> Result<bool, Failure> {
    let observed = application_store::of(tally, record)
        .and_then(|store| store.observe(record, std::slice::from_ref(player)));
    let has = match observed {
        Ok(observed) => observed.iter().any(|(_, application)| application.is_some()),
        // They are lost, or were cleared meanwhile.
        Err(Failure::Rejected(Rejection::ApplicationsLost)) => false,
        Err(failure) => return Err(failure),
    };
    if !has {
        return Ok(false);
    }
    match apply::withdraw(tally, id, &ActingAs::Server.by(actor), player, None) {
        Ok(_) => Ok(true),
        // It has started meanwhile, or another request was faster.
        Err(Failure::Rejected(
            Rejection::ContestState(_)
            | Rejection::NotApplied
            | Rejection::AlreadyRejected
            | Rejection::ApplicationsLost,
        )) => Ok(false),
        Err(failure) => Err(failure),
    }
}
