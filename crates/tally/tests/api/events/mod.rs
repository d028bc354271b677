//! Event streams over the wire: events, subscribers, resumption after a break, and the end of a stream.
//!
//! One file a subject. A stream is read when a test wants it to be, so nothing here is measured. Not here: the events in a store
//! (`store/tests`).

mod ending;
mod scores;
mod servers;
mod stored;

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::{Client, EventStream, Request, TestTally};

const BOARD: &str = "/v1/leaderboards/b/events";
const MINE: &str = "/v1/me/events";

/// Listens, which must be allowed.
#[track_caller]
fn listen(server: &TestTally, request: &Request) -> EventStream {
    match EventStream::open(server.address(), request) {
        Ok(stream) => stream,
        Err(answer) => panic!("{} {}", answer.status, answer.text()),
    }
}

fn stream(target: &str) -> Request {
    Request::new("GET", target)
}

fn after(target: &str, id: &str) -> Request {
    stream(target).header("Last-Event-ID", id)
}

fn submit(client: &mut Client, player: &str, score: i64) {
    let body = json!({"player": player, "score": score});
    client.post("/v1/leaderboards/b/scores", &body).expect(200);
}

/// A member with its token.
fn member(server: &TestTally, name: &str) -> (String, String) {
    let body = json!({"login_id": name, "name": name, "player": name, "password": "open sesame"});
    let made = server.local().post("/v1/members", &body).expect(201);
    let signed_in = json!({"loginId": name, "password": "open sesame"});
    let token = server.client().post("/auth/signin", &signed_in).expect(200)["data"]["accessToken"].clone();
    (text(&made["id"]), text(&token))
}

fn deposit(client: &mut Client, to: &str, currency: &str, amount: u64) {
    client.post("/v1/deposits", &json!({"to": to, "currency": currency, "amount": amount})).expect(201);
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// A value of the metrics.
fn metric(client: &mut Client, name: &str) -> f64 {
    let page = client.get("/metrics").text();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().expect("a number"))
}
