//! The Redis protocol as bytes: decoding of requests and replies, encoding of both, and numbers.
//!
//! It accepts, refuses and prints what Redis 7.2 does, because clients depend on the exact form. A file that differs says so.
//! Everything works on slices and appends to a `Vec`, so the listener, the load generator and the fuzzer share it.
//!
//! Not here: sockets, the meaning of commands, and permissions.

pub mod decode;
pub mod double;
pub mod encode;
mod grisu;
mod hex;
mod inline;
pub mod number;
pub mod reply;

pub use decode::{DecodeLimits, Decoder, ProtocolError};
pub use encode::{Encoder, Protocol, Quota, command};
pub use number::Bound;
pub use reply::{Replies, Reply, ReplyError};
