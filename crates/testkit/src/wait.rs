//! Waiting for a condition of another process or thread.
//!
//! Not here: a measurement. The timeout only keeps a failing test from hanging.

use std::time::{Duration, Instant};

/// How long a test waits for another process or thread before it fails. A machine that does other work is slow, so this is long.
pub const GIVE_UP: Duration = Duration::from_secs(180);
const POLL_PAUSE: Duration = Duration::from_millis(10);

/// Polls until the condition is true.
///
/// # Panics
///
/// At the timeout, with `what`.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Polls until there is an answer.
///
/// # Panics
///
/// At the timeout, with `what`.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(started.elapsed() < GIVE_UP, "it never happens: {what}");
        std::thread::sleep(POLL_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_ends_with_the_first_yes() {
        let mut asked = 0;
        wait_until("the third time", || {
            asked += 1;
            asked == 3
        });
        assert_eq!(asked, 3);
    }
}
