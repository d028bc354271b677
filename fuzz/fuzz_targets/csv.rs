//! Texts of CSV files: no exported text is a formula, and an import has it as it was.
//!
//! Not here: reading files, which is the affair of the library `csv`.

#![no_main]

#[path = "../../crates/tally/src/csv_text.rs"]
mod csv_text;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let exported = csv_text::escape(text);
    assert!(!exported.starts_with(['=', '+', '-', '@', '\t', '\r']));
    assert_eq!(csv_text::unescape(&exported), text);
});
