//! The edges of a running server: its end, its bounds, its settings, other origins, metrics, and remote commands.
//!
//! One file a subject. Every bound is set so low that a test reaches it at once; nothing here is measured. Not here: wrong
//! requests (`bad_input`), permissions (`http_permissions`), the end under SIGTERM (`cli.rs`).

mod afar;
mod bounds;
mod crowds;
mod early;
mod ending;
mod frozen_store;
mod memory;
mod metrics;
mod origins;
mod resp_metrics;
mod settings;
mod sockets;
mod starts;
mod turns;
mod watching;

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::{Client, Request, TestTally};

fn add(player: &str, score: i64) -> Request {
    Request::new("POST", "/v1/leaderboards/b/scores").json(&json!({"player": player, "score": score}))
}

fn sum_board(server: &TestTally) -> Client {
    let mut client = server.local();
    client.put("/v1/leaderboards/b", &json!({"update": "sum"})).expect(201);
    client
}

/// A sum; 0 for a missing player.
#[track_caller]
fn score(client: &mut Client, player: &str) -> i64 {
    let answer = client.get(&format!("/v1/leaderboards/b/players/{player}"));
    if answer.status == 404 { 0 } else { answer.expect(200)["score"].as_i64().expect("a sum") }
}

/// Enough players that loading them takes a while, on board `big`.
fn fill_big(client: &mut Client) {
    client.put("/v1/leaderboards/big", &json!({})).expect(201);
    for chunk in 0..20 {
        let row = |at: usize| json!({"board": "big", "player": format!("p{chunk}-{at}"), "score": at});
        let rows: Vec<Value> = (0..1_000).map(row).collect();
        client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    }
}

/// A key of this role.
fn key(local: &mut Client, role: &str) -> String {
    let made = local.post("/v1/keys", &json!({"role": role})).expect(201);
    made["key"].as_str().expect("it is shown once").to_owned()
}
