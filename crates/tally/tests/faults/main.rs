//! The clients' view of failures: of a server, a database, a Redis, a disk, a network or a clock.
//!
//! Not here: one server that is killed on every store (`api/kill.rs`, `api/resp_kill.rs`).

mod alerts;
mod clock;
mod damaged;
mod followers;
mod forward;
mod forward_resp;
mod full;
mod kills;
mod lease;
mod lost_commits;
mod matrix;
mod ranking_redis;
mod servers;
mod shards;
mod slow_requests;
mod two_machines;

/// The program under test.
const TALLY: &str = env!("CARGO_BIN_EXE_tally");
