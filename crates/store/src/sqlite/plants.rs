//! Seeded faults: former faults of this store that a test plants again, to show that the simulated disk finds them.
//!
//! The program contains them only in tests.

/// A former fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    /// Torn pages of unsynced writes are accepted as proof of corruption.
    ProofUnchecked,
    /// After a failed sync of asynchronous commits, the only copy of acknowledged batches goes into an unsynced file.
    MendUnsynced,
    /// A refused batch comes back after a power cut, because the log was truncated and the truncation not synced.
    CutUnsynced,
    /// A missing or empty journal file is accepted.
    MissingAccepted,
    /// A restore leaves no marker while it replaces a store.
    RestoreUnmarked,
    /// A journal file that cannot be emptied is forgotten.
    SpentForgotten,
    /// The journal of another store is accepted.
    ForeignAccepted,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Plant>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault on this thread.
#[cfg(test)]
pub(super) fn plant(fault: Option<Plant>) {
    PLANTED.set(fault);
}

/// Whether a test has planted the fault.
#[cfg(test)]
pub(super) fn is_planted(fault: Plant) -> bool {
    PLANTED.get() == Some(fault)
}

#[cfg(not(test))]
pub(super) const fn is_planted(_fault: Plant) -> bool {
    false
}
