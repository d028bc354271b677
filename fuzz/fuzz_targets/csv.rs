//! Texts of CSV files: no exported text is a formula, and an import has it as it was.
//!
//! The body is that of the test in `crates/tally/src/fuzzing.rs`, which also runs the corpus. Not here: reading files, which is
//! the affair of the library `csv`.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| tally_fuzz::csv(text));
