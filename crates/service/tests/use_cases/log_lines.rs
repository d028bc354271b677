//! The log lines of a thread.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The log lines so far, with their levels.
#[derive(Clone, Default)]
pub(crate) struct LogLines(Arc<Mutex<Vec<(Level, String)>>>);

impl LogLines {
    /// How many lines of a level contain a text.
    pub(crate) fn count(&self, level: Level, text: &str) -> usize {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|(of, line)| *of == level && line.contains(text)).count()
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for LogLines {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        self.0.lock().unwrap().push((*event.metadata().level(), message.0));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}
