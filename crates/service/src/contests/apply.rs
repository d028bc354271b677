//! Applying, deciding on applications, and withdrawing one, in any application store. Each blocks.

use super::actions::{ActionResult, ContestDone, ObservedApplication};
use super::application_store;
use super::execute::ContestActor;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::PoisonError;
use tally_rules::contest::{Application, ContestId, ContestRecord, Status};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{PlayerId, Rejection};
use tally_store::EntrantKey;

/// A player applies.
pub fn apply(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    player: &PlayerId,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let _not_renamed = tally.contests.renaming.read().unwrap_or_else(PoisonError::into_inner);
    application_store::at(tally, id, actor, idempotency, |store, request| store.apply(request, player))
}

/// Accepts or rejects players; each row for itself. A replay returns their present status.
pub fn decide(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    players: &[PlayerId],
    accept: bool,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let mut done = application_store::at(tally, id, actor, idempotency, |store, request| {
        store.decide(request, players, accept)
    })?;
    if done.replayed {
        done.result = ActionResult::Decided(statuses(tally, &done.record, players)?);
    }
    Ok(done)
}

/// The present applications of players, in their order; a contest that has started has none.
pub fn present(
    tally: &Tally,
    record: &ContestRecord,
    players: &[PlayerId],
) -> Result<Vec<Option<Application>>, Failure> {
    let observed = application_store::of(tally, record)?.observe(record, players)?;
    Ok(observed.into_iter().map(|(_, application)| application).collect())
}

/// The present status of players: after the start the accepted ones are members, and no other application is left.
fn statuses(
    tally: &Tally,
    record: &ContestRecord,
    players: &[PlayerId],
) -> Result<Vec<Result<Status, Rejection>>, Failure> {
    let observed = application_store::of(tally, record)?.observe(record, players)?;
    let key = |player: &PlayerId| EntrantKey { contest: record.no, player: player.clone() };
    let keys = tally_lanes::keys_to_load(players.iter().map(key));
    let enrolled = tally.store.ledger().enrolled(&keys)?;
    let one = |(player, application): ObservedApplication| match application {
        Some(application) => Ok(application.status),
        None => {
            let at = keys.binary_search(&key(&player)).ok();
            at.and_then(|at| enrolled[at]).map(|_| Status::Accepted).ok_or(Rejection::NotApplied)
        }
    };
    Ok(observed.into_iter().map(one).collect())
}

/// Withdraws an application, for the player or for staff.
pub fn withdraw(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    player: &PlayerId,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    application_store::at(tally, id, actor, idempotency, |store, request| store.withdraw(request, player))
}
