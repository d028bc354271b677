//! Load over the wire: connections to a running server, latencies to the last percentile, and a check of the
//! acknowledged scores.
//!
//! A run is a [`LoadPlan`] against a [`LoadTarget`]: connections, one [`RequestKind`] of request, a warm-up and a duration. [`run`]
//! returns rate, errors and latencies. [`Acknowledged`] keeps the acknowledged scores, and [`verify`] reads them back.
//! [`run_pipelines`] sends commands of its caller in the Redis protocol. [`open`] is open-loop load. The generator
//! shares the machine with the server, so it is one thread that reuses its buffers.
//!
//! Not here: the service and its store. This crate uses only what a client sees.

mod acknowledged;
mod arrivals;
mod client;
mod connection;
mod draws;
mod fill;
mod latencies;
pub mod open;
mod outcome;
pub mod people;
mod random;
pub mod report;
mod request;
mod resp;
mod run;
mod verify;
mod workload;

pub use acknowledged::Acknowledged;
pub use client::{Client, get_json};
pub use draws::{Draws, Skew};
pub use fill::fill;
pub use latencies::Latencies;
pub use outcome::LoadOutcome;
pub use people::{People, Person};
pub use random::{Random, bits_of};
pub use resp::{Pipelines, Replied, run_pipelines};
pub use run::{LoadPlan, run};
pub use verify::{Proof, verify};
pub use workload::{LoadTarget, RequestKind, player};
