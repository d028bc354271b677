//! The pause before an operation that failed is tried again, and its lines in the log.
//!
//! The pause grows to a bound, so an unavailable component gets few attempts. Not here: trying, and waiting.

use crate::failure::{Failure, Fault};
use std::mem::{Discriminant, discriminant};
use std::time::Duration;
use tally_store::ThrottledLog;

/// After the first failure.
const PAUSE: Duration = Duration::from_millis(200);
/// After the fifth and those that follow.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The failures of one operation.
pub(crate) struct Backoff {
    what: &'static str,
    log: ThrottledLog<Option<Discriminant<Fault>>>,
    pause: Duration,
}

impl Backoff {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, log: ThrottledLog::default(), pause: Duration::ZERO }
    }

    /// Records the result of an attempt; returns the pause before the next one.
    pub(crate) fn note(&mut self, failure: Option<&Failure>) -> Duration {
        let Some(failure) = failure else {
            self.log.works(self.what);
            self.pause = Duration::ZERO;
            return self.pause;
        };
        let kind = match failure {
            Failure::Fault(fault) => Some(discriminant(fault)),
            Failure::Rejected(_) => None,
        };
        self.log.fails(self.what, kind, failure);
        self.pause = (self.pause * 2).clamp(PAUSE, PAUSE_MAX);
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_to_a_bound_until_it_works() {
        let mut backoff = Backoff::new("close periods");
        assert_eq!(backoff.note(None), Duration::ZERO);
        let unavailable = Failure::Fault(Fault::StoreUnavailable("x".into()));
        let (mut time, mut attempts) = (Duration::ZERO, 0);
        while time < Duration::from_secs(60) {
            time += backoff.note(Some(&unavailable));
            attempts += 1;
        }
        assert!((30..40).contains(&attempts), "{attempts} attempts");
        assert_eq!(backoff.note(None), Duration::ZERO);
        assert_eq!(backoff.note(Some(&unavailable)), PAUSE);
    }
}
