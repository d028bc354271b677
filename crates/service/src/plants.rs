//! Faults that were once in this service: a test plants one of them again and shows that the simulation finds it.
//!
//! Without the feature `plants`, which only tests turn on, there is nothing of it in the program.

/// A fault of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The number of a forgotten period is used again before its rows are purged.
    NumberReused,
    /// The targets of scores follow the instant that decides ties, which never goes back.
    AimedByInstant,
}

#[cfg(feature = "plants")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Plant>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault on this thread.
#[cfg(feature = "plants")]
pub fn plant(fault: Option<Plant>) {
    PLANTED.set(fault);
}

/// Whether a test has planted the fault.
#[cfg(feature = "plants")]
pub(crate) fn is_planted(fault: Plant) -> bool {
    PLANTED.get() == Some(fault)
}

#[cfg(not(feature = "plants"))]
pub(crate) const fn is_planted(_fault: Plant) -> bool {
    false
}
