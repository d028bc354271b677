//! Contests as pure functions: permitted actions, applications, the start, and prizes.
//!
//! [`state`] is the state machine as one table. [`definition`] has the definition, its checks and which fields may still
//! change. [`application`] has the applications, [`start`] their selection, [`division`] the groups of members, and
//! [`member`] the members. [`prize`] has the prizes, [`pool`] those of fees, [`due`] the events of the clock, and [`series`] recurring contests.
//! [`record`] is a contest as it is stored.
//!
//! Not here: money itself (`ledger`), ranks, cron and time zones, and storage.

pub mod application;
pub mod definition;
pub mod division;
pub mod due;
pub mod id;
pub mod member;
pub mod pool;
pub mod prize;
pub mod record;
pub mod series;
pub mod start;
pub mod state;

pub use application::{Application, Status};
pub use definition::{BelowMin, Contest, OnInvalid};
pub use id::ContestId;
pub use member::{ContestPlayer, Payout};
pub use pool::PrizePool;
pub use prize::{Prize, PrizeTies};
pub use record::ContestRecord;
pub use series::{Series, SeriesRecord};
pub use state::{ActorKind, ContestRight, ContestState, ContestTrigger};
