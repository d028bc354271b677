//! Series of contests: making one, changing it, deleting it, and making its next contest.
//!
//! A change names the series before and after it. The lane applies it if the series has not changed, together with the
//! contest that is made of it, so two servers make a contest once. Contests of a series are like any other: a change of the
//! series changes none of them. Cron and time zones are those of periods (`calendar`). Each blocks. Not here: the dates of
//! contests (`tally_rules::contest::series`).

use super::change::check_schedules;
use super::execute::{ContestActor, Sender, may_make, retry};
use crate::audit;
use crate::calendar::Calendar;
use crate::failure::Failure;
use crate::ledger::LedgerSettings;
use crate::ledger::request::{LedgerRequest, Needs};
use crate::ledger::state::BatchState;
use crate::outcomes;
use crate::tally::Tally;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::contest::id::Minute;
use tally_rules::contest::series::{Moments, Occurrence, SeriesSpec, Timetable, of_template};
use tally_rules::contest::{ContestId, ContestRecord, Series, SeriesRecord};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::Uuid;
use tally_rules::outcome::Outcome;
use tally_rules::rejection::WrongField;
use tally_rules::{Micros, Origin, Rejection};
use tally_store::ReadSet;

/// A change of a series.
#[derive(Clone, Debug)]
pub struct SeriesRequest {
    /// The series.
    pub id: ContestId,
    /// The series as it was read; `None` if one is made.
    pub observed: Option<Box<SeriesRecord>>,
    /// The series after the change; `None` deletes it.
    pub then: Option<Box<SeriesRecord>>,
    /// The contest that is made of it.
    pub making: Option<Box<Occurrence>>,
    /// The actor, and the id of the change in the audit log.
    pub audited: Audited,
    /// The idempotency key, if the caller sent one.
    pub idempotency: Option<IdempotencyKey>,
}

/// The reply to a change of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeriesDone {
    /// It was done.
    Done,
    /// It was done before; the present series, if there still is one.
    Replayed(Option<Box<SeriesRecord>>),
    /// The series has changed since it was read; nothing was done.
    Outdated,
}

/// The series changes if it is still as it was read, and the contest that is made of it exists then. If there is already a
/// contest of that name, it counts as made.
impl LedgerRequest for SeriesRequest {
    type Answer = SeriesDone;

    fn needs(&self) -> Needs {
        Needs { ids: usize::from(self.making.is_some()), ..Needs::default() }
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], _settings: &LedgerSettings) {
        outcomes::read(plan, self.idempotency.as_ref());
        let contests = &mut plan.ledger.contests;
        contests.series.push(self.id.clone());
        contests.contests.extend(self.making.iter().map(|making| making.id.clone()));
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<SeriesDone, Rejection> {
        let present = state.series.get(&self.id).cloned();
        if state.outcomes.replay(self.idempotency.as_ref())?.is_some() {
            return Ok(SeriesDone::Replayed(present.map(Box::new)));
        }
        if present.as_ref() != self.observed.as_deref() {
            return Ok(SeriesDone::Outdated);
        }
        if let Some(making) = self.making.as_deref()
            && state.contests.get(&making.id).is_none()
        {
            let series = Some(self.id.clone());
            let mut record = ContestRecord::new(ids[0], making.contest.clone(), series, state.time.now);
            record.since = making.at;
            state.added.add_event((&making.id, &record), None, state.time.now);
            state.contests.set(&making.id, Some(record));
            let series = Some(self.id.as_str().into());
            state.added.audit.push(self.audited.row(AuditAction::ContestCreated, making.id.as_str(), series));
        }
        if self.observed.is_some() || self.then.is_some() {
            state.series.set(&self.id, self.then.as_deref().cloned());
            state.outcomes.remember(self.idempotency.as_ref(), Outcome::ContestChanged);
            let action = match (&self.observed, &self.then) {
                _ if self.making.is_some() => None,
                (None, _) => Some(AuditAction::SeriesCreated),
                (Some(_), Some(_)) => Some(AuditAction::SeriesChanged),
                (Some(_), None) => Some(AuditAction::SeriesDeleted),
            };
            let row = action.map(|action| self.audited.row(action, self.id.as_str(), None));
            state.added.audit.extend(row);
        }
        Ok(SeriesDone::Done)
    }
}

impl Moments for Calendar {
    fn next(&self, after: Micros) -> Option<Micros> {
        Self::next(self, after)
    }

    fn previous(&self, at: Micros) -> Option<Micros> {
        Self::previous(self, at)
    }

    fn minute(&self, at: Micros) -> Minute {
        Self::minute(self, at)
    }
}

/// The schedules of a series; every wrong one is named.
fn timetable(series: &Series) -> Result<Timetable<Calendar>, Rejection> {
    let zone = &series.time_zone;
    let mut wrong = Vec::new();
    let mut read = |pointer: &str, schedule: &str, zone: &str| {
        let read = Calendar::parse(schedule, zone);
        read.map_err(|one| wrong.push(WrongField::new(pointer, one.why))).ok()
    };
    // An unknown zone is reported once.
    let zone = if read("/time_zone", "* * * * *", zone).is_some() { zone } else { "UTC" };
    let (open, start) = (read("/open", &series.open, zone), read("/start", &series.start, zone));
    match (open, start, read("/end", &series.end, zone)) {
        (Some(open), Some(start), Some(end)) if wrong.is_empty() => Ok(Timetable { open, start, end }),
        _ => Err(Rejection::InvalidContest(wrong)),
    }
}

fn find(tally: &Tally, id: &ContestId) -> Result<SeriesRecord, Failure> {
    Ok(tally.store.ledger().series(id)?.ok_or(Rejection::SeriesNotFound)?)
}

