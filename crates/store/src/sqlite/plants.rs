//! Faults that were once in this store: a test plants one of them again and shows that the simulated disk finds it.
//!
//! Without tests there is nothing of it in the program.

/// A fault of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    /// Torn pages of unsynced writes are taken for proof of damage.
    ProofUnchecked,
    /// After a failed relaxed sync, the only copy of acknowledged batches goes into a file that is not synced.
    MendUnsynced,
    /// A refused batch comes back after a power cut, because the log was cut and the cut not synced.
    CutUnsynced,
    /// A journal file that is missing or empty is accepted.
    MissingAccepted,
    /// A restore leaves no mark while it replaces a store.
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

/// Whether a test wants the fault.
#[cfg(test)]
pub(super) fn is_planted(fault: Plant) -> bool {
    PLANTED.get() == Some(fault)
}

#[cfg(not(test))]
pub(super) const fn is_planted(_fault: Plant) -> bool {
    false
}
