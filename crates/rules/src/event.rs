//! Events of a contest, of the periods of a board and of a member, as they are stored for subscribers.
//!
//! They name no player, so erasing a player changes no event. Transfers are no events: the entries of a wallet already record
//! them. Not here: how and how long events are stored, and which subscribers get them.

use crate::contest::{ContestId, ContestState};
use crate::instant::Micros;
use crate::period::TimeSpan;

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it was written. Its retention starts then.
    pub at: Micros,
    /// What happened.
    pub what: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A contest was created, changed, or came into a state.
    Contest(ContestChanged),
    /// A period of a board was closed, and its ranks are final.
    PeriodClosed(PeriodClosed),
    /// A member was closed.
    MemberClosed,
    /// The prizes of a closed period were paid.
    PeriodPaid(PeriodPaid),
}

/// A closed period whose prizes were paid, as far as they can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodPaid {
    /// The name of the period for users.
    pub period: String,
    /// The number of its prizes.
    pub prizes: u32,
}

/// A change of a contest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContestChanged {
    /// The contest. Events of earlier releases do not have it.
    pub contest: Option<ContestId>,
    /// The state before; `None` if it was created.
    pub before: Option<ContestState>,
    /// The state now. It equals the state before if the definition was changed.
    pub state: ContestState,
    /// The instant of the change. A missed event of the clock has its scheduled time.
    pub at: Micros,
    /// The number of its members.
    pub members: u32,
}

/// A period that was closed with players in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodClosed {
    /// The name of the period for users.
    pub period: String,
    /// The name of its period rule.
    pub name: String,
    /// Its start and end.
    pub span: TimeSpan,
    /// The number of its players.
    pub total: u64,
}
