//! Making a contest, changing its definition, and opening it. Each blocks.

use super::actions::{Action, ContestDone, ContestRequest};
use super::execute::{ActingAs, ContestActor, Sender, execute, execute_at, may_make, submit};
use super::start::check_boards;
use super::{application_store, finish};
use crate::audit;
use crate::failure::{Failure, Fault};
use crate::periods::Periods;
use crate::tally::Tally;
use std::cell::RefCell;
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::record::ApplicationLocation;
use tally_rules::contest::{
    ActorKind, ContestId, ContestRecord, ContestRight, ContestState, ContestTrigger, state,
};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::rejection::WrongField;
use tally_rules::{Micros, PlayerId, Rejection};
use tally_store::EntrantKey;

/// An id for a contest that comes without one: random, or the same for every retry of a request.
pub fn new_id(tally: &Tally, idempotency: Option<&IdempotencyKey>) -> Result<ContestId, Failure> {
    let mut bytes = [0; 16];
    match idempotency {
        Some(idempotency) => {
            // A retry gets the id of the first request, also if another secret makes since.
            let (print, by) = tally.first_fingerprint(idempotency)?;
            let whose = format!("{}\0{}", idempotency.key.scope, idempotency.key.key);
            let ids = tally.fingerprints.of("contest", &whose, &print.0);
            bytes = ids.other.filter(|(_, number)| *number == by).map_or(ids.made, |(print, _)| print).0;
        }
        None => getrandom::fill(&mut bytes)
            .map_err(|error| Fault::Broken(format!("no random numbers for a name: {error}")))?,
    }
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(ContestId::new(&text).expect("digits and letters"))
}

/// Makes a contest.
pub fn create(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    spec: &ContestSpec,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    may_make(actor)?;
    check_schedules(spec)?;
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    let action = Action::Create { spec: Box::new(spec.clone()), series: None };
    let (id, idempotency) = (id.clone(), idempotency.cloned());
    let (by, audited) = (ActorKind::Server, audit::begin(actor.origin.clone(), tally.now())?);
    let boards = Vec::new();
    submit(tally, ContestRequest { id, observed: None, by, audited, at: None, action, boards, idempotency })
}

/// Changes its definition.
pub fn patch(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    spec: &ContestSpec,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let by = match actor.acting {
        ActingAs::Admin => ActorKind::Admin,
        ActingAs::Server | ActingAs::For(_) => ActorKind::Server,
        ActingAs::Member(_) => return Err(Rejection::Forbidden(ContestRight::Key).into()),
    };
    check_schedules(spec)?;
    execute(tally, id, (&actor.origin, idempotency), |record| {
        if record.state == ContestState::Open && (spec.capacity.is_some() || spec.division_size.is_some()) {
            let settings = &tally.settings.ledger;
            let requested =
                spec.change(&record.contest, record.state, &settings.currencies, settings.contests)?;
            check_boards(tally, &requested, record.applications.accepted.max(1))?;
        }
        check_staff(tally, record, spec)?;
        Ok((by, Action::Patch(Box::new(spec.clone()), finish::boards(tally, id, record)?)))
    })
}

/// Rejects members as staff: staff cannot take part, and members stay members.
fn check_staff(tally: &Tally, record: &ContestRecord, spec: &ContestSpec) -> Result<(), Failure> {
    let Some(staff) = spec.staff.as_ref().filter(|_| record.report.is_some()) else { return Ok(()) };
    let key = |player: &PlayerId| EntrantKey { contest: record.no, player: player.clone() };
    let new = staff.iter().filter(|player| !record.contest.is_staff(player)).map(key);
    let keys = tally_lanes::keys_to_load(new);
    let found = tally.store.ledger().enrolled(&keys)?;
    let members = keys.iter().zip(found).filter(|(_, enrolled)| enrolled.is_some());
    let wrong = |(key, _): (&EntrantKey, _)| {
        let at = staff.iter().position(|player| *player == key.player)?;
        let why = "takes part in the contest, and staff does not".to_owned();
        Some(WrongField { pointer: format!("/staff/{at}"), why })
    };
    let wrong: Vec<WrongField> = members.filter_map(wrong).collect();
    if wrong.is_empty() { Ok(()) } else { Err(Rejection::InvalidContest(wrong).into()) }
}

/// Rejects a leaderboard whose schedules cannot be read: it could not be made at the start.
pub(super) fn check_schedules(spec: &ContestSpec) -> Result<(), Rejection> {
    let read = spec.leaderboard.as_ref().map_or(Ok(()), |definition| Periods::new(definition).map(drop));
    read.map_err(|wrong| Rejection::InvalidContest(vec![wrong.within("/leaderboard")]))
}

/// Opens a contest for applications; or again, if it is open and its applications are lost.
pub fn open(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    open_at(tally, id, (&actor.origin, idempotency), None, |record| {
        actor.by(record, ContestTrigger::Open, None)
    })
}

/// The same as of a given instant.
pub(super) fn open_at(
    tally: &Tally,
    id: &ContestId,
    sender: Sender<'_>,
    at: Option<Micros>,
    by: impl Fn(&ContestRecord) -> Result<ActorKind, Rejection>,
) -> Result<ContestDone, Failure> {
    let prepared = RefCell::new(Vec::new());
    let done = execute_at(tally, id, sender, at, |record| {
        let by = by(record)?;
        // Applications hold fees, so one leaderboard must be possible. Accepting checks the others.
        if record.state == ContestState::Draft
            && state::transition(record.state, ContestTrigger::Open, by).is_ok()
        {
            check_boards(tally, &record.contest, 1)?;
        }
        let kept = application_store::opening(tally, record, by)?;
        if let (ApplicationLocation::Redis(number), true) = (kept, kept != record.kept) {
            prepared.borrow_mut().push((record.no, number));
        }
        Ok((by, Action::Open(kept)))
    });
    let used = match &done {
        Ok(done) => Some(done.record.kept),
        Err(Failure::Rejected(_)) => Some(ApplicationLocation::Store),
        // The outcome is unknown: the prepared state is small, and may be in use.
        Err(Failure::Fault(_)) => None,
    };
    for (contest, number) in prepared.into_inner() {
        if used.is_some_and(|used| used != ApplicationLocation::Redis(number)) {
            application_store::forget(tally, contest, number);
        }
    }
    done
}
