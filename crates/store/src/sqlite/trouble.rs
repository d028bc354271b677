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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    /// Counts lines.
    struct Lines(Arc<AtomicUsize>);

    impl Subscriber for Lines {
        fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _span: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _span: &Id, _values: &Record<'_>) {}

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

        fn event(&self, _event: &Event<'_>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }

        fn enter(&self, _span: &Id) {}

        fn exit(&self, _span: &Id) {}
    }

    #[test]
    fn each_cause_has_one_line_and_its_end_another() {
        let lines = Arc::new(AtomicUsize::new(0));
        tracing::subscriber::with_default(Lines(Arc::clone(&lines)), || {
            let trouble = Trouble::default();
            let said = |wanted: usize| assert_eq!(lines.load(Ordering::SeqCst), wanted);
            trouble.ends("fold");
            said(0);
            (0..86).for_each(|_| trouble.is("fold", "no space"));
            said(1);
            (0..86).for_each(|_| trouble.is("fold", "no disk"));
            said(2);
            (0..3).for_each(|_| trouble.ends("fold"));
            said(3);
            trouble.is("fold", "no space");
            said(4);
        });
    }
}
