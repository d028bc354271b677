//! Seeded faults: former faults of this store that a test plants again, to show that the simulated disk finds them.
//!
//! The program contains them only in tests.

/// A former fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeededFault {
    /// Torn pages of unsynced writes are accepted as proof of corruption.
    ProofUnchecked,
    /// After a failed sync of asynchronous commits, the only copy of acknowledged batches goes into an unsynced file.
    RewriteUnsynced,
    /// A refused batch comes back after a power cut, because the log was truncated and the truncation not synced.
    CutUnsynced,
    /// A missing or empty journal file is accepted.
    MissingAccepted,
    /// A restore leaves no marker while it replaces a store.
    RestoreUnmarked,
    /// A journal file that cannot be emptied is forgotten.
    FlushedForgotten,
    /// The journal of another store is accepted.
    ForeignAccepted,
}

#[cfg(test)]
thread_local! {
    static SEEDED: std::cell::Cell<Option<SeededFault>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault on this thread.
#[cfg(test)]
pub(super) fn seed(fault: Option<SeededFault>) {
    SEEDED.set(fault);
}

/// Whether a test has planted the fault.
#[cfg(test)]
pub(super) fn is_seeded(fault: SeededFault) -> bool {
    SEEDED.get() == Some(fault)
}

#[cfg(not(test))]
pub(super) const fn is_seeded(_fault: SeededFault) -> bool {
    false
}
