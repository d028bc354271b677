//! Applying, deciding on applications, and taking one back. Each blocks.

use super::act::{Actor, act};
use super::command::{Act, ContestDone, Seen};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::PlayerId;
use tally_rules::contest::{ContestId, Event, Record};
use tally_rules::idempotency::Identity;
use tally_rules::ledger::member::Handle;
use tally_store::EntrantKey;

/// A player applies.
pub fn apply(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    player: &PlayerId,
    identity: Option<&Identity>,
) -> Result<ContestDone, Failure> {
    act(tally, id, identity, |record| {
        let by = actor.by(record, Event::Apply, Some(player))?;
        let handle = Handle::Player(player.clone());
        let needs = record.contest.needs_members();
        let member = if needs { tally.store.ledger().member_of(&handle)? } else { None };
        Ok((by, Act::Apply { player: player.clone(), member }))
    })
}

/// Players are accepted, or rejected; each row for itself. A player that is named twice is one row.
pub fn decide(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    players: &[PlayerId],
    accept: bool,
    identity: Option<&Identity>,
) -> Result<ContestDone, Failure> {
    act(tally, id, identity, |record| {
        let by = actor.by(record, Event::Decide, None)?;
        let rows = players.iter().map(|player| seen(tally, record, player));
        Ok((by, Act::Decide { rows: rows.collect::<Result<_, _>>()?, accept }))
    })
}

/// A player takes the application back, or staff does.
pub fn withdraw(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    player: &PlayerId,
    identity: Option<&Identity>,
) -> Result<ContestDone, Failure> {
    act(tally, id, identity, |record| {
        let by = actor.by(record, Event::Withdraw, Some(player))?;
        Ok((by, Act::Withdraw(seen(tally, record, player)?)))
    })
}

fn seen(tally: &Tally, record: &Record, player: &PlayerId) -> Result<Seen, Failure> {
    let key = EntrantKey { contest: record.no, player: player.clone() };
    let application = tally.store.ledger().application(&key)?;
    Ok((key.player, application))
}
