//! Whether a player has an entry in a contest that is open or runs: its application, or its place among the members.
//!
//! An entry is of a player's name and of the member that had it. So a name with an entry neither comes to another member nor goes
//! from its own, or scores of one member would pay another. Applying and renaming exclude each other on one server; on several
//! servers an application may come between the look and the renaming. A closed member keeps its entries and releases its name; a
//! new member does not get that name while they are there. A closing that comes between that look and the new member is not
//! seen. Blocks. Not here: what becomes of entries of an erased player (`erase`).

use super::desk;
use crate::failure::Failure;
use crate::tally::Tally;
use std::collections::BTreeSet;
use tally_rules::contest::{ContestId, Record, State, Status};
use tally_rules::ledger::member::Handle;
use tally_rules::{PlayerId, Refusal};
use tally_store::EntrantKey;

/// Contests of one read.
const PAGE: usize = 500;

/// Players of one read: with a page of contests at most 5,000 rows.
const PLAYERS: usize = 10;

/// Refuses a change of players with an entry.
pub(crate) fn refuse(tally: &Tally, players: &[PlayerId]) -> Result<(), Failure> {
    each_page(tally, |page| {
        for (id, record) in page {
            if has_entry(tally, record, players)? {
                return Err(Refusal::PlayerInContest(id.as_str().into()).into());
            }
        }
        Ok(())
    })
}

/// Those of some players that no member has, and that a closed member has entries under; each with a contest.
pub(crate) fn left_behind(
    tally: &Tally,
    players: &BTreeSet<PlayerId>,
) -> Result<Vec<(PlayerId, ContestId)>, Failure> {
    let ledger = tally.store.ledger();
    let handles: Vec<Handle> = players.iter().cloned().map(Handle::Player).collect();
    let holders = ledger.members_of(&handles)?;
    let free = players.iter().zip(holders).filter(|(_, holder)| holder.is_none());
    let free: Vec<PlayerId> = free.map(|(player, _)| player.clone()).collect();
    let mut found = Vec::new();
    if free.is_empty() {
        return Ok(found);
    }
    each_page(tally, |page| {
        // Entries of others are of no member.
        let paid: Vec<_> = page.iter().filter(|(_, record)| record.contest.needs_members()).collect();
        for players in free.chunks(PLAYERS) {
            let keys = |has_begun: bool| {
                let of = paid.iter().filter(|(_, record)| record.report.is_some() == has_begun);
                let key = |(_, record): &(ContestId, Record), player: &PlayerId| EntrantKey {
                    contest: record.no,
                    player: player.clone(),
                };
                let keys = of.flat_map(|one| players.iter().map(move |player| key(one, player)));
                tally_lanes::keys_to_load(keys)
            };
            let (applied, enrolled) = (keys(false), keys(true));
            let applications = ledger.applications_of(&applied)?;
            let is_open = |one: &Option<_>| {
                one.is_some_and(|one: tally_rules::contest::Application| one.status != Status::Rejected)
            };
            let of_open =
                applied.iter().zip(&applications).filter(|(_, one)| is_open(one)).map(|(key, _)| key);
            let members = ledger.enrolled(&enrolled)?;
            let of_begun = enrolled.iter().zip(&members).filter(|(_, one)| one.is_some()).map(|(key, _)| key);
            for key in of_open.chain(of_begun) {
                let id = paid.iter().find(|(_, record)| record.no == key.contest).map(|(id, _)| id.clone());
                found.extend(id.map(|id| (key.player.clone(), id)));
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Pages of contests that are open or run.
fn each_page(
    tally: &Tally,
    mut with: impl FnMut(&[(ContestId, Record)]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // A contest that starts meanwhile is met in its next state.
    for state in [State::Open, State::Running] {
        let mut after = None::<ContestId>;
        loop {
            let page = tally.store.ledger().contests(Some(state), after.as_ref(), PAGE)?;
            with(&page)?;
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
