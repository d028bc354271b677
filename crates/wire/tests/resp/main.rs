//! The Redis protocol: what is decoded, what is printed, which numbers are accepted.

mod body;
mod decode;
mod encode;
mod numbers;
mod reply;
