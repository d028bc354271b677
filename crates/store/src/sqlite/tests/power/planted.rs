//! Former faults, planted again: the tests find each of them.

use super::errors::at_each;
use super::*;
use crate::sqlite::seeded_faults::{SeededFault, seed};
use tally_testkit::disk::{DiskError, Operation};

/// Removes the fault, even after a panic of the test.
struct Planted;

impl Planted {
    fn new(fault: SeededFault) -> Self {
        seed(Some(fault));
        Self
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        seed(None);
    }
}

/// The result of the error runs for a planted fault, at the operations where it may show.
fn found(fault: SeededFault, wanted: &dyn Fn(Operation, &str) -> bool) -> String {
    let _planted = Planted::new(fault);
    let mut rng = Rng::of("planted faults");
    let walked = at_each(&mut rng, 1, &[DiskError::Io], &|_, operation, path| wanted(operation, path));
    walked.expect_err("a planted fault is found")
}

fn is_sync_of_journal(operation: Operation, path: &str) -> bool {
    operation == Operation::Sync && path.contains(".journal-") && path.ends_with("-wal")
}

#[test]
fn a_mend_that_is_not_synced_is_found() {
    let found = found(SeededFault::RewriteUnsynced, &is_sync_of_journal);
    assert!(found.contains("power cut"), "{found}");
}

#[test]
fn a_cut_of_the_log_that_is_not_synced_is_found() {
    let found = found(SeededFault::CutUnsynced, &is_sync_of_journal);
    assert!(found.contains("was Refused"), "{found}");
}

#[test]
fn a_journal_file_that_is_forgotten_is_found() {
    let found = found(SeededFault::FlushedForgotten, &is_sync_of_journal);
    assert!(found.contains("left over"), "{found}");
}

#[test]
fn a_restore_without_a_mark_is_found() {
    let _planted = Planted::new(SeededFault::RestoreUnmarked);
    std::panic::catch_unwind(super::files::cut_a_restore).expect_err("a planted fault is found");
}

/// A power cut cannot cause these three. The tests of `lost` and `journal` have the same files, and would fail.
#[test]
fn what_is_not_checked_at_a_start_is_found() {
    let torn = super::super::journal::torn_behind_the_end();
    let (missing, foreign, other) = (lost::killed(), lost::killed(), lost::killed());
    for path in lost::journal_files(&missing) {
        std::fs::remove_file(path).unwrap();
    }
    for (mine, its) in lost::journal_files(&foreign).iter().zip(lost::journal_files(&other)) {
        std::fs::copy(its, mine).unwrap();
    }
    {
        let _planted = Planted::new(SeededFault::ProofUnchecked);
        assert!(matches!(torn.open(), Err(StoreError::Corrupt(_))));
    }
    {
        let _planted = Planted::new(SeededFault::MissingAccepted);
        assert_eq!(
            score(&missing.killed().open().unwrap(), "bob"),
            None,
            "19 batches are lost without a word"
        );
    }
    let _planted = Planted::new(SeededFault::ForeignAccepted);
    assert_eq!(score(&foreign.killed().open().unwrap(), "bob"), Some(20), "another store's");
}
