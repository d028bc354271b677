//! The log lines of a thread.
//!
//! Lines of other threads are not seen. Not here: the log of a process (`process.rs`).

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A log line.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Its level.
    pub level: Level,
    /// Its text.
    pub message: String,
    /// The field `cause`, or nothing.
    pub cause: String,
}

/// The log lines so far: a subscriber for `tracing::subscriber::with_default`. All clones are one list.
#[derive(Clone, Debug, Default)]
pub struct LogLines(Arc<Mutex<Vec<LogLine>>>);

impl LogLines {
    /// How many lines of a level contain a text.
    pub fn count(&self, level: Level, text: &str) -> usize {
        let lines = self.0.lock().expect("no holder panics");
        lines.iter().filter(|line| line.level == level && line.message.contains(text)).count()
    }

    /// Takes the lines so far.
    pub fn take(&self) -> Vec<LogLine> {
        std::mem::take(&mut self.0.lock().expect("no holder panics"))
    }
}

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "cause" => self.cause = format!("{value:?}"),
            _ => {}
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
        let level = *event.metadata().level();
        let mut line = LogLine { level, message: String::new(), cause: String::new() };
        event.record(&mut line);
        self.0.lock().expect("no holder panics").push(line);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}
