//! Faults that were once in this service: a test plants one of them again and shows that the simulation finds it.
//!
//! Without the feature `seeded-faults`, which only tests turn on, there is nothing of it in the program.

/// A fault of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeededFault {
    /// The number of a forgotten period is used again before its rows are purged.
    NumberReused,
    /// The targets of scores follow the instant that decides ties, which never goes back.
    TargetedByInstant,
}

#[cfg(feature = "seeded-faults")]
thread_local! {
    static SEEDED: std::cell::Cell<Option<SeededFault>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault on this thread.
#[cfg(feature = "seeded-faults")]
pub fn seed(fault: Option<SeededFault>) {
    SEEDED.set(fault);
}

/// Whether a test has planted the fault.
#[cfg(feature = "seeded-faults")]
pub(crate) fn is_seeded(fault: SeededFault) -> bool {
    SEEDED.get() == Some(fault)
}

#[cfg(not(feature = "seeded-faults"))]
pub(crate) const fn is_seeded(_fault: SeededFault) -> bool {
    false
}
