//! Load over the wire: connections that ask a running server, latencies to the last percentile, and a proof.
//!
//! A run is a [`Plan`] against a [`Target`]: so many connections, one [`Kind`] of request, for so long after a warm-up.
//! [`run`] tells rate, errors and latencies; [`Acknowledged`] remembers what the server promised to keep, and [`verify`]
//! asks for it back. [`run_pipelines`] does the asking in the Redis protocol, with commands of its caller. [`open`] asks
//! by the clock, however slow the answers. The generator shares the machine with the server, so it is one thread that
//! reuses its buffers.
//!
//! Not here: the service and its store. What a client cannot see, this crate does not know.

mod acknowledged;
mod arrivals;
mod connection;
mod draws;
mod fill;
mod latencies;
mod look;
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
pub use draws::{Draws, Skew};
pub use fill::fill;
pub use latencies::Latencies;
pub use look::look;
pub use outcome::Outcome;
pub use people::{People, Person};
pub use random::{Random, bits_of};
pub use resp::{Pipelines, Replied, run_pipelines};
pub use run::{Plan, run};
pub use verify::{Proof, verify};
pub use workload::{Kind, Target, player};
