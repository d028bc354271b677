//! Programs that others wrote, against the real server: a browser, client libraries of other languages, and TLS proxies.
//!
//! Not here: the bytes on the wire, which `api` compares.

mod console;
mod generated;
mod libraries;
mod packages;
mod tls;
mod tutorial;

/// The program under test.
const TALLY: &str = env!("CARGO_BIN_EXE_tally");
