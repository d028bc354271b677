//! The sources of `crates/tally` that are fuzzed. A program has no library, so they are taken by their paths.

#![allow(dead_code, reason = "the program uses the rest")]

#[path = "../../crates/tally/src/config.rs"]
mod config;
#[path = "../../crates/tally/src/csv_text.rs"]
mod csv_text;
#[path = "../../crates/tally/src/fuzzing.rs"]
mod fuzzing;
#[path = "../../crates/tally/src/limit_settings.rs"]
mod limit_settings;
#[path = "../../crates/tally/src/member_settings.rs"]
mod member_settings;
#[path = "../../crates/tally/src/memory.rs"]
mod memory;
#[path = "../../crates/tally/src/money_settings.rs"]
mod money_settings;
#[path = "../../crates/tally/src/settings.rs"]
mod settings;
#[path = "../../crates/tally/src/trace_settings.rs"]
mod trace_settings;

/// Any configuration file and variables.
pub fn settings(text: &str) {
    fuzzing::settings(text);
}

/// Any text of a CSV file.
pub fn csv(text: &str) {
    fuzzing::csv(text);
}
