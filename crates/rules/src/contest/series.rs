//! A series: contests that come again by three schedules, each made some time before it starts.
//!
//! Each moment of `start` is one contest. It opens at the last moment of `open` before it and ends at the first moment of `end`
//! behind it, so the three are in order whatever the schedules are. A contest is made when the one `ahead` places before it
//! starts: so many that have not started are there at any time. What was missed is made as of its own time; of what was missed whole, the
//! last [`MISSED_MAX`]. Not here: cron and time zones, which come in as [`Moments`], and what a contest does then ([`due`]).
//!
//! [`due`]: super::due

#[cfg(test)]
mod tests;

use super::definition::{self, Bounds, Contest};
use super::id::Minute;
use super::{ContestId, State};
use crate::instant::Micros;
use crate::ledger::Currencies;
use crate::rejection::{Rejection, WrongField};

/// How many contests of a series may be there before they start.
pub const AHEAD_MAX: u32 = 50;

/// How many contests of a series may run at the same time.
pub const RUNNING_MAX: usize = 50;

/// How many contests whose start was missed are made.
pub const MISSED_MAX: usize = 100;

/// How far the schedules are looked at for too many that run at the same time, in starts.
const LOOKED_AT: usize = 3 * RUNNING_MAX;

/// A schedule in a time zone.
pub trait Moments {
    /// The first moment after the instant.
    fn next(&self, after: Micros) -> Option<Micros>;
    /// The last moment at or before the instant.
    fn previous(&self, at: Micros) -> Option<Micros>;
    /// The local minute of an instant.
    fn minute(&self, at: Micros) -> Minute;
}

/// The schedules of a series, as they can be asked.
#[derive(Clone, Debug)]
pub struct Timetable<M> {
    /// When one opens.
    pub open: M,
    /// When one starts.
    pub start: M,
    /// When one ends.
    pub end: M,
}

/// What a series is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Each of its contests, but for the times.
    pub template: Contest,
    /// Five-field cron.
    pub open: String,
    /// Five-field cron.
    pub start: String,
    /// Five-field cron.
    pub end: String,
    /// An IANA time zone.
    pub time_zone: String,
    /// How many that have not started are there.
    pub ahead: u32,
}

/// A spec for a series: what a caller left out keeps its present or default value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesSpec {
    /// See [`Series::template`].
    pub template: definition::ContestSpec,
    /// See [`Series::open`].
    pub open: Option<String>,
    /// See [`Series::start`].
    pub start: Option<String>,
    /// See [`Series::end`].
    pub end: Option<String>,
    /// See [`Series::time_zone`].
    pub time_zone: Option<String>,
    /// See [`Series::ahead`].
    pub ahead: Option<u32>,
}

/// A series as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesRecord {
    /// What it is.
    pub series: Series,
    /// Contests that start up to then were made, or are not this series' business.
    pub from: Micros,
    /// Since when it is what it is.
    pub since: Micros,
    /// When the next contest is made.
    pub due: Option<Micros>,
    /// The contest that was made last.
    pub last: Option<ContestId>,
    /// When it was created.
    pub created_at: Micros,
    /// When it was last changed by somebody.
    pub updated_at: Micros,
}

/// A contest that is due to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its name.
    pub id: ContestId,
    /// What it is.
    pub contest: Contest,
    /// As of when.
    pub at: Micros,
    /// The series afterwards.
    pub then: SeriesRecord,
}

impl SeriesSpec {
    /// A new series.
    pub fn create(&self, currencies: &Currencies, bounds: Bounds) -> Result<Series, Rejection> {
        let template = self.template.create(currencies, bounds).map_err(of_template)?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let series = Series {
            template,
            open: text(&self.open),
            start: text(&self.start),
            end: text(&self.end),
            time_zone: self.time_zone.clone().unwrap_or_else(|| "UTC".into()),
            ahead: self.ahead.unwrap_or(1),
        };
        series.checked()
    }

    /// A present one after this spec.
    pub fn change(
        &self,
        present: &Series,
        currencies: &Currencies,
        bounds: Bounds,
    ) -> Result<Series, Rejection> {
        let template = self.template.change(&present.template, State::Draft, currencies, bounds);
        let text = |spec: &Option<String>, old: &String| spec.as_ref().unwrap_or(old).clone();
        let series = Series {
            template: template.map_err(of_template)?,
            open: text(&self.open, &present.open),
            start: text(&self.start, &present.start),
            end: text(&self.end, &present.end),
            time_zone: text(&self.time_zone, &present.time_zone),
            ahead: self.ahead.unwrap_or(present.ahead),
        };
        series.checked()
    }
}

