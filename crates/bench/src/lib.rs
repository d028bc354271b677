//! The benchmarks: every scenario beside its baseline, in one run, on this machine, with the ratio.
//!
//! A [`Scenario`] returns a [`Report`](tally_load::report::Report): tables, ratios against targets, charts, and the machine.
//! [`run`] runs scenarios by name. A scenario ends with a check that both ways did the same work, and fails without it: winning
//! by doing nothing is not winning. Each runs with small numbers in the tests, so none can rot.
//!
//! Not here: printing, and users. Nothing in the product depends on this crate; the baselines speak to a database as a client
//! without a service would.

mod contest_clear;
mod contest_start;
mod cpu;
mod database;
mod delay;
mod device;
mod disk;
mod drivers;
mod endurance;
mod error;
mod events;
mod expiry;
mod followers;
mod http;
mod hundred_million;
mod index;
mod mixed;
mod options;
mod ours;
mod page;
mod periods;
mod process;
mod redis;
mod resident;
mod resp;
mod scenario;
mod server;
mod set_at_end;
mod spent;
mod store;
mod submit;
mod targets;
mod transfer;
mod upsert;

pub use error::Error;
pub use options::{Options, Size};
pub use scenario::{SCENARIOS, Scenario, run};
