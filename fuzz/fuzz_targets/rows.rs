//! Stored rows: any batch of the journal, any columns of a table of SQLite or MySQL, and any archive block is read or is damage.
//!
//! The bodies are those of the tests in `crates/store/src/fuzzing.rs` and `crates/ranking/src/blocks.rs`, which also run the
//! corpus. Not here: files that are no databases, which SQLite judges.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tally_store::fuzzing::rows(bytes);
    if let Some(entries) = tally_ranking::blocks::unpack(bytes) {
        assert_eq!(tally_ranking::blocks::unpack_first(bytes).as_ref(), entries.first());
    }
});
