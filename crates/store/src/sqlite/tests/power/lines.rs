//! The log lines of a failing disk: one for each cause, and one when it works again.
//!
//! Lines of other threads are not seen; the stores of these tests work on the thread of the test.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Lines that were not checked yet: message and cause.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Vec<(String, String)>>>);

/// The operations that fail by the log, each with its cause.
#[derive(Default)]
pub(super) struct Failing(BTreeMap<String, String>);

#[derive(Default)]
struct Line {
    message: String,
    cause: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let into = match field.name() {
            "message" => &mut self.message,
            "cause" => &mut self.cause,
            _ => return,
        };
        let _ = write!(into, "{value:?}");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push((line.message, line.cause));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Failing {
    /// Takes the lines so far. A repeated cause is an error.
    pub(super) fn take(&mut self, lines: &Lines) -> Result<(), String> {
        for (message, cause) in std::mem::take(&mut *lines.0.lock().unwrap()) {
            if let Some(what) = message.strip_suffix(": it works again") {
                self.0.remove(what);
            } else if let Some(what) = message.strip_suffix(": it is tried again until it works") {
                let before = self.0.insert(what.to_owned(), cause.clone());
                if before.as_ref() == Some(&cause) {
                    return Err(format!("the log says twice that it fails: {what}: {cause}"));
                }
            }
        }
        Ok(())
    }

    /// Whether the log reports no failing operation.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Debug for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
