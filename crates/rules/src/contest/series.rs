//! A series: contests that recur by three schedules, each created some time before it starts.
//!
//! Each moment of `start` is one contest. It opens at the last moment of `open` before it and ends at the first moment of `end`
//! after it. So the three are in order for all schedules. A contest is created when the one `ahead` starts before it starts. So
//! `ahead` unstarted contests exist at any time. A missed contest is created as of its scheduled time; at most the last
//! [`MISSED_MAX`] of them are. Not here: cron and time zones ([`Moments`]), and the events of a contest ([`due`]).
//!
//! [`due`]: super::due

#[cfg(test)]
mod tests;

use super::definition::{self, Contest, ContestLimits};
use super::id::Minute;
use super::{ContestId, ContestState};
use crate::instant::Micros;
use crate::ledger::Currencies;
use crate::rejection::{Rejection, WrongField};

/// The most contests of a series that may exist before they start.
pub const AHEAD_MAX: u32 = 50;

/// The most contests of a series that may run at the same time.
pub const RUNNING_MAX: usize = 50;

/// The most contests that are created after their start was missed.
pub const MISSED_MAX: usize = 100;

/// How many starts the check reads ahead to find too many that run at the same time.
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

/// The schedules of a series as [`Moments`].
#[derive(Clone, Debug)]
pub struct Timetable<M> {
    /// When contests open.
    pub open: M,
    /// When contests start.
    pub start: M,
    /// When contests end.
    pub end: M,
}

/// The definition of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The definition of its contests, without the times.
    pub template: Contest,
    /// Five-field cron.
    pub open: String,
    /// Five-field cron.
    pub start: String,
    /// Five-field cron.
    pub end: String,
    /// An IANA time zone.
    pub time_zone: String,
    /// How many contests that have not started exist at any time.
    pub ahead: u32,
}

/// A spec for a series. A field that a caller left out keeps its present or default value.
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
    /// The definition.
    pub series: Series,
    /// Contests that start up to then were created, or do not belong to this series.
    pub from: Micros,
    /// Since when the definition holds.
    pub since: Micros,
    /// When the next contest is created.
    pub due: Option<Micros>,
    /// The contest that was created last.
    pub last: Option<ContestId>,
    /// When it was created.
    pub created_at: Micros,
    /// When a caller last changed it.
    pub updated_at: Micros,
}

/// A contest that is due to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its name.
    pub id: ContestId,
    /// The definition.
    pub contest: Contest,
    /// The time of its creation, as scheduled.
    pub at: Micros,
    /// The series afterwards.
    pub then: SeriesRecord,
}

impl SeriesSpec {
    /// A new series.
    pub fn create(&self, currencies: &Currencies, bounds: ContestLimits) -> Result<Series, Rejection> {
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

    /// Changes an existing series.
    pub fn change(
        &self,
        present: &Series,
        currencies: &Currencies,
        bounds: ContestLimits,
    ) -> Result<Series, Rejection> {
        let template = self.template.change(&present.template, ContestState::Draft, currencies, bounds);
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

/// Moves the pointers of wrong fields of a template to their place in the series.
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

    /// Whether both have the same schedules.
    fn same_times(&self, other: &Self) -> bool {
        let times = |one: &Self| [&one.open, &one.start, &one.end, &one.time_zone].map(String::clone);
        times(self) == times(other)
    }
}

impl<M: Moments> Timetable<M> {
    /// Refuses schedules with more than [`RUNNING_MAX`] contests at the same time, within the starts that it reads ahead.
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

    /// When the contest with this start is created: not before `since`, and always before the start, so that the start is not
    /// over when it opens.
    fn made_at(&self, start: Micros, ahead: u32, since: Micros) -> Micros {
        let before = |at: Micros| self.start.previous(at.plus(-1));
        // Earlier starts give the same: without the bound a start of the server walks back to the beginning of time.
        let mut starts = std::iter::successors(Some(start), |at| before(*at)).take_while(|at| *at > since);
        starts.nth(ahead as usize).unwrap_or(since).min(start.plus(-1))
    }

    /// Where to continue when contests were not created for long.
    fn without_the_oldest(&self, from: Micros, now: Micros) -> Micros {
        let before = |at: Micros| self.start.previous(at.plus(-1));
        let mut missed = std::iter::successors(self.start.previous(now), |at| before(*at));
        missed.nth(MISSED_MAX).map_or(from, |last| from.max(last))
    }
}

impl SeriesRecord {
    /// A new series.
    pub fn new(series: Series, table: &Timetable<impl Moments>, now: Micros) -> Self {
        let (due, last) = (None, None);
        let new = Self { series, from: now, since: now, due, last, created_at: now, updated_at: now };
        new.planned(table)
    }

    /// Changes the definition. New schedules apply from now on; contests that exist stay.
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

    /// The contest that is due now, if any.
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