/// What is wrong with a template, where it is in the series.
pub fn of_template(rejection: Rejection) -> Rejection {
    let moved = |one: WrongField| WrongField { pointer: format!("/template{}", one.pointer), ..one };
    match rejection {
        Rejection::InvalidContest(wrong) => Rejection::InvalidContest(wrong.into_iter().map(moved).collect()),
        rejection => rejection,
    }
}

impl Series {
    fn checked(self) -> Result<Self, Rejection> {
        if (1..=AHEAD_MAX).contains(&self.ahead) {
            return Ok(self);
        }
        let (pointer, why) = ("/ahead".into(), format!("must be a whole number from 1 to {AHEAD_MAX}"));
        Err(Rejection::InvalidContest(vec![WrongField { pointer, why }]))
    }

    /// Whether contests of both are at the same times.
    fn same_times(&self, other: &Self) -> bool {
        let times = |one: &Self| [&one.open, &one.start, &one.end, &one.time_zone].map(String::clone);
        times(self) == times(other)
    }
}

impl<M: Moments> Timetable<M> {
    /// Refuses schedules by which more than [`RUNNING_MAX`] contests would run at the same time, as far as is looked.
    pub fn check(&self, now: Micros) -> Result<(), Rejection> {
        let starts = std::iter::successors(self.start.next(now), |start| self.start.next(*start));
        let starts: Vec<Micros> = starts.take(LOOKED_AT).collect();
        let is_late = |pair: (&Micros, &Micros)| self.end.next(*pair.0).is_none_or(|end| end > *pair.1);
        if !starts.iter().zip(starts.iter().skip(RUNNING_MAX)).any(is_late) {
            return Ok(());
        }
        let why = format!("comes so seldom that more than {RUNNING_MAX} contests would run at the same time");
        Err(Rejection::InvalidContest(vec![WrongField { pointer: "/end".into(), why }]))
    }

    /// When the contest that starts then is made; `since` is when there was somebody to make it. Always before it starts, so
    /// that its start is not over when it opens.
    fn made_at(&self, start: Micros, ahead: u32, since: Micros) -> Micros {
        let before = |at: Micros| self.start.previous(at.plus(-1));
        let mut starts = std::iter::successors(Some(start), |at| before(*at));
        starts.nth(ahead as usize).map_or(since, |at| at.max(since)).min(start.plus(-1))
    }

    /// Where to go on from when nobody made contests for long.
    fn without_the_oldest(&self, from: Micros, now: Micros) -> Micros {
        let before = |at: Micros| self.start.previous(at.plus(-1));
        let mut missed = std::iter::successors(self.start.previous(now), |at| before(*at));
        missed.nth(MISSED_MAX).map_or(from, |last| from.max(last))
    }
}

impl SeriesRecord {
    /// A new one.
    pub fn new(series: Series, table: &Timetable<impl Moments>, now: Micros) -> Self {
        let (due, last) = (None, None);
        let new = Self { series, from: now, since: now, due, last, created_at: now, updated_at: now };
        new.planned(table)
    }

    /// It is that from now on. By other schedules it goes on from now: what was made by the old ones stays.
    #[must_use]
    pub fn changed(self, series: Series, table: &Timetable<impl Moments>, now: Micros) -> Self {
        let from = if series.same_times(&self.series) { self.from } else { now };
        Self { series, from, since: now, updated_at: now, ..self }.planned(table)
    }

    fn planned(self, table: &Timetable<impl Moments>) -> Self {
        let next = table.start.next(self.from);
        let due = next.map(|start| table.made_at(start, self.series.ahead, self.since));
        Self { due, ..self }
    }

    /// The contest that is to be made now, if one is.
    pub fn make(&self, id: &ContestId, table: &Timetable<impl Moments>, now: Micros) -> Option<Occurrence> {
        self.due.filter(|at| *at <= now)?;
        let from = table.without_the_oldest(self.from, now);
        let start = table.start.next(from)?;
        let contest = Contest {
            opens_at: Some(table.open.previous(start.plus(-1))?),
            starts_at: Some(start),
            ends_at: Some(table.end.next(start)?),
            ..self.series.template.clone()
        };
        let at = table.made_at(start, self.series.ahead, self.since);
        let id = id.occurrence(table.start.minute(start));
        let then = Self { from: start, last: Some(id.clone()), ..self.clone() }.planned(table);
        Some(Occurrence { id, contest, at, then })
    }
}
