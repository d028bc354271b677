//! One bit of a file at rest is changed before a start.
//!
//! Frames of a log have a checksum, and batches of the journal a digest. So a start refuses such a store, or its answers are
//! those that were stored. Only the last batch may be missing: its frame looks like one that a power cut has torn. Not here:
//! rows in pages of the tables, which have no checksum.

use super::*;

/// The number of changes of each file; `TALLY_SOAK` multiplies it.
const CHANGES: u64 = 12;

#[test]
fn a_changed_bit_is_refused_or_changes_no_answer() {
    let mut rng = Rng::of("changed bits");
    let whole = lost::killed();
    let (mut refused, mut of_journal) = (0, 0);
    for (name, bytes) in whole.files() {
        for _ in 0..if bytes.is_empty() { 0 } else { CHANGES * soak() } {
            let place = whole.killed();
            let (at, bit) = (usize::try_from(rng.below(bytes.len() as u64)).unwrap(), rng.below(8));
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            std::fs::write(place.folder.path().join(&name), changed).unwrap();
            let is_journal = name.contains(".journal-");
            match place.open() {
                Err(StoreError::Corrupt(text)) => {
                    refused += 1;
                    of_journal += u32::from(is_journal);
                    assert!(
                        !is_journal || text.contains("`tally repair`"),
                        "{name}, bit {bit} of {at}: {text}"
                    );
                }
                Err(
                    error @ (StoreError::NotOurs(_) | StoreError::TooNew { .. } | StoreError::TooOld { .. }),
                ) => {
                    assert!(!is_journal, "{name}, bit {bit} of {at}: {error}");
                }
                Err(other) => panic!("{name}, bit {bit} of {at}: {other}"),
                Ok(store) if name != "tally.db" => {
                    assert_eq!(score(&store, "ann"), Some(1), "{name}, bit {bit} of {at}");
                    let bob = score(&store, "bob");
                    assert!(matches!(bob, Some(19 | 20)), "{name}, bit {bit} of {at}: {bob:?}");
                    put(&store, ["later".to_owned()].into_iter(), 1).unwrap();
                }
                Ok(_) => {}
            }
        }
    }
    assert!(refused > of_journal && of_journal > 0, "{refused}, {of_journal}");
}

#[test]
fn a_journal_that_is_no_database_is_refused_and_repaired() {
    let place = lost::killed();
    let path = place.folder.path().join("tally.db.journal-2");
    let mut bytes = std::fs::read(&path).unwrap();
    // The fraction of a page that is payload: SQLite accepts one value.
    bytes[23] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let Err(StoreError::Corrupt(text)) = place.open() else { panic!("it starts") };
    assert!(text.contains("journal-2") && text.contains("`tally repair`"), "{text}");
    let repaired = repair(&place.path(), &Options::default(), None).unwrap();
    assert!(repaired.wrong.is_some() && !repaired.set_aside.is_empty());
    assert_eq!(score(&place.open().unwrap(), "ann"), Some(1));
}
