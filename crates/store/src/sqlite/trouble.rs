//! Failures of the disk that are tried again: the log has one line per cause, and one when it is over.
//!
//! Not here: trying again.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What is known to fail at present.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<Option<Told>>);

#[derive(Debug)]
struct Told {
    since: Instant,
    attempts: u64,
    cause: String,
}

impl Trouble {
    /// Something failed.
    pub(super) fn is(&self, what: &str, cause: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, attempts, known) = match &*told {
            Some(told) => (told.since, told.attempts + 1, told.cause == cause),
            None => (Instant::now(), 1, false),
        };
        if !known {
            tracing::error!(cause, "failed to {what}; it is tried again until it works");
        }
        *told = Some(Told { since, attempts, cause: cause.to_owned() });
    }

    /// It works, again if it did not.
    pub(super) fn ends(&self, what: &str) {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Told { since, attempts, cause }) = told {
            let seconds = since.elapsed().as_secs_f64();
            tracing::info!(cause, attempts, seconds, "it works again to {what}");
        }
    }
}
