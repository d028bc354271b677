//! A contest as it is stored: its definition, where it stands, and how far what it sets off has come.
//!
//! What takes more than one transaction (clearing applications, paying prizes, paying fees back) has its position here, in
//! the row that each of those transactions locks: so each bit of it is done once, whoever goes on with it after a crash.

use super::application::Desk;
use super::definition::Contest;
use super::due;
use super::start::Failed;
use super::state::{Event, State};
use crate::ids::PlayerId;
use crate::instant::Micros;
use crate::ledger::Uuid;

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
    pub first_failed: Vec<Failed>,
    /// How long it took, in microseconds.
    pub took_micros: u64,
}

/// What is under way, a bounded piece a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Work {
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
    /// Its applications.
    pub desk: Desk,
    /// How often the accepted were changed: whoever has read them sees whether they are still those.
    pub revision: u64,
    /// How many members it has.
    pub members: u32,
    /// What became of the start.
    pub report: Option<Report>,
    /// What is under way.
    pub work: Work,
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
    Work,
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
            desk: Desk::default(),
            revision: 0,
            members: 0,
            report: None,
            work: Work::None,
            prizes: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Comes into a state.
    pub fn enter(&mut self, state: State, at: Micros, now: Micros) {
        (self.state, self.since, self.updated_at) = (state, at, now);
    }

    /// What happens next without anybody asking, and when. What is under way comes before anything else.
    pub fn due(&self) -> Option<(Micros, Due)> {
        if self.work != Work::None {
            return Some((self.since, Due::Work));
        }
        let next = due::next(self.state, self.since, &self.contest, self.series.is_some());
        next.map(|(at, event)| (at, Due::Event(event)))
    }
}
