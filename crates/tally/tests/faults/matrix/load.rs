//! The common part of every kind of load: a step that a caller repeats, and the required state in the end.
//!
//! Not here: the kinds (`boards.rs`, `money.rs`, `contests.rs`).

use super::callers::{Caller, Outcome};
use super::world::send;
use serde_json::Value;
use std::time::{Duration, Instant};
use tally_testkit::http::segment;
use tally_testkit::{Client, Request};

/// The columns of the table. `unrelated` has writes that the fault does not concern, and `ranks` is its reads.
pub(crate) const COLUMNS: [&str; 8] =
    ["scores", "deposits", "holds", "bans", "periods", "contests", "unrelated", "ranks"];
pub(crate) const UNRELATED: usize = 6;
/// A caller with fewer acknowledged requests shows nothing.
const DONE_MIN: usize = 2;

/// One kind of load, of one caller.
pub(crate) trait Load: Send {
    /// One request, or a few that belong together.
    fn step(&mut self, caller: &mut Caller<'_>);

    /// The pause of the caller between steps.
    fn pause(&self) -> Duration {
        Duration::from_millis(50)
    }

    /// Acknowledgements until then may be lost: their database lost them.
    fn lose(&mut self, until: Instant);

    /// The checks that are only possible when everything works again.
    fn settle(&mut self, _caller: &mut Caller<'_>) {}

    /// Everything acknowledged is present exactly once, refused requests are absent, unknown ones are one of the two.
    fn check(&self, client: &mut Client);
}

/// The outcomes of numbered requests.
#[derive(Default)]
pub(crate) struct Sent {
    name: String,
    outcomes: Vec<(Instant, Outcome)>,
}

impl Sent {
    pub(crate) fn new(name: String) -> Self {
        Self { name, outcomes: Vec::new() }
    }

    /// The name of the next one.
    pub(crate) fn next(&self) -> String {
        format!("{}-{}", self.name, self.outcomes.len())
    }

    pub(crate) fn count(&self) -> usize {
        self.outcomes.len()
    }

    /// Sends under its name.
    #[track_caller]
    pub(crate) fn ask(&mut self, caller: &mut Caller<'_>, request: Request) {
        let outcome = caller.ask(&request.idempotent(&self.next()));
        self.outcomes.push((Instant::now(), outcome));
    }

    /// See [`Load::lose`].
    pub(crate) fn lose(&mut self, until: Instant) {
        for (at, outcome) in &mut self.outcomes {
            if *at < until && matches!(outcome, Outcome::Done(_)) {
                *outcome = Outcome::Unknown;
            }
        }
    }

    /// Each with its name.
    pub(crate) fn each(&self) -> impl Iterator<Item = (String, &Outcome)> {
        self.outcomes.iter().enumerate().map(|(nth, (_, outcome))| (format!("{}-{nth}", self.name), outcome))
    }

    /// Each with the number of times that its effect is present.
    #[track_caller]
    pub(crate) fn check(&self, mut found: impl FnMut(usize, &str) -> usize) {
        let done = self.outcomes.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Done(_))).count();
        assert!(done > DONE_MIN, "{} of {} were done: {}", done, self.outcomes.len(), self.name);
        for (nth, (name, outcome)) in self.each().enumerate() {
            let times = found(nth, &name);
            let allowed = match outcome {
                Outcome::Done(_) => times == 1,
                Outcome::Refused => times == 0,
                Outcome::Unknown => times <= 1,
            };
            assert!(allowed, "{name} is there {times} times, and the answer was {outcome:?}");
        }
    }
}

pub(crate) fn post(target: impl AsRef<str>, body: &Value) -> Request {
    Request::new("POST", target.as_ref()).json(body)
}

/// A request that is done once everything works.
#[track_caller]
pub(crate) fn done(client: &mut Client, request: &Request) -> Value {
    let answer = send(client, request);
    assert!(answer.status < 300, "{}: {}", String::from_utf8_lossy(&request.target), answer.text());
    answer.json()
}

/// All items of a list.
#[track_caller]
pub(crate) fn items(client: &mut Client, target: &str, member: &str) -> Vec<Value> {
    let (mut items, mut next) = (Vec::new(), target.to_owned());
    loop {
        let page = done(client, &Request::new("GET", &next));
        items.extend(page[member].as_array().expect("a list").iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else { return items };
        next = format!("{target}&cursor={}", segment(cursor));
    }
}
