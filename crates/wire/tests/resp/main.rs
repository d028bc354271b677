//! The Redis protocol: decoding, encoding, numbers, and agreement with real servers.

mod body;
mod decode;
mod encode;
mod numbers;
mod reply;
mod servers;
