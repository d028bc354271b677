//! The slowest requests of the present and the last minute, each with where its time went.
//!
//! A request that is not among them costs one atomic load. The table has a bound, and a request that enters it drops the
//! fastest one. Not here: the stages of a request (`tally_service::stages`), and requests of the Redis protocol.

use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tally_service::stages::Stages;

/// The number of requests that are kept of each minute, and shown.
const KEPT: usize = 10;

const MINUTE_S: u64 = 60;

/// Routes that may compute the digest of a password, which is slow by design. They are left out, and the console shows them apart.
const PASSWORDS: [(&str, &str); 3] =
    [("POST", "/auth/signin"), ("POST", "/v1/members"), ("PATCH", "/v1/members/{member}")];

/// Other routes that are left out: the console asks for two of them all the time.
const LEFT_OUT: [(&str, &str); 3] = [("GET", "/metrics"), ("GET", "/v1/status"), ("any", UNMATCHED)];

/// The route of requests that have none, such as those for files of the console.
pub(crate) const UNMATCHED: &str = "none";

/// Whether slow requests of a route are shown.
pub(crate) fn has(method: &str, route: &str) -> bool {
    !PASSWORDS.iter().chain(&LEFT_OUT).any(|left_out| *left_out == (method, route))
}

/// The stage of time that is in no other one.
const OTHER: &str = "other";

/// A request that was among the slowest.
#[derive(Clone, Debug)]
pub(crate) struct SlowRequest {
    /// When its response was ready.
    pub(crate) at: SystemTime,
    pub(crate) method: &'static str,
    pub(crate) route: &'static str,
    pub(crate) status: u16,
    pub(crate) took: Duration,
    pub(crate) stages: Stages,
    /// The background work of the store meanwhile, as far as known.
    pub(crate) beside: Vec<&'static str>,
}

/// The slowest requests.
#[derive(Debug, Default)]
pub(crate) struct SlowRequests {
    /// The minute, and the microseconds that a request of this minute must exceed to enter.
    bound: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    minute: u64,
    present: Vec<SlowRequest>,
    last: Vec<SlowRequest>,
}

impl SlowRequests {
    /// Records a request if it is among the slowest. `now` is the time since the start of the server.
    pub(crate) fn note(&self, now: Duration, took: Duration, request: impl FnOnce() -> SlowRequest) {
        let (minute, bound) = (minute(now), self.bound.load(Ordering::Relaxed));
        if minute <= (bound >> 32) && micros(took) <= (bound & u64::from(u32::MAX)) {
            return;
        }
        let request = request();
        let mut table = self.table();
        table.begin(minute);
        table.insert(request);
        let least = table.present.get(KEPT - 1).map_or(0, |one| micros(one.took));
        self.bound.store((table.minute << 32) | least, Ordering::Relaxed);
    }

    /// The slowest requests, the slowest first.
    pub(crate) fn list(&self, now: Duration) -> Vec<SlowRequest> {
        let mut table = self.table();
        table.begin(minute(now));
        let mut all: Vec<_> = table.present.iter().chain(&table.last).cloned().collect();
        drop(table);
        all.sort_by_key(|one| std::cmp::Reverse(one.took));
        all.truncate(KEPT);
        all
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Forgets what is older than the last minute. A request that comes late counts as one of the present minute.
    fn begin(&mut self, minute: u64) {
        if minute > self.minute {
            let last = std::mem::take(&mut self.present);
            self.last = if minute == self.minute + 1 { last } else { Vec::new() };
            self.minute = minute;
        }
    }

    fn insert(&mut self, request: SlowRequest) {
        let at = self.present.partition_point(|one| one.took >= request.took);
        self.present.insert(at, request);
        self.present.truncate(KEPT);
    }
}

impl SlowRequest {
    /// Every stage with its microseconds. What is in none is the last one.
    fn stages(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let staged = self.stages.all().map(|(name, micros)| (name, u64::from(micros)));
        let sum: u64 = staged.iter().map(|(_, micros)| micros).sum();
        staged.into_iter().chain([(OTHER, micros(self.took).saturating_sub(sum))])
    }

    /// The longest stage.
    fn cause(&self) -> &'static str {
        self.stages().max_by_key(|(_, micros)| *micros).map_or(OTHER, |(name, _)| name)
    }

