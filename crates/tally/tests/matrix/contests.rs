//! Load on contests: each is made, applied for and started, with a fee; and one starts by the clock while the fault lasts.
//!
//! Not here: scores and prizes of contests (`tests/servers/contests.rs`).

use crate::callers::Caller;
use crate::load::{Load, done, post};
use crate::money::{member, purse};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
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
    started: Vec<String>,
}

impl Contests {
    pub(crate) fn new(client: &mut Client, nth: usize) -> Self {
        let players = ["a", "b"].map(|side| format!("c{nth}{side}"));
        let members = players.each_ref().map(|player| member(client, player, INITIAL));
        Self { players, members, name: format!("c{nth}"), started: Vec::new() }
    }

    /// Makes one that the clock starts.
    pub(crate) fn with_timed(mut self, client: &mut Client, starts_at: Timestamp) -> Self {
        let id = format!("{}-timed", self.name);
        requests(&id, &self.players, Some(starts_at)).iter().for_each(|request| drop(done(client, request)));
        self.started.push(id);
        self
    }
}

impl Load for Contests {
    fn step(&mut self, caller: &mut Caller<'_>) {
        let id = format!("{}-{}", self.name, self.started.len());
        for (nth, request) in requests(&id, &self.players, None).into_iter().enumerate() {
            caller.insist(&request.idempotent(&format!("{id}/{nth}")));
        }
        self.started.push(id);
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(400)
    }

    fn check(&self, client: &mut Client) {
        for id in &self.started {
            let mut shown = Value::Null;
            crate::run::wait_until("the contest runs", || {
                shown = done(client, &Request::new("GET", format!("/v1/contests/{id}")));
                shown["state"] == "running"
            });
            assert_eq!(shown["counts"]["members"], 2, "{shown}");
        }
        let wanted = (INITIAL - FEE * self.started.len() as i64, 0);
        for member in &self.members {
            assert_eq!(purse(client, member), wanted, "of {}", self.name);
        }
    }
}
