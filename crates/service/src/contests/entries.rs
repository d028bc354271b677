//! Entries of a player in contests that are open or run: an application or a membership. Also staff positions, which a renaming
//! neither gives nor leaves behind.
//!
//! An entry belongs to a player's name and to the member that had it. So a name with an entry cannot move to another member, or
//! scores of one member would pay another. Applying and renaming exclude each other on one server. With several servers an
//! application may come between the check and the renaming. A closed member keeps its entries and releases its name; a new
//! member cannot get that name while they exist. Blocks. Not here: entries of an erased player (`erase`).

use super::application_store;
use super::pages::{each_of_contests, each_of_series};
use crate::failure::Failure;
use crate::tally::Tally;
use std::collections::BTreeSet;
use tally_rules::contest::{ContestId, ContestRecord, ContestState, SeriesRecord, Status};
use tally_rules::ledger::member::Handle;
use tally_rules::{PlayerId, Rejection};
use tally_store::EntrantKey;

/// Players of one read: with a page of contests at most 5,000 rows.
const PLAYERS: usize = 10;

/// Rejects a change of players with an entry, and of staff of a contest that is not over, or of a series.
pub(crate) fn refuse(tally: &Tally, players: &[PlayerId]) -> Result<(), Failure> {
    each_of_contests(
        tally,
        &[ContestState::Draft, ContestState::Open, ContestState::Running, ContestState::Finished],
        |page| {
            for (id, record) in page {
                let is_staff = players.iter().any(|player| record.contest.is_staff(player));
                let may_have = matches!(record.state, ContestState::Open | ContestState::Running);
                if is_staff || may_have && has_entry(tally, record, players)? {
                    return Err(Rejection::PlayerInContest(id.as_str().into()).into());
                }
            }
            Ok(())
        },
    )?;
    each_of_series(tally, |page| {
        let is_staff = |record: &SeriesRecord| players.iter().any(|one| record.series.template.is_staff(one));
        match page.iter().find(|(_, record)| is_staff(record)) {
            Some((id, _)) => Err(Rejection::PlayerInContest(id.as_str().into()).into()),
            None => Ok(()),
        }
    })
}

/// The result of the lookup of names for new members.
#[derive(Debug, Default)]
pub(crate) struct NameLookup {
    /// Names that a member has.
    pub(crate) taken: Vec<Handle>,
    /// Names that no member has, and that a closed member left entries under; each with a contest.
    pub(crate) left_behind: Vec<(PlayerId, ContestId)>,
}

/// Looks up names for new members.
pub(crate) fn look_up(tally: &Tally, players: &BTreeSet<PlayerId>) -> Result<NameLookup, Failure> {
    let ledger = tally.store.ledger();
    let handles: Vec<Handle> = players.iter().cloned().map(Handle::Player).collect();
    let holders = ledger.members_of(&handles)?;
    let (mut taken, mut free) = (Vec::new(), Vec::new());
    for ((player, handle), holder) in players.iter().zip(handles).zip(holders) {
        if holder.is_some() { taken.push(handle) } else { free.push(player.clone()) }
    }
    let mut left_behind = Vec::new();
    if free.is_empty() {
        return Ok(NameLookup { taken, left_behind });
    }
    each_of_contests(tally, &[ContestState::Open, ContestState::Running], |page| {
        // An entry without a member belongs to no closed member.
        let paid: Vec<_> = page.iter().filter(|(_, record)| record.contest.needs_members()).collect();
        for players in free.chunks(PLAYERS) {
            let keys = |has_begun: bool| {
                let of = paid.iter().filter(|(_, record)| record.report.is_some() == has_begun);
                let key = |(_, record): &(ContestId, ContestRecord), player: &PlayerId| EntrantKey {
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
                left_behind.extend(id.map(|id| (key.player.clone(), id)));
            }
        }
        Ok(())
    })?;
    Ok(NameLookup { taken, left_behind })
}

fn has_entry(tally: &Tally, record: &ContestRecord, players: &[PlayerId]) -> Result<bool, Failure> {
    if record.report.is_some() {
        let key = |player: &PlayerId| EntrantKey { contest: record.no, player: player.clone() };
        let keys = tally_lanes::keys_to_load(players.iter().map(key));
        return Ok(tally.store.ledger().enrolled(&keys)?.iter().any(Option::is_some));
    }
    match application_store::of(tally, record).and_then(|store| store.observe(record, players)) {
        Ok(observed) => Ok(observed.iter().any(|(_, application)| {
            application.is_some_and(|application| application.status != Status::Rejected)
        })),
        Err(Failure::Rejected(Rejection::ApplicationsLost)) => Ok(false),
        Err(failure) => Err(failure),
    }
}
