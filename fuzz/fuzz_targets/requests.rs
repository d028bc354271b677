//! Requests of the Redis protocol: any bytes, the same commands however they are cut.
//!
//! The body is the one of the property tests of `crates/wire`, which also run the corpus beside this file, so what is
//! found here fails there. Not here: anything to decide; a finding becomes a file of the corpus.

#![no_main]

#[path = "../../crates/wire/tests/resp/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
