//! Applying, deciding on applications, and taking one back, wherever they are (`desk`). Each blocks.

use super::act::Actor;
use super::command::{ContestDone, Seen, What};
use super::desk;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::PoisonError;
use tally_rules::contest::{ContestId, Record, Status};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{PlayerId, Rejection};
use tally_store::EntrantKey;

/// A player applies.
pub fn apply(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    player: &PlayerId,
    identity: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let _not_renamed = tally.contests.renaming.read().unwrap_or_else(PoisonError::into_inner);
    desk::at(tally, id, actor, identity, |desk, ask| desk.apply(ask, player))
}

/// Players are accepted, or rejected; each row for itself. A replay has the rows as they stand.
pub fn decide(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    players: &[PlayerId],
    accept: bool,
    identity: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let mut done = desk::at(tally, id, actor, identity, |desk, ask| desk.decide(ask, players, accept))?;
    if done.replayed {
        done.what = What::Decided(standing(tally, &done.record, players)?);
    }
    Ok(done)
}

/// How applications stand: after the start its members are left of those who were accepted, and nobody else.
fn standing(
    tally: &Tally,
    record: &Record,
    players: &[PlayerId],
) -> Result<Vec<Result<Status, Rejection>>, Failure> {
    let seen = desk::of(tally, record)?.seen(record, players)?;
    let key = |player: &PlayerId| EntrantKey { contest: record.no, player: player.clone() };
    let keys = tally_lanes::keys_to_load(players.iter().map(key));
    let enrolled = tally.store.ledger().enrolled(&keys)?;
    let one = |(player, application): Seen| match application {
        Some(application) => Ok(application.status),
        None => {
            let at = keys.binary_search(&key(&player)).ok();
            at.and_then(|at| enrolled[at]).map(|_| Status::Accepted).ok_or(Rejection::NotApplied)
        }
    };
    Ok(seen.into_iter().map(one).collect())
}

/// A player takes the application back, or staff does.
pub fn withdraw(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    player: &PlayerId,
    identity: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    desk::at(tally, id, actor, identity, |desk, ask| desk.withdraw(ask, player))
}
