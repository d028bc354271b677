//! Where a crash is tried: tests name one of these places and the process ends there, as if it were killed.
//!
//! Without tests there is nothing of it in the program.

/// Ends the process here, if the test that started it wants that.
#[cfg(test)]
pub(super) fn reach(point: &str) {
    if std::env::var("TALLY_STORE_CRASH").is_ok_and(|wanted| wanted == point) {
        std::process::abort();
    }
}

#[cfg(not(test))]
pub(super) fn reach(_point: &str) {}
