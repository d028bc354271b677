//! Making a contest, changing what it is, and opening it. Each blocks.

use super::act::{Actor, act, ask};
use super::command::{Act, ContestDone, ContestOrder};
use super::finish;
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::Refusal;
use tally_rules::contest::definition::Wish;
use tally_rules::contest::{By, ContestId, Event};
use tally_rules::idempotency::Identity;

/// Makes one.
pub fn create(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    wish: &Wish,
    identity: Option<&Identity>,
) -> Result<ContestDone, Failure> {
    if matches!(actor, Actor::Member(_)) {
        return Err(Refusal::Forbidden.into());
    }
    let _running = identity.map(|one| tally.begin(&one.key)).transpose()?;
    let act = Act::Create { wish: Box::new(wish.clone()), series: None };
    let (id, identity) = (id.clone(), identity.cloned());
    ask(tally, ContestOrder { id, seen: None, by: By::Server, at: None, act, identity })
}

/// Changes what it is.
pub fn patch(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    wish: &Wish,
    identity: Option<&Identity>,
) -> Result<ContestDone, Failure> {
    let by = match actor {
        Actor::Admin => By::Admin,
        Actor::Server | Actor::For(_) => By::Server,
        Actor::Member(_) => return Err(Refusal::Forbidden.into()),
    };
    // When it ends is asked by every score.
    finish::while_held(tally, id, || {
        act(tally, id, identity, |record| {
            Ok((by, Act::Patch(Box::new(wish.clone()), finish::boards(tally, id, record))))
        })
    })
}

/// Takes applications from now on.
pub fn open(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    identity: Option<&Identity>,
) -> Result<ContestDone, Failure> {
    act(tally, id, identity, |record| Ok((actor.by(record, Event::Open, None)?, Act::Open)))
}
