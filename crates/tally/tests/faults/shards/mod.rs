//! One store on two database servers: players spread over both, one of them unavailable, wrong lists, and moving to others.
//!
//! Not here: a transaction that is cut between its shards; the store's own tests produce those moments.

mod away;
mod commands;
mod import;
mod layout;
mod reshard;

use crate::TALLY;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tally_testkit::{Client, DatabaseKind, Request, ScratchDatabase, TestTally};

const SECRET: &str = "0707070707070707070707070707070707070707070707070707070707070707";
const PLAYERS: usize = 40;

/// Several servers, each with a database of the same name.
struct World {
    servers: Vec<ScratchDatabase>,
    urls: Vec<String>,
    /// For commands that have no server.
    folder: tempfile::TempDir,
}

impl World {
    fn of(count: usize) -> Self {
        let servers: Vec<_> = (0..count).map(|_| ScratchDatabase::start(DatabaseKind::MariaDb10)).collect();
        let urls = servers.iter().map(ScratchDatabase::create_database).collect();
        Self { servers, urls, folder: tempfile::tempdir().expect("a temporary directory can be made") }
    }

    /// A server on some of them that is not started, with a data directory of its own.
    fn stopped(&self, shards: &[usize]) -> TestTally {
        let mut server = TestTally::stopped(TALLY);
        let urls: Vec<&str> = shards.iter().map(|shard| self.urls[*shard].as_str()).collect();
        for (name, value) in [("STORE_URL", &*urls.join(",")), ("SECRET", SECRET), ("STORE_LEASE", "4s")] {
            server.set(&format!("TALLY_{name}"), value);
        }
        server.allow("the store has not answered for `store.lease`");
        server
    }

    fn started(&self, shards: &[usize]) -> TestTally {
        let mut server = self.stopped(shards);
        server.restart();
        server
    }

    /// The players with a record on a shard.
    fn players(&self, shard: usize) -> BTreeSet<String> {
        let found = self.servers[shard].sql("SELECT player FROM tally_0.scores WHERE gone = 0");
        found.lines().map(str::to_owned).collect()
    }
}

fn name(number: usize) -> String {
    format!("player-{number:03}")
}

fn submit(player: &str, score: i64) -> Request {
    Request::new("POST", "/v1/leaderboards/b/scores").json(&json!({"player": player, "score": score}))
}

/// A board with all players.
fn fill(client: &mut Client) {
    client.put("/v1/leaderboards/b", &json!({"update": "latest"})).expect(201);
    let rows = |number| json!({"board": "b", "player": name(number), "score": number});
    let scores: Vec<Value> = (0..PLAYERS).map(rows).collect();
    let answer = client.post("/v1/scores/batch", &json!({"scores": scores})).expect(200);
    assert!(answer["results"].as_array().unwrap().iter().all(|row| row["error"].is_null()), "{answer}");
}
