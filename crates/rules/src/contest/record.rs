//! A contest as it is stored: its definition, its state, and the progress of its tasks.
//!
//! Clearing applications, paying prizes and refunding fees take more than one transaction. Their progress is here, in the
//! row that each of those transactions locks. So each step is done once, whichever server continues after a crash.

use super::application::ApplicationCounts;
use super::definition::Contest;
use super::due;
use super::start::InvalidApplication;
use super::state::{Event, State};
use crate::ids::PlayerId;
use crate::instant::Micros;
use crate::ledger::Uuid;
use crate::rejection::Rejection;

/// How many bad applications of a start are kept with the contest. The reply to the start had all of them.
pub const FAILED_KEPT: usize = 100;

/// The result of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many applications became members.
    pub enrolled: u32,
    /// How many did not.
    pub failed: u32,
    /// The first of the failed applications.
    pub first_failed: Vec<InvalidApplication>,
}

/// The task in progress; each transaction does a bounded step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContestTask {
    /// No task.
    #[default]
    None,
    /// Clears applications; the rows that still exist are left to do.
    Clear,
    /// Pays prizes.
    Pay {
        /// How many are done, of the list that was stored when the task began.
        done: u32,
    },
    /// Refunds fees, in order of players.
    Refund {
        /// The last player that is done; `None` at the beginning.
        after: Option<PlayerId>,
    },
}

/// The location of a contest's applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApplicationLocation {
    /// In the store, beside the contest. Their counters are [`Record::applications`].
    #[default]
    Store,
    /// In Redis with their counters, under the number that they got when the contest opened.
    Redis(Uuid),
    /// They were in Redis, which had lost them by the start.
    Lost,
}

/// A contest as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key of its other rows: given once, so that only this row is stored under its name.
    pub no: Uuid,
    /// The definition.
    pub contest: Contest,
    /// The series that created it.
    pub series: Option<super::ContestId>,
    /// The state.
    pub state: State,
    /// When it came into the state.
    pub since: Micros,
    /// The location of its applications.
    pub kept: ApplicationLocation,
    /// The counters of its applications, if they are in the store.
    pub applications: ApplicationCounts,
    /// Grows when accepted applications change or a start that had read them is aborted. A start compares it, to see
    /// whether the applications that it read are still current.
    pub revision: u64,
    /// The number of members.
    pub members: u32,
    /// The result of the start.
    pub report: Option<Report>,
    /// The task in progress.
    pub work: ContestTask,
    /// The number of prizes to pay, once it is known.
    pub prizes: Option<u32>,
    /// When it was created.
    pub created_at: Micros,
    /// When anything but its applications last changed.
    pub updated_at: Micros,
}

/// What a background task has to do for a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// An event of the clock.
    Event(Event),
    /// Continue the task in progress.
    Task,
    /// Remove applications from Redis that are not needed any more.
    Clear,
}

impl Record {
    /// A new contest.
    pub fn new(no: Uuid, contest: Contest, series: Option<super::ContestId>, now: Micros) -> Self {
        Self {
            no,
            contest,
            series,
            state: State::Draft,
            since: now,
            kept: ApplicationLocation::Store,
            applications: ApplicationCounts::default(),
            revision: 0,
            members: 0,
            report: None,
            work: ContestTask::None,
            prizes: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Changes the state.
    pub fn enter(&mut self, state: State, at: Micros, now: Micros) {
        (self.state, self.since, self.updated_at) = (state, at, now);
    }

    /// Whether its applications are in Redis and are not needed any more.
    pub fn is_to_be_cleared(&self) -> bool {
        matches!(self.kept, ApplicationLocation::Redis(_))
            && !matches!(self.state, State::Draft | State::Open)
    }

    /// Where the refunds continue: after a player, or at the first member. `None` if no refunds are due.
    pub fn fees_due(&self) -> Option<Option<&PlayerId>> {
        match &self.work {
            ContestTask::Refund { after } => Some(after.as_ref()),
            // It was cancelled; the applications that its start left are cleared first.
            ContestTask::Clear if self.state == State::Cancelled => Some(None),
            _ => None,
        }
    }

    /// Refuses applications from its scheduled start on, even if that start is late.
    pub fn check_may_apply(&self, now: Micros) -> Result<(), Rejection> {
        let starts = due::next(self.state, self.since, &self.contest, false);
        let is_over = starts.is_some_and(|(at, event)| event == Event::Start && at <= now);
        if is_over { Err(Rejection::ContestState(State::Running)) } else { Ok(()) }
    }

    /// What is due next without a request, and when. A task in progress comes before anything else and waits for no
    /// instant, because the state may have begun by a clock that was ahead.
    pub fn due(&self) -> Option<(Micros, Due)> {
        if self.work != ContestTask::None {
            return Some((Micros(0), Due::Task));
        }
        if self.is_to_be_cleared() {
            return Some((Micros(0), Due::Clear));
        }
        self.next_event().map(|(at, event)| (at, Due::Event(event)))
    }

    /// The next event of the clock.
    pub fn next_event(&self) -> Option<(Micros, Event)> {
        // The applications that would start are not known any more.
        let starts = |event: &(Micros, Event)| event.1 == Event::Start;
        let next = due::next(self.state, self.since, &self.contest, self.series.is_some());
        next.filter(|event| !(self.kept == ApplicationLocation::Lost && starts(event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest() -> Contest {
        let [opens_at, starts_at, ends_at] = [10, 20, 30].map(|at| Some(Micros(at)));
        Contest { opens_at, starts_at, ends_at, ..Contest::default() }
    }

    #[test]
    fn what_is_left_in_redis_is_cleared_first_and_what_was_lost_does_not_start() {
        let mut record = Record::new(Uuid([1; 16]), contest(), None, Micros(1));
        record.enter(State::Open, Micros(10), Micros(10));
        record.kept = ApplicationLocation::Redis(Uuid([2; 16]));
        let start = (Micros(20), Event::Start);
        assert_eq!((record.due(), record.is_to_be_cleared()), (Some((start.0, Due::Event(start.1))), false));
        record.kept = ApplicationLocation::Lost;
        assert_eq!(record.due(), None);
        record.kept = ApplicationLocation::Redis(Uuid([3; 16]));
        record.enter(State::Running, Micros(20), Micros(20));
        assert_eq!(record.due(), Some((Micros(0), Due::Clear)));
        assert_eq!(record.next_event(), Some((Micros(30), Event::Finish)));
        record.kept = ApplicationLocation::Store;
        assert_eq!(record.due(), Some((Micros(30), Due::Event(Event::Finish))));
        record.work = ContestTask::Pay { done: 1 };
        assert_eq!(record.due(), Some((Micros(0), Due::Task)));
    }
}
