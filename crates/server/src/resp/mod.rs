//! The RESP listener, for any Redis client: a board is a sorted set.
//!
//! `listen.rs` accepts, `connection.rs` moves bytes, `session.rs` is the state and the caller of a connection. `spec.rs` is
//! the only table of commands, `run.rs` a pipeline or transaction on its way through the lane. Each family of commands is a
//! file: `zset` has those of Redis, `lb` those beyond Redis; then `keys.rs`, `client.rs`, `info.rs`. Shapes of bytes are in
//! the crate `wire`, rules in `rules`.
//!
//! A command is one of five kinds (see `spec::CommandKind`). Reads before the first write of a pipeline are answered at once from
//! the ranking in memory. From the first write on, the connection collects commands until no more have arrived. Then they
//! go to the lane as one request, and their replies to the client as one write.
//!
//! A server that follows another one sends them to the leader instead (`forward.rs`), which runs them as a session of their
//! caller (`forwarded.rs`).

mod args;
mod blocking_reads;
mod budget;
mod buffers;
mod client;
mod connection;
pub(crate) mod counts;
mod error;
mod forward;
pub(crate) mod forwarded;
mod info;
mod keys;
mod lb;
pub mod listen;
mod pattern;
mod run;
mod session;
mod shape;
mod spec;
mod target;
mod threads;
mod zset;

pub use listen::{RespServer, RespSettings, start};
pub use threads::{CONNECTION_THREADS, threads_of_this_machine};
