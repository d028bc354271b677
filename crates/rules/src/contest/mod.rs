//! Contests: who may do what when, applications, the start, and prizes, as pure functions.
//!
//! [`state`] is the machine as one table; [`definition`] what a contest is, what of it may still change and what is wrong
//! with it; [`application`] who asks to take part; [`start`] which of those accepted become members; [`division`] with whom
//! they play, [`member`] who takes part; [`prize`] who gets what; [`due`] what happens by the clock; [`series`] which contests come
//! again. [`record`] is a contest as it is stored.
//!
//! Not here: money itself (`ledger`), ranks, cron and time zones, and where anything is kept.

pub mod application;
pub mod definition;
pub mod division;
pub mod due;
pub mod id;
pub mod member;
pub mod prize;
pub mod record;
pub mod series;
pub mod start;
pub mod state;

pub use application::{Application, Status};
pub use definition::{Contest, OnInvalid};
pub use id::ContestId;
pub use member::{ContestMember, Payout};
pub use prize::{Prize, PrizeTies};
pub use record::Record;
pub use series::{Series, SeriesRecord};
pub use state::{ActorKind, Event, State};
