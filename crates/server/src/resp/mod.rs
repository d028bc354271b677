//! The Redis door: any Redis client, a board is a sorted set.
//!
//! `listen.rs` accepts, `connection.rs` moves bytes, `session.rs` is what a connection remembers and who it is,
//! `spec.rs` the one table of commands, `run.rs` a pipeline or transaction on its way through the lane. Each family of
//! commands is a file: `zset` with Redis' own, `lb.rs` with ours, `keys.rs`, `client.rs`, `info.rs`. Shapes of bytes are
//! in the crate `wire`, rules in `rules`.
//!
//! A command is one of five kinds (see `spec::Kind`). Reads in front of a pipeline's first write are answered at once
//! from the order in memory. From the first write on commands are gathered; when no more have arrived, all of them go to
//! the lane as one request, and their replies to the client as one write.

mod args;
mod buffers;
mod client;
mod connection;
pub(crate) mod counts;
mod elsewhere;
mod error;
mod info;
mod keys;
mod lb;
pub mod listen;
mod pattern;
mod run;
mod session;
mod spec;
mod target;
mod threads;
mod zset;

pub use listen::{RespServer, Settings, start};
pub use threads::{CONNECTION_THREADS, threads_of_this_machine};
