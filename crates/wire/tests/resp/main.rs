//! The Redis protocol: what is decoded, what is printed, which numbers are accepted, and that real servers agree.

mod body;
mod decode;
mod encode;
mod numbers;
mod reply;
mod servers;
