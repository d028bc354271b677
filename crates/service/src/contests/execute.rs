//! One action on a contest, as a use case: read the contest, send the action to the lane, and read again if the contest has changed.
//! Blocks.

use super::actions::{Action, ActionResult, ContestDone, ContestRequest};
use super::finish::of_contest;
use crate::audit;
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use tally_rules::contest::state::needed;
use tally_rules::contest::{ActorKind, ContestId, ContestRecord, ContestRight, ContestState, ContestTrigger};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{Micros, Origin, PlayerId, Rejection};

/// How often an action is tried because something changed meanwhile.
const ATTEMPTS_MAX: usize = 16;

/// How a caller may act on contests, as a listener knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActingAs {
    /// A key that may do everything.
    Admin,
    /// A server's key.
    Server,
    /// A server's key that acts for a player.
    For(PlayerId),
    /// A member, by its player.
    Member(PlayerId),
}

/// The actor of an act on a contest, and how it may act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContestActor {
    /// How it may act.
    pub acting: ActingAs,
    /// The actor and its reason, for the rows that the act leaves.
    pub origin: Origin,
}

impl ActingAs {
    /// The same with this origin.
    pub fn by(self, origin: impl Into<Origin>) -> ContestActor {
        ContestActor { acting: self, origin: origin.into() }
    }
}

impl ContestActor {
    /// The same with this origin.
    pub fn with(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// The server itself, where a key of role `admin` may act.
    pub const ADMIN: Self = Self { acting: ActingAs::Admin, origin: Origin::BACKGROUND };
    /// The server itself, where a key of role `server` may act.
    pub const SERVER: Self = Self { acting: ActingAs::Server, origin: Origin::BACKGROUND };

    /// The actor's role in a contest, for an action on a player or on the whole contest.
    pub(crate) fn by(
        &self,
        record: &ContestRecord,
        event: ContestTrigger,
        subject: Option<&PlayerId>,
    ) -> Result<ActorKind, Rejection> {
        let own = matches!(event, ContestTrigger::Apply | ContestTrigger::Withdraw);
        match &self.acting {
            ActingAs::Admin => Ok(ActorKind::Admin),
            ActingAs::Server => Ok(ActorKind::Server),
            ActingAs::For(player) if record.contest.is_staff(player) && event != ContestTrigger::Apply => {
                Ok(ActorKind::Staff)
            }
            ActingAs::For(_) => Ok(ActorKind::Server),
            ActingAs::Member(player) if own && subject == Some(player) => Ok(ActorKind::Player),
            ActingAs::Member(player) if record.contest.is_staff(player) => Ok(ActorKind::Staff),
            ActingAs::Member(_) => Err(Rejection::Forbidden(needed(event))),
        }
    }
}

/// Rejects members: they may not make contests, nor do anything with a series.
pub(super) fn may_make(actor: &ContestActor) -> Result<(), Rejection> {
    match actor.acting {
        ActingAs::Member(_) => Err(Rejection::Forbidden(ContestRight::Key)),
        _ => Ok(()),
    }
}

/// The contest of that name.
pub(crate) fn find(tally: &Tally, id: &ContestId) -> Result<ContestRecord, Failure> {
    Ok(tally.store.ledger().contest(id)?.ok_or(Rejection::ContestNotFound)?)
}

/// Puts an action into the lane and waits for its reply.
pub(crate) fn submit(tally: &Tally, request: ContestRequest) -> Result<ContestDone, Failure> {
    let is_cancelled =
        request.observed.as_ref().is_some_and(|observed| observed.state == ContestState::Cancelled);
    let of_fees = matches!(request.action, Action::Refund(..)) || is_cancelled;
    let done = tally.ledger.ask_blocking(request)?;
    tally.contests.counts.note(&done, of_fees);
    Ok(done)
}

/// The origin of an action, and the idempotency key of its request.
pub(crate) type Sender<'a> = (&'a Origin, Option<&'a IdempotencyKey>);

/// The actor's role, and the action with everything that it may touch.
pub(crate) type Planned = Result<(ActorKind, Action), Failure>;

/// Does an action that is planned from the contest as it is.
pub(crate) fn execute(
    tally: &Tally,
    id: &ContestId,
    sender: Sender<'_>,
    plan: impl Fn(&ContestRecord) -> Planned,
) -> Result<ContestDone, Failure> {
    let _running = sender.1.map(|one| tally.begin(&one.key)).transpose()?;
    execute_at(tally, id, sender, None, plan)
}

/// The same as of a given instant.
pub(crate) fn execute_at(
    tally: &Tally,
    id: &ContestId,
    sender: Sender<'_>,
    at: Option<Micros>,
    plan: impl Fn(&ContestRecord) -> Planned,
) -> Result<ContestDone, Failure> {
    retry(|| {
        let observed = find(tally, id)?;
        let planned = plan(&observed)?;
        attempt(tally, id, observed, (sender, at), planned)
    })
}

/// One try; `None` if the contest has changed since it was read.
pub(super) fn attempt(
    tally: &Tally,
    id: &ContestId,
    observed: ContestRecord,
    ((origin, idempotency), at): (Sender<'_>, Option<Micros>),
    (by, action): (ActorKind, Action),
) -> Result<Option<ContestDone>, Failure> {
    let boards = if action.concerns_scores() { of_contest(tally, id, &observed) } else { Vec::new() };
    let (id, observed, idempotency) = (id.clone(), Some(Box::new(observed)), idempotency.cloned());
    let audited = audit::begin(origin.clone(), tally.now())?;
    let done = submit(tally, ContestRequest { id, observed, by, audited, at, action, boards, idempotency })?;
    Ok((done.result != ActionResult::Outdated).then_some(done))
}

/// Retries until there is a reply.
pub(crate) fn retry<T>(mut attempt: impl FnMut() -> Result<Option<T>, Failure>) -> Result<T, Failure> {
    for _ in 0..ATTEMPTS_MAX {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
    }
    Err(Fault::Overloaded.into())
}
