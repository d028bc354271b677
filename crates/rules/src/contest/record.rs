//! A contest as it is stored: its definition, where it stands, and how far what it sets off has come.
//!
//! What takes more than one transaction (clearing applications, paying prizes, paying fees back) has its position here, in
//! the row that each of those transactions locks: so each bit of it is done once, whoever goes on with it after a crash.

use super::application::ApplicationCounts;
use super::definition::Contest;
use super::due;
use super::start::InvalidApplication;
use super::state::{Event, State};
use crate::ids::PlayerId;
use crate::instant::Micros;
use crate::ledger::Uuid;
use crate::rejection::Rejection;

/// How many bad rows of a start are kept with the contest. Its answer had them all.
pub const FAILED_KEPT: usize = 100;

/// What became of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many became members.
    pub enrolled: u32,
    /// How many did not.
    pub failed: u32,
    /// The first of those.
    pub first_failed: Vec<InvalidApplication>,
}

/// What is under way, a bounded piece a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContestTask {
    /// Nothing.
    #[default]
    None,
    /// Applications are cleared; those that are left are there.
    Clear,
    /// Prizes are paid; so many are done.
    Pay {
        /// Of the list that was stored when it began.
        done: u32,
    },
    /// Fees are paid back, in order of players; those up to this one are done.
    Refund {
        /// `None` at the beginning.
        after: Option<PlayerId>,
    },
}

/// Where a contest's applications are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApplicationLocation {
    /// Beside the contest: what is counted of them is [`Record::desk`].
    #[default]
    Store,
    /// In Redis, under the number that they were given when the contest opened; what is counted of them is there too.
    Redis(Uuid),
    /// They were in Redis, which had lost them when it was time to start.
    Lost,
}

/// A contest as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What its other rows are found by: given once, so that nothing of it is written under its name more than once.
    pub no: Uuid,
    /// What it is.
    pub contest: Contest,
    /// The series that made it.
    pub series: Option<super::ContestId>,
    /// Where it stands.
    pub state: State,
    /// When it came there.
    pub since: Micros,
    /// Where its applications are.
    pub kept: ApplicationLocation,
    /// Its applications, where they are in the store.
    pub desk: ApplicationCounts,
    /// How often the accepted were changed, or a start that had read them was called off: whoever has read them sees
    /// whether they are still those.
    pub revision: u64,
    /// How many members it has.
    pub members: u32,
    /// What became of the start.
    pub report: Option<Report>,
    /// What is under way.
    pub work: ContestTask,
    /// How many prizes are to be paid, once that is known.
    pub prizes: Option<u32>,
    /// When it was created.
    pub created_at: Micros,
    /// When anything of it changed but its applications.
    pub updated_at: Micros,
}

/// What somebody has to do about a contest unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// An event of the clock.
    Event(Event),
    /// Go on with what is under way.
    Task,
    /// Take applications out of Redis that nobody needs any more.
    Clear,
}

impl Record {
    /// A new one.
    pub fn new(no: Uuid, contest: Contest, series: Option<super::ContestId>, now: Micros) -> Self {
        Self {
            no,
            contest,
            series,
            state: State::Draft,
            since: now,
            kept: ApplicationLocation::Store,
            desk: ApplicationCounts::default(),
            revision: 0,
            members: 0,
            report: None,
            work: ContestTask::None,
            prizes: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Comes into a state.
    pub fn enter(&mut self, state: State, at: Micros, now: Micros) {
        (self.state, self.since, self.updated_at) = (state, at, now);
    }

    /// Whether its applications are in Redis and nobody needs them any more.
    pub fn is_to_be_cleared(&self) -> bool {
        matches!(self.kept, ApplicationLocation::Redis(_))
            && !matches!(self.state, State::Draft | State::Open)
    }

    /// Where members begin whose fees are to be paid back: behind a player, or with the first.
    pub fn fees_due(&self) -> Option<Option<&PlayerId>> {
        match &self.work {
            ContestTask::Refund { after } => Some(after.as_ref()),
            // It is called off, and what its start has left is cleared first.
            ContestTask::Clear if self.state == State::Cancelled => Some(None),
            _ => None,
        }
    }

    /// Refuses applications from the moment on at which it starts by itself, also where that start is late.
    pub fn judge_apply(&self, now: Micros) -> Result<(), Rejection> {
        let starts = due::next(self.state, self.since, &self.contest, false);
        let is_over = starts.is_some_and(|(at, event)| event == Event::Start && at <= now);
        if is_over { Err(Rejection::ContestState(State::Running)) } else { Ok(()) }
    }

    /// What happens next without anybody asking, and when. What is under way comes before anything else and waits for no
    /// instant: the state may have begun by a clock that was ahead.
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
        // Who would start is not known any more.
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
