//! One line for each cause and second: further warnings and errors of a cause are counted, and a line tells their number.
//!
//! A cause is a place in the code with the fields of its line, except those of a single request. Without this, a store that is
//! unavailable gives a line for each refused request, and hides all else. Lines of level INFO are not counted together: each
//! administrative act has its line, and security events have bounds of their own.
//!
//! Not here: failures of work in the background, which are one line from the first to the last (`ThrottledLog`).

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tally_server::LogLines;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// The time in which a cause has one line.
const WINDOW: Duration = Duration::from_secs(1);
/// Causes that are told apart at a time. Further ones count as one for each place in the code.
const CAUSES_MAX: usize = 1_000;
/// Fields of a single request, which are not part of its cause.
const OF_REQUEST: [&str; 3] = ["method", "path", "took"];

/// The causes that had a line in the last second.
pub(super) struct Repeats {
    causes: Mutex<Option<HashMap<Cause, Repeated>>>,
    counts: &'static LogLines,
}

/// The place in the code, and the fields of the line.
type Cause = (tracing::callsite::Identifier, String);

struct Repeated {
    began: Instant,
    level: Level,
    message: String,
    /// Lines since then that were only counted, and the id of the last request among them.
    count: u64,
    request_id: String,
}

/// The fields of a line.
#[derive(Default)]
struct Fields {
    message: String,
    cause: String,
    request_id: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "request_id" => self.request_id = format!("{value:?}"),
            name if OF_REQUEST.contains(&name) => {}
            name => {
                let space = if self.cause.is_empty() { "" } else { " " };
                // Writing to a string does not fail.
                let _ = write!(self.cause, "{space}{name}={value:?}");
            }
        }
    }
}

impl Repeats {
    pub(super) const fn new(counts: &'static LogLines) -> Self {
        Self { causes: Mutex::new(None), counts }
    }

    /// Whether a line of this cause is written now; otherwise it is counted.
    fn is_line(
        &self,
        place: tracing::callsite::Identifier,
        level: Level,
        fields: Fields,
        now: Instant,
    ) -> bool {
        let Fields { message, cause, request_id } = fields;
        let mut causes = self.lock();
        let causes = causes.get_or_insert_default();
        let mut key = (place, format!("{message} {cause}"));
        if causes.len() >= CAUSES_MAX && !causes.contains_key(&key) {
            key.1.clear();
        }
        if let Some(known) = causes.get_mut(&key) {
            known.count += 1;
            known.request_id = request_id;
            self.counts.repeated.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let message = if cause.is_empty() { message } else { format!("{message} {cause}") };
        causes.insert(key, Repeated { began: now, level, message, count: 0, request_id: String::new() });
        true
    }

    /// How long until a count may have to be told; `None` if there is nothing to count.
    pub(super) fn patience(&self, now: Instant) -> Option<Duration> {
        let causes = self.lock();
        let began = causes.as_ref()?.values().map(|repeated| repeated.began).min()?;
        Some((began + WINDOW).saturating_duration_since(now))
    }

    /// Takes the counts of causes whose second is over. A cause that still repeats begins another second.
    fn over(&self, now: Instant) -> Vec<(Level, String, u64, String)> {
        let mut causes = self.lock();
        let Some(causes) = causes.as_mut() else { return Vec::new() };
        let mut over = Vec::new();
        causes.retain(|_, repeated| {
            if now.duration_since(repeated.began) < WINDOW {
                return true;
            }
            let count = std::mem::take(&mut repeated.count);
            if count > 0 {
                repeated.began = now;
                let request_id = std::mem::take(&mut repeated.request_id);
                over.push((repeated.level, repeated.message.clone(), count, request_id));
            }
            count > 0
        });
        over
    }

    /// Logs the counts of causes whose second is over.
    pub(super) fn tell(&self, now: Instant) {
        for (level, message, count, request_id) in self.over(now) {
            if level == Level::ERROR {
                tracing::error!(count, request_id, "{message}");
            } else {
                tracing::warn!(count, request_id, "{message}");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<Cause, Repeated>>> {
        self.causes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The layer of the log with these causes.
pub(super) struct OneLine(pub(super) &'static Repeats);

impl<S: Subscriber> Layer<S> for OneLine {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        let meta = event.metadata();
        // The lines of this module have counted already. Panics are rare, and each is a fault.
        if *meta.level() > Level::WARN || meta.target().starts_with(super::TARGET) {
            return true;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.is_line(meta.callsite(), *meta.level(), fields, Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_testkit::LogLines as Lines;
    use tracing_subscriber::layer::SubscriberExt;

    fn repeats() -> &'static Repeats {
        Box::leak(Box::new(Repeats::new(Box::leak(Box::default()))))
    }

    /// Lines of this module are never counted together.
    const ELSEWHERE: &str = "elsewhere";

    fn refuse(fault: &str, request_id: &str) {
        tracing::warn!(target: ELSEWHERE, fault, request_id, path = request_id, "a request met a fault");
    }

    #[test]
    fn a_cause_has_one_line_in_a_second_and_then_one_with_a_count() {
        let repeats = repeats();
        let lines = Lines::default();
        tracing::subscriber::with_default(lines.clone().with(OneLine(repeats)), || {
            (0..50).for_each(|request| refuse("away", &request.to_string()));
            refuse("broken", "b");
            tracing::warn!(target: ELSEWHERE, fault = "away", "another place");
            (0..3).for_each(|_| tracing::info!("an act"));
        });
        assert_eq!(lines.take().len(), 3 + 3);
        assert_eq!(repeats.counts.repeated.load(Ordering::Relaxed), 49);
        let now = Instant::now();
        assert_eq!(repeats.over(now - WINDOW), []);
        assert!(repeats.patience(now).is_some_and(|time| time <= WINDOW));
        let later = now + WINDOW;
        let told = (Level::WARN, "a request met a fault fault=away".to_owned(), 49, "49".to_owned());
        assert_eq!(repeats.over(later), [told]);
        // It had a line just now, and the others are forgotten.
        tracing::subscriber::with_default(lines.clone().with(OneLine(repeats)), || {
            refuse("away", "50");
            refuse("broken", "51");
        });
        assert_eq!(lines.take().len(), 1);
        assert_eq!(repeats.over(later + WINDOW).len(), 1);
        assert_eq!(repeats.over(later + 3 * WINDOW), []);
        assert_eq!(repeats.patience(later), None, "nothing is left");
    }

    #[test]
    fn causes_are_bounded() {
        let repeats = repeats();
        let lines = Lines::default();
        tracing::subscriber::with_default(lines.clone().with(OneLine(repeats)), || {
            (0..2 * CAUSES_MAX).for_each(|number| refuse(&format!("fault {number}"), "r"));
        });
        assert_eq!(lines.take().len(), CAUSES_MAX + 1);
        let told: u64 = repeats.over(Instant::now() + WINDOW).iter().map(|(_, _, count, _)| count).sum();
        assert_eq!(told as usize, CAUSES_MAX - 1);
    }
}
