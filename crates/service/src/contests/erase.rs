//! What becomes of a player's applications when the player is erased. Blocks.
//!
//! Where a contest is open they are taken back, and what is held for them is released. Who is a member stays one: the fee that was
//! paid belongs to it, and settling and paying back go by members, so neither meets a gap. Its scores go with those of all
//! boards, and with them its rank. A rejection stays until the contest's applications are cleared, or erasing would be a way
//! round it. Not here: boards and profiles (`players::erase`).

use super::act::Actor;
use super::{apply, desk};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::{ContestId, Record, State};
use tally_rules::{PlayerId, Rejection};

/// Open contests of one read.
const PAGE: usize = 500;

/// Takes back every application that can be taken back. Says whether there was one.
pub(crate) fn take_back(tally: &Tally, player: &PlayerId) -> Result<bool, Failure> {
    let (mut found, mut after) = (false, None::<ContestId>);
    loop {
        // An application that is taken back stays so.
        let told = |failure: Failure| if found { failure.after_a_part() } else { failure };
        let page = tally.store.ledger().contests(Some(State::Open), after.as_ref(), PAGE);
        let page = page.map_err(|error| told(error.into()))?;
        for (id, record) in &page {
            let told = |failure: Failure| if found { failure.after_a_part() } else { failure };
            found |= of_contest(tally, id, record, player).map_err(told)?;
        }
        if page.len() < PAGE {
            return Ok(found);
        }
        after = page.into_iter().next_back().map(|(id, _)| id);
    }
}

fn of_contest(tally: &Tally, id: &ContestId, record: &Record, player: &PlayerId) -> Result<bool, Failure> {
    let asked = desk::of(tally, record).and_then(|desk| desk.seen(record, std::slice::from_ref(player)));
    let has = match asked {
        Ok(seen) => seen.iter().any(|(_, application)| application.is_some()),
        // They are gone, or were cleared meanwhile.
        Err(Failure::Refused(Rejection::ApplicationsLost)) => false,
        Err(failure) => return Err(failure),
    };
    if !has {
        return Ok(false);
    }
    match apply::withdraw(tally, id, &Actor::Server, player, None) {
        Ok(_) => Ok(true),
        // It has started meanwhile, or somebody else was faster.
        Err(Failure::Refused(
            Rejection::ContestState(_)
            | Rejection::NotApplied
            | Rejection::AlreadyRejected
            | Rejection::ApplicationsLost,
        )) => Ok(false),
        Err(failure) => Err(failure),
    }
}
