//! Use cases: what a command reads, which rule decides it, what it writes and what it returns.
//!
//! One file per use case. Listeners call these functions with parsed commands and a [`keys::Caller`]; nothing here knows HTTP,
//! JSON or a command line. Not here: rules (crate `rules`), SQL (crate `store`), ranks (crate `ranking`) and batching (crate
//! `lanes`); this crate combines them.

pub mod activity;
pub mod audit;
mod background;
mod backoff;
pub mod boards;
pub mod calendar;
pub mod clock;
mod clock_memory;
pub mod contests;
pub mod damaged;
pub mod events;
pub mod failure;
pub mod fingerprint;
pub mod follow;
pub mod footprint;
pub mod keyring;
pub mod keys;
pub mod ledger;
pub mod maintenance;
pub mod members;
mod outcomes;
pub mod owed;
pub mod periods;
pub mod players;
pub mod progress;
pub mod rebuild;
pub mod redis_health;
mod reply;
pub mod requests;
pub mod rotation;
pub mod scan;
pub mod scores;
pub mod secret;
pub mod secret_loss;
pub mod seeded_faults;
mod servers;
pub mod settings;
pub mod signed_requests;
pub mod stages;
mod stats;
pub mod tally;
pub mod traces;
pub mod verify;
pub mod webhooks;

pub use background::LaneByHand;
pub use clock::Clock;
pub use failure::{Failure, Fault, blocking};
pub use keys::{Caller, CallerKind, Keys};
pub use progress::Progress;
pub use redis_health::RedisState;
pub use settings::{Background, Settings};
pub use tally::Tally;
// Types of the crates below that listeners show.
pub use tally_lanes::{Cut, Histogram, LaneTimings, Stats, Times};
pub use tally_ranking::{Edge, PageQuery, PageStart, Probe, RankedEntry, RankingBackend, Reads};
pub use tally_store::plan::ALL_TIME;
pub use tally_store::{BoardNo, COUNTERS, LostCommits, Slow, Store};

/// The names of values of a store that say what a Redis has of its rankings. They do not go with a copy into another store.
pub const ABOUT_REDIS: [&str; 2] = [periods::catch_up::LOADED, servers::redis_claim::ROW];
