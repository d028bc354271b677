//! Faults that were once in this service: a test plants one of them again and shows that the simulation finds it.
//!
//! A release has nothing of it: only builds with debug assertions do.

/// A fault of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeededFault {
    /// The number of a forgotten period is used again before its rows are purged.
    NumberReused,
    /// The targets of scores follow the instant that decides ties, which never goes back.
    TargetedByInstant,
}

#[cfg(debug_assertions)]
thread_local! {
    static SEEDED: std::cell::Cell<Option<SeededFault>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault on this thread.
#[cfg(debug_assertions)]
pub fn seed(fault: Option<SeededFault>) {
    SEEDED.set(fault);
}

/// Whether a test has planted the fault.
#[cfg(debug_assertions)]
pub(crate) fn is_seeded(fault: SeededFault) -> bool {
    SEEDED.get() == Some(fault)
}

#[cfg(not(debug_assertions))]
pub(crate) const fn is_seeded(_fault: SeededFault) -> bool {
    false
}
