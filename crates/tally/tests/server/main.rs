//! One server beside its API: its commands, its files, its limits, and contests and members with their clocks.
//!
//! Not here: the API on every store (`api`), and faults (`faults`).

mod acts;
mod another_store;
mod archive;
mod backup;
mod boundaries;
mod cli;
mod contests;
mod database_backup;
mod demo;
mod deploy;
mod descriptors;
mod doctor;
mod edges;
mod file_modes;
mod follow;
mod import_redis;
mod load;
mod logs;
mod members;
mod memory;
mod page_commands;
mod pages;
mod proofs;
mod secret;
mod security_events;
mod series;
mod upgrades;

/// The program under test.
const TALLY: &str = env!("CARGO_BIN_EXE_tally");
