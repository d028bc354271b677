//! Settings: any configuration file and any variables are read, and what is wrong is said by name.
//!
//! The body is that of the test in `crates/tally/src/fuzzing.rs`, which also runs the corpus. Not here: files of certificates and
//! secrets, which settings name.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| tally_fuzz::settings(text));
