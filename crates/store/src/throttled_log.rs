//! Throttled log of a repeated operation: one line for each kind of failure, and one when it works again.
//!
//! Not here: the retries and their backoff.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The present failure of an operation; `K` says which failures are of one kind.
#[derive(Debug)]
pub struct ThrottledLog<K>(Mutex<Option<Failing<K>>>);

#[derive(Debug)]
struct Failing<K> {
    since: Instant,
    attempts: u64,
    kind: K,
}

impl<K> Default for ThrottledLog<K> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<K: PartialEq> ThrottledLog<K> {
    /// Logs a failure, unless the last one was of the same kind.
    pub fn fails(&self, what: &str, kind: K, cause: &dyn Display) {
        let mut failing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, attempts, is_known) = match &*failing {
            Some(before) => (before.since, before.attempts + 1, before.kind == kind),
            None => (Instant::now(), 1, false),
        };
        if !is_known {
            tracing::warn!(%cause, "{what}: it is tried again until it works");
        }
        *failing = Some(Failing { since, attempts, kind });
    }

    /// Logs the first success after failures.
    pub fn works(&self, what: &str) {
        let failing = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Failing { since, attempts, .. }) = failing {
            tracing::info!(attempts, seconds = since.elapsed().as_secs_f64(), "{what}: it works again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_testkit::LogLines;

    #[test]
    fn each_kind_of_failure_has_one_line_and_its_end_another() {
        let lines = LogLines::default();
        tracing::subscriber::with_default(lines.clone(), || {
            let log = ThrottledLog::default();
            let mut count = 0;
            let mut said = |wanted: usize| {
                count += lines.take().len();
                assert_eq!(count, wanted);
            };
            log.works("flush");
            said(0);
            (0..86).for_each(|_| log.fails("flush", "no space", &""));
            said(1);
            (0..86).for_each(|_| log.fails("flush", "no disk", &""));
            said(2);
            (0..3).for_each(|_| log.works("flush"));
            said(3);
            log.fails("flush", "no space", &"");
            said(4);
        });
    }
}
