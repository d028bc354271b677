//! What happened to a contest and to the periods of a board, as it is kept for those who listen.
//!
//! No player is named, so nothing of it has to be erased with one. What happened to somebody's money is no event of its own:
//! the entries of a wallet say it. Not here: how it is kept, for how long, and who hears of it.

use crate::contest::State;
use crate::instant::Micros;
use crate::period::Span;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it was written: it is kept from then on.
    pub at: Micros,
    /// What it was.
    pub what: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A contest was made, changed, or came into a state.
    Contest(ContestChanged),
    /// A period of a board takes no more scores, and its ranks are final.
    PeriodClosed(PeriodClosed),
}

/// A change of a contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContestChanged {
    /// Where it stood before; nowhere where it was made.
    pub before: Option<State>,
    /// Where it stands. The same as before where what it is was changed.
    pub state: State,
    /// When that counts from: a moment of the clock that was missed counts as of its own time.
    pub at: Micros,
    /// How many members it has.
    pub members: u32,
}

/// A period that was closed with players in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodClosed {
    /// What users call it.
    pub period: String,
    /// The name of its rule.
    pub name: String,
    /// From when to when.
    pub span: Span,
    /// How many players it has.
    pub total: u64,
}
