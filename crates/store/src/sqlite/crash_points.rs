//! Crash points: a test names one of these places, and the process ends there as if it were killed.
//!
//! The program contains them only in tests.

/// Ends the process here, if the test that started it names this point.
#[cfg(test)]
pub(super) fn reach(point: &str) {
    if std::env::var("TALLY_STORE_CRASH").is_ok_and(|wanted| wanted == point) {
        std::process::abort();
    }
}

#[cfg(not(test))]
pub(super) fn reach(_point: &str) {}
