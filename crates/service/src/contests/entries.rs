//! Whether a player has an entry in a contest that is open or runs: its application, or its place among the members.
//!
//! An entry is of a player's name and of the member that had it. So a name with an entry neither comes to another member nor goes
//! from its own, or scores of one member would pay another. Applying and renaming exclude each other on one server; on several
//! servers an application may come between the look and the renaming. Blocks. Not here: what becomes of entries of an
//! erased player (`erase`).

use super::desk;
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::{ContestId, Record, State, Status};
use tally_rules::{PlayerId, Refusal};
use tally_store::EntrantKey;

/// Contests of one read.
const PAGE: usize = 500;

/// Refuses a change of players with an entry.
pub(crate) fn refuse(tally: &Tally, players: &[PlayerId]) -> Result<(), Failure> {
    // A contest that starts meanwhile is met in its next state.
    for state in [State::Open, State::Running] {
        let mut after = None::<ContestId>;
        loop {
            let page = tally.store.ledger().contests(Some(state), after.as_ref(), PAGE)?;
            for (id, record) in &page {
                if has_entry(tally, record, players)? {
                    return Err(Refusal::PlayerInContest(id.as_str().into()).into());
                }
            }
            if page.len() < PAGE {
                break;
            }
            after = page.into_iter().next_back().map(|(id, _)| id);
        }
    }
    Ok(())
}

fn has_entry(tally: &Tally, record: &Record, players: &[PlayerId]) -> Result<bool, Failure> {
    if record.report.is_some() {
        let key = |player: &PlayerId| EntrantKey { contest: record.no, player: player.clone() };
        let keys = tally_lanes::keys_to_load(players.iter().map(key));
        return Ok(tally.store.ledger().enrolled(&keys)?.iter().any(Option::is_some));
    }
    match desk::of(tally, record).and_then(|desk| desk.seen(record, players)) {
        Ok(seen) => Ok(seen.iter().any(|(_, application)| {
            application.is_some_and(|application| application.status != Status::Rejected)
        })),
        Err(Failure::Refused(Refusal::ApplicationsLost)) => Ok(false),
        Err(failure) => Err(failure),
    }
}
