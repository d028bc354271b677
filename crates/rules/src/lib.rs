//! The rules of boards, scores and money: pure functions of their arguments.
//!
//! Time, ids and all stored rows are arguments. Nothing here reads a clock, a file or a random number. So every
//! rule can be tested against a simple model with random operations, and deciding a batch twice gives the same
//! result. Not here: SQL, JSON, ranks of a whole board (the `index` crate) and cron or time zones (the `service` crate
//! turns them into boundaries first).

#![forbid(unsafe_code)]

pub mod actor;
pub mod audit;
pub mod clock;
pub mod contest;
pub mod definition;
pub mod event;
pub mod grant;
pub mod idempotency;
pub mod ids;
pub mod instant;
pub mod ledger;
pub mod names;
pub mod order_key;
pub mod outcome;
pub mod period;
pub mod profile;
pub mod rank;
pub mod record;
pub mod rejection;
pub mod role;
pub mod scope;
pub mod score;
pub mod sorted_set;
pub mod webhook;

pub use actor::{Actor, KeyId, Origin};
pub use definition::Definition;
pub use grant::{Grant, Rights};
pub use ids::{BoardId, PlayerId};
pub use instant::Micros;
pub use record::Record;
pub use rejection::Rejection;
