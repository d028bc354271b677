//! The API from a client's view, on every kind of store.
//!
//! These tests run on SQLite, and again on every other store that `TALLY_TEST_ON` names (`xtask/src/testing.rs`). The binaries of
//! this folder are few, because each links the whole program again and waits for its own slowest test. Each module has one
//! subject. Not here: one server beside its API (`server`), faults and several servers (`faults`), other programs (`clients`).

mod audit;
mod bad_input;
mod events;
mod http_boards;
mod http_permissions;
mod http_scores;
mod idempotency;
mod import;
mod kill;
mod model;
mod money;
mod openapi;
mod pages;
mod periods;
mod players;
mod resp_boards;
mod resp_connection;
mod resp_differential;
mod resp_kill;
mod resp_periods;
mod resp_permissions;
mod slow_requests;
mod traces;
mod webhooks;

/// The program under test.
const TALLY: &str = env!("CARGO_BIN_EXE_tally");