/// A series after an action, and whether that repeats an earlier reply.
type Shown = (SeriesRecord, bool);

/// Makes a series, and its first contests.
pub fn create(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    spec: &SeriesSpec,
    idempotency: Option<&IdempotencyKey>,
) -> Result<Shown, Failure> {
    may_make(actor)?;
    check_schedules(&spec.template).map_err(of_template)?;
    let settings = &tally.settings.ledger;
    let series = spec.create(&settings.currencies, settings.contests)?;
    let (table, now) = (timetable(&series)?, tally.now());
    table.check(now)?;
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    let record = SeriesRecord::new(series, &table, now);
    let request = SeriesRequest {
        id: id.clone(),
        observed: None,
        then: Some(Box::new(record)),
        making: None,
        audited: audit::begin(actor.origin.clone(), now)?,
        idempotency: idempotency.cloned(),
    };
    match tally.ledger.ask_blocking(request)? {
        SeriesDone::Done => Ok((made_due(tally, id)?, false)),
        SeriesDone::Replayed(record) => Ok((*record.ok_or(Rejection::SeriesNotFound)?, true)),
        SeriesDone::Outdated => Err(Rejection::SeriesExists(id.as_str().into()).into()),
    }
}

/// Changes it, for the contests that are made from now on.
pub fn patch(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    spec: &SeriesSpec,
    idempotency: Option<&IdempotencyKey>,
) -> Result<Shown, Failure> {
    may_make(actor)?;
    check_schedules(&spec.template).map_err(of_template)?;
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    let settings = &tally.settings.ledger;
    let done = changed(tally, id, (&actor.origin, idempotency), |observed| {
        let series = spec.change(&observed.series, &settings.currencies, settings.contests)?;
        let (table, now) = (timetable(&series)?, tally.now());
        table.check(now)?;
        Ok(Some(observed.clone().changed(series, &table, now)))
    })?;
    match done {
        SeriesDone::Replayed(record) => Ok((*record.ok_or(Rejection::SeriesNotFound)?, true)),
        SeriesDone::Done | SeriesDone::Outdated => Ok((made_due(tally, id)?, false)),
    }
}

/// Deletes it. Contests that it made stay, and go on. Returns whether that repeats an earlier reply.
pub fn delete(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    idempotency: Option<&IdempotencyKey>,
) -> Result<bool, Failure> {
    may_make(actor)?;
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    let done = changed(tally, id, (&actor.origin, idempotency), |_| Ok(None))?;
    Ok(matches!(done, SeriesDone::Replayed(_)))
}

/// A change of a series that exists, or existed when the same request was first sent.
fn changed(
    tally: &Tally,
    id: &ContestId,
    (origin, idempotency): Sender<'_>,
    change: impl Fn(&SeriesRecord) -> Result<Option<SeriesRecord>, Rejection>,
) -> Result<SeriesDone, Failure> {
    retry(|| {
        let observed = tally.store.ledger().series(id)?;
        if observed.is_none() && idempotency.is_none() {
            return Err(Rejection::SeriesNotFound.into());
        }
        // Without a series this can only be a replay, which the lane detects.
        let then = observed.as_ref().map(&change).transpose()?.flatten();
        let is_gone = observed.is_none();
        let request = SeriesRequest {
            id: id.clone(),
            observed: observed.map(Box::new),
            then: then.map(Box::new),
            making: None,
            audited: audit::begin(origin.clone(), tally.now())?,
            idempotency: idempotency.cloned(),
        };
        match tally.ledger.ask_blocking(request)? {
            SeriesDone::Outdated => Ok(None),
            SeriesDone::Done if is_gone => Err(Rejection::SeriesNotFound.into()),
            done => Ok(Some(done)),
        }
    })
}

/// The series of that name.
pub fn get(tally: &Tally, id: &ContestId) -> Result<SeriesRecord, Failure> {
    find(tally, id)
}

/// At most `limit` in order of names, from the first one after `after`.
pub fn list(
    tally: &Tally,
    after: Option<&ContestId>,
    limit: usize,
) -> Result<tally_store::Listing<(ContestId, SeriesRecord)>, Failure> {
    Ok(tally.store.ledger().list_series(after, limit)?)
}

/// Makes the due contests of a series that was just changed, so that no caller waits for the next round. A series makes a
/// bounded number of contests ahead. After a failure the scheduler does it.
fn made_due(tally: &Tally, id: &ContestId) -> Result<SeriesRecord, Failure> {
    loop {
        match make_next(tally, id) {
            Ok(true) => {}
            Ok(false) => break,
            Err(failure) => {
                tracing::warn!(%failure, series = id.as_str(), "make a contest of a series; it is tried again");
                break;
            }
        }
    }
    find(tally, id)
}

/// Makes the next contest of a series, if it is due; whether it was.
pub(super) fn make_next(tally: &Tally, id: &ContestId) -> Result<bool, Failure> {
    let Some(observed) = tally.store.ledger().series(id)? else { return Ok(false) };
    let table = timetable(&observed.series)?;
    let Some(making) = observed.make(id, &table, tally.now()) else { return Ok(false) };
    let settings = &tally.settings.ledger;
    // Settings may have changed since the template was written.
    making.contest.check(&settings.currencies, settings.contests).map_err(of_template)?;
    let request = SeriesRequest {
        id: id.clone(),
        observed: Some(Box::new(observed)),
        then: Some(Box::new(making.then.clone())),
        making: Some(Box::new(making)),
        audited: audit::begin(Origin::BACKGROUND, tally.now())?,
        idempotency: None,
    };
    // If the series has changed, another server may have made the contest; the next round shows it.
    tally.ledger.ask_blocking(request).map(|_| true)
}