    /// Its form in `/v1/status`.
    pub(crate) fn shown(&self) -> Value {
        let stages: Map<_, _> =
            self.stages().map(|(name, micros)| (name.to_owned(), json!(millis(micros)))).collect();
        json!({
            "at": tally_wire::time::format_clock(self.at), "method": self.method, "route": self.route, "status": self.status,
            "ms": millis(micros(self.took)), "cause": self.cause(), "stages_ms": stages, "beside": self.beside,
        })
    }
}

fn minute(now: Duration) -> u64 {
    now.as_secs() / MINUTE_S
}

/// Microseconds, up to 71 minutes.
pub(crate) fn micros(time: Duration) -> u64 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX).into()
}

/// Microseconds in milliseconds.
pub(crate) fn millis(micros: u64) -> f64 {
    micros as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(MINUTE_S);

    fn request(took: Duration) -> SlowRequest {
        let (method, route, stages) = ("GET", "/", Stages::default());
        SlowRequest {
            at: SystemTime::UNIX_EPOCH,
            method,
            route,
            status: 200,
            took,
            stages,
            beside: Vec::new(),
        }
    }

    fn note(slow: &SlowRequests, now: Duration, ms: u64) {
        let took = Duration::from_millis(ms);
        slow.note(now, took, || request(took));
    }

    fn list(slow: &SlowRequests, now: Duration) -> Vec<u128> {
        slow.list(now).iter().map(|one| one.took.as_millis()).collect()
    }

    #[test]
    fn the_console_has_the_same_routes_with_passwords() {
        let names = PASSWORDS.map(|(method, route)| format!("\"{method} {route}\""));
        let list = format!("const PASSWORDS = new Set([{}]);", names.join(", "));
        assert!(include_str!("../console/samples.js").contains(&list), "{list}");
        assert!(!has("PATCH", "/v1/members/{member}") && has("GET", "/v1/members/{member}"));
    }

    #[test]
    fn the_slowest_are_kept_and_faster_ones_not_even_made() {
        let slow = SlowRequests::default();
        assert!(list(&slow, Duration::ZERO).is_empty());
        // Up and down, so that requests enter at each place.
        for ms in (1..=50).chain((1..=60).rev()) {
            note(&slow, MINUTE / 2, ms);
        }
        let kept = [60, 59, 58, 57, 56, 55, 54, 53, 52, 51];
        assert_eq!(list(&slow, MINUTE / 2), kept);
        slow.note(MINUTE / 2, Duration::from_millis(51), || unreachable!("it is not slower than the tenth"));
        note(&slow, MINUTE / 2, 1000);
        assert_eq!(list(&slow, MINUTE / 2)[..2], [1000, 60]);
        assert_eq!(list(&slow, MINUTE / 2).len(), KEPT);
    }

    #[test]
    fn requests_are_forgotten_after_the_next_minute() {
        let slow = SlowRequests::default();
        (1..=10).for_each(|ms| note(&slow, Duration::ZERO, 100 * ms));
        // The bound of the first minute is not that of the next one.
        note(&slow, MINUTE, 5);
        assert_eq!(list(&slow, MINUTE)[..2], [1000, 900]);
        (1..=10).for_each(|ms| note(&slow, MINUTE, ms));
        assert_eq!(list(&slow, MINUTE).len(), KEPT);
        // One that comes late.
        note(&slow, Duration::ZERO, 7000);
        assert_eq!(list(&slow, 2 * MINUTE), [7000, 10, 9, 8, 7, 6, 5, 5, 4, 3]);
        assert!(list(&slow, 3 * MINUTE).is_empty());
        note(&slow, 9 * MINUTE, 5);
        assert_eq!(list(&slow, 9 * MINUTE), [5]);
        assert!(list(&slow, 11 * MINUTE).is_empty());
    }

    #[test]
    fn the_longest_stage_is_the_cause_and_the_rest_is_other() {
        let mut one = request(Duration::from_millis(100));
        assert_eq!(one.cause(), OTHER);
        one.stages = Stages { queue: 30_000, commit: 40_500, ..Stages::default() };
        let shown = one.shown();
        assert_eq!((&shown["ms"], &shown["cause"]), (&json!(100.0), &json!("commit")));
        let stages = json!({
            "body": 0.0, "queue": 30.0, "read": 0.0, "commit": 40.5, "publish": 0.0, "reply": 0.0, "other": 29.5,
        });
        assert_eq!(shown["stages_ms"], stages);
        one.stages.queue = u32::MAX;
        assert_eq!(one.shown()["stages_ms"]["other"], 0.0);
    }
}
