//! Players: among each other, banned and restored, found, in contests, their profiles, and erased everywhere.
//!
//! One file a subject; this file has the shared part. Not here: random orders of these operations (`model.rs`), fields one by one
//! (`bad_input`), permissions at every route (`http_permissions`).

mod among;
mod contests;
mod correcting;
mod erasing;
mod finding;
mod hiding;
mod profiles;
mod ranks;

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::{Client, Request, Response, TestTally};

fn create(client: &mut Client, board: &str, definition: &Value) {
    client.put(&format!("/v1/leaderboards/{board}"), definition).expect(201);
}

/// A submit's answer.
#[track_caller]
fn submit(client: &mut Client, board: &str, player: &str, score: i64) -> Value {
    let row = json!({"player": player, "score": score});
    client.post(&format!("/v1/leaderboards/{board}/scores"), &row).expect(200)
}

/// A request that bans or restores a player: `ban` or `restore`.
fn turn(board: &str, player: &str, verb: &str) -> Request {
    Request::new("POST", format!("/v1/leaderboards/{board}/players/{player}/{verb}"))
}

fn place(client: &mut Client, board: &str, player: &str) -> Response {
    client.get(&format!("/v1/leaderboards/{board}/players/{player}"))
}

/// Players of a board, best first, and its total.
#[track_caller]
fn standing(client: &mut Client, board: &str) -> (Vec<String>, Value) {
    let page = client.get(&format!("/v1/leaderboards/{board}/scores?limit=1000")).expect(200);
    let entries = page["entries"].as_array().expect("entries");
    let players = entries.iter().map(|entry| entry["player"].as_str().expect("a name").to_owned());
    (players.collect(), page["total"].clone())
}

#[track_caller]
fn check_standing(client: &mut Client, board: &str, players: &[&str]) {
    let expected = (players.iter().map(|player| (*player).to_owned()).collect(), json!(players.len()));
    assert_eq!(standing(client, board), expected, "{board}");
    let counts = client.get(&format!("/v1/leaderboards/{board}")).expect(200)["counts"].clone();
    assert_eq!(counts, json!({"all_time": players.len()}), "{board}");
}

/// Ends it regularly or by a kill, and starts it again.
fn end_and_start(server: &mut TestTally, kill: bool) -> Client {
    if kill {
        server.kill9();
    } else {
        server.terminate();
    }
    server.restart();
    server.client()
}

#[track_caller]
fn check_replay(answer: &Response, status: u16, first: &Response) {
    assert!(answer.is_replay(), "{answer:?}");
    assert_eq!((answer.status, answer.text()), (status, first.text()));
}
