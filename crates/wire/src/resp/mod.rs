//! The Redis protocol as bytes: requests and replies in, replies out, and the numbers inside them.
//!
//! What is accepted, refused and printed is what Redis 7.2 does, because its clients depend on the letter of it; where
//! something differs, the file that does it says so. Everything works on slices and appends to a `Vec`, so the door, the
//! load generator and the fuzzer share it.
//!
//! Not here: sockets, the meaning of any command, and who may call it.

pub mod decode;
pub mod double;
pub mod encode;
mod grisu;
mod hex;
mod inline;
pub mod number;
pub mod reply;

pub use decode::{Bounds, Decoder, ProtocolError};
pub use encode::{Encoder, Protocol, Quota, command};
pub use number::Bound;
pub use reply::{Replies, Reply, ReplyError};
