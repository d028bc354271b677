//! Load on contests: each is made, applied for and started, with a fee; and one starts by the clock while the fault lasts.
//!
//! Not here: scores and prizes of contests (`servers/contests.rs`).

use super::callers::Caller;
use super::load::{Load, done, post};
use super::money::{member, purse};
use super::world::send;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tally_testkit::{Client, Request};

const INITIAL: i64 = 1_000;
const FEE: i64 = 1;

/// The requests up to the start of a contest.
fn requests(id: &str, players: &[String; 2], starts_at: Option<Timestamp>) -> Vec<Request> {
    let path = format!("/v1/contests/{id}");
    let apply = |player: &String| post(format!("{path}/applications"), &json!({"player": player}));
    let fee = json!({"currency": "KRW", "amount": FEE});
    let mut contest = json!({"id": id, "title": id, "entry_fee": fee});
    let mut requests = Vec::new();
    if let Some(at) = starts_at {
        contest["starts_at"] = json!(at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string());
    }
    requests.push(post("/v1/contests", &contest));
    requests.push(post(format!("{path}/open"), &json!({})));
    requests.extend(players.iter().map(apply));
    requests.push(post(format!("{path}/applications/accept"), &json!({"players": players})));
    if starts_at.is_none() {
        requests.push(post(format!("{path}/start"), &json!({})));
    }
    requests
}

/// Contests of the same two members.
pub(crate) struct Contests {
    players: [String; 2],
    members: [String; 2],
    name: String,
    /// When each was started.
    started: Vec<(Instant, String)>,
    /// The contest that the clock starts.
    timed: Option<String>,
    lost_until: Option<Instant>,
}

impl Contests {
    pub(crate) fn new(client: &mut Client, nth: usize) -> Self {
        let players = ["a", "b"].map(|side| format!("c{nth}{side}"));
        let members = players.each_ref().map(|player| member(client, player, INITIAL));
        Self { players, members, name: format!("c{nth}"), started: Vec::new(), timed: None, lost_until: None }
    }

    /// Makes one that the clock starts.
    pub(crate) fn with_timed(mut self, client: &mut Client, starts_at: Timestamp) -> Self {
        let id = format!("{}-timed", self.name);
        requests(&id, &self.players, Some(starts_at)).iter().for_each(|request| drop(done(client, request)));
        self.timed = Some(id);
        self
    }
}

impl Load for Contests {
    fn step(&mut self, caller: &mut Caller<'_>) {
        let id = format!("{}-{}", self.name, self.started.len());
        for (nth, request) in requests(&id, &self.players, None).into_iter().enumerate() {
            if caller.insist(&request.idempotent(&format!("{id}/{nth}"))).is_none() {
                // The database has lost the contest.
                return;
            }
        }
        self.started.push((Instant::now(), id));
    }

    fn lose(&mut self, until: Instant) {
        self.lost_until = Some(until);
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(400)
    }

    fn check(&self, client: &mut Client) {
        let may_be_lost = |at: Instant| self.lost_until.is_some_and(|until| at < until);
        let started = self.started.iter().map(|(at, id)| (may_be_lost(*at), id));
        let mut members = 0;
        for (may_be_lost, id) in started.chain(self.timed.iter().map(|id| (false, id))) {
            let target = format!("/v1/contests/{id}");
            if may_be_lost && send(client, &Request::new("GET", &target)).status == 404 {
                continue;
            }
            let mut shown = Value::Null;
            tally_testkit::wait_until("the contest runs", || {
                shown = done(client, &Request::new("GET", &target));
                shown["state"] == "running"
            });
            assert_eq!(shown["counts"]["players"], 2, "{shown}");
            members += 1;
        }
        let wanted = (INITIAL - FEE * members, 0);
        for member in &self.members {
            assert_eq!(purse(client, member), wanted, "of {}", self.name);
        }
    }
}
