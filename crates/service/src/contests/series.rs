//! Series of contests: making one, changing it, taking it away, and making the contest that is next.
//!
//! Whoever changes a series says what it was and what it is to be; the lane puts it in place where it still is what it was, together
//! with the contest that is made of it, so two servers make a contest once. Contests that were made are contests like any other:
//! what becomes of their series changes nothing of them. Cron and time zones are those of the periods of boards
//! (`calendar`). Each blocks. Not here: which contests there are when (`tally_rules::contest::series`).

use super::act::{Actor, again, may_make};
use super::change::check_schedules;
use crate::calendar::Calendar;
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use crate::wallets::command::{Done, Request};
use tally_rules::contest::id::Minute;
use tally_rules::contest::series::{Moments, Occurrence, SeriesSpec, Timetable, of_template};
use tally_rules::contest::{ContestId, Series, SeriesRecord};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::rejection::WrongField;
use tally_rules::{Micros, Rejection};

/// A change of a series.
#[derive(Clone, Debug)]
pub struct SeriesOrder {
    /// Which.
    pub id: ContestId,
    /// As it was when somebody looked; there is none where one is made.
    pub seen: Option<Box<SeriesRecord>>,
    /// What it is to be; nothing takes it away.
    pub then: Option<Box<SeriesRecord>>,
    /// The contest that is made of it.
    pub making: Option<Box<Occurrence>>,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeriesDone {
    /// It was done.
    Done,
    /// It had been done before; the series as it stands, if it still is there.
    Replayed(Option<Box<SeriesRecord>>),
    /// It was not as it was seen; nothing was done.
    Stale,
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
    // A zone that is not known is said once.
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

fn ask(tally: &Tally, order: SeriesOrder) -> Result<SeriesDone, Failure> {
    match tally.ledger.ask_blocking(Request::Series(Box::new(order)))? {
        Done::Series(done) => Ok(done),
        done => Err(Fault::Broken(format!("a series is answered as one, not as {done:?}")).into()),
    }
}

/// A series as it is after an act, and whether that repeats an earlier answer.
type Shown = (SeriesRecord, bool);

/// Makes one, and its first contests.
pub fn create(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    spec: &SeriesSpec,
    identity: Option<&IdempotencyKey>,
) -> Result<Shown, Failure> {
    may_make(actor)?;
    check_schedules(&spec.template).map_err(of_template)?;
    let settings = &tally.settings.ledger;
    let series = spec.create(&settings.currencies, settings.contests)?;
    let (table, now) = (timetable(&series)?, tally.now());
    table.check(now)?;
    let _running = identity.map(|one| tally.begin(&one.key)).transpose()?;
    let record = SeriesRecord::new(series, &table, now);
    let order = SeriesOrder {
        id: id.clone(),
        seen: None,
        then: Some(Box::new(record)),
        making: None,
        identity: identity.cloned(),
    };
    match ask(tally, order)? {
        SeriesDone::Done => Ok((made_due(tally, id)?, false)),
        SeriesDone::Replayed(record) => Ok((*record.ok_or(Rejection::SeriesNotFound)?, true)),
        SeriesDone::Stale => Err(Rejection::SeriesExists.into()),
    }
}

/// Changes what it is, for the contests that are made from now on.
pub fn patch(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    spec: &SeriesSpec,
    identity: Option<&IdempotencyKey>,
) -> Result<Shown, Failure> {
    may_make(actor)?;
    check_schedules(&spec.template).map_err(of_template)?;
    let _running = identity.map(|one| tally.begin(&one.key)).transpose()?;
    let settings = &tally.settings.ledger;
    let done = changed(tally, id, identity, |seen| {
        let series = spec.change(&seen.series, &settings.currencies, settings.contests)?;
        let (table, now) = (timetable(&series)?, tally.now());
        table.check(now)?;
        Ok(Some(seen.clone().changed(series, &table, now)))
    })?;
    match done {
        SeriesDone::Replayed(record) => Ok((*record.ok_or(Rejection::SeriesNotFound)?, true)),
        SeriesDone::Done | SeriesDone::Stale => Ok((made_due(tally, id)?, false)),
    }
}

/// Takes it away. Contests that it made stay, and go on. Gives whether that repeats an earlier answer.
pub fn delete(
    tally: &Tally,
    id: &ContestId,
    actor: &Actor,
    identity: Option<&IdempotencyKey>,
) -> Result<bool, Failure> {
    may_make(actor)?;
    let _running = identity.map(|one| tally.begin(&one.key)).transpose()?;
    let done = changed(tally, id, identity, |_| Ok(None))?;
    Ok(matches!(done, SeriesDone::Replayed(_)))
}

/// A change of one that is there, or was when the same request came first.
fn changed(
    tally: &Tally,
    id: &ContestId,
    identity: Option<&IdempotencyKey>,
    change: impl Fn(&SeriesRecord) -> Result<Option<SeriesRecord>, Rejection>,
) -> Result<SeriesDone, Failure> {
    again(|| {
        let seen = tally.store.ledger().series(id)?;
        if seen.is_none() && identity.is_none() {
            return Err(Rejection::SeriesNotFound.into());
        }
        // Without one this can only be a replay, which the lane knows.
        let then = seen.as_ref().map(&change).transpose()?.flatten();
        let is_gone = seen.is_none();
        let order = SeriesOrder {
            id: id.clone(),
            seen: seen.map(Box::new),
            then: then.map(Box::new),
            making: None,
            identity: identity.cloned(),
        };
        match ask(tally, order)? {
            SeriesDone::Stale => Ok(None),
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

/// Makes what is due of a series that was just changed: nobody has to wait for the next look. There are no more than are to be
/// there ahead. Where that fails the keeper does it.
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
    let Some(seen) = tally.store.ledger().series(id)? else { return Ok(false) };
    let table = timetable(&seen.series)?;
    let Some(making) = seen.make(id, &table, tally.now()) else { return Ok(false) };
    let settings = &tally.settings.ledger;
    // Settings may have changed since the template was written.
    making.contest.check(&settings.currencies, settings.contests).map_err(of_template)?;
    let order = SeriesOrder {
        id: id.clone(),
        seen: Some(Box::new(seen)),
        then: Some(Box::new(making.then.clone())),
        making: Some(Box::new(making)),
        identity: None,
    };
    // Where it was not as it was seen somebody else may have made it: the next look tells.
    ask(tally, order).map(|_| true)
}
