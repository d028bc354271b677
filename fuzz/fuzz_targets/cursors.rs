//! Cursors: any text is one or is not, and one reads back for its own list alone.
//!
//! The body is the one of the property tests of `crates/wire`, which also run the corpus beside this file. Not here:
//! anything to decide; a finding becomes a file of the corpus.

#![no_main]

#[allow(dead_code, reason = "each target runs one of its functions")]
#[path = "../../crates/wire/tests/texts/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::cursors(bytes));
