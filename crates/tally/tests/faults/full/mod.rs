//! A full store: it says so, takes no partial batch, and goes on when there is space again, without a restart.
//!
//! `disk` fills a real file system, which only root may make: elsewhere it prints that and is skipped. `bounded` has a database
//! with a file that may not grow, and needs nothing. Not here: a full disk at each step of the embedded store, which that has
//! tests of its own for.

mod bounded;
pub(crate) mod disk;

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::{Client, TestTally, wait_until};

const ROWS: usize = 500;
/// Long names, so that space is used up in fewer batches.
const NAME: usize = 110;
/// More than fits.
const BATCHES_MAX: usize = 1_000;

pub(crate) fn batch(client: &mut Client, number: usize) -> (u16, Value) {
    let row = |row: usize| {
        let player = format!("{:0NAME$}", number * ROWS + row);
        json!({"board": "b", "player": player, "score": number})
    };
    let rows: Vec<Value> = (0..ROWS).map(row).collect();
    let answer = client.post("/v1/scores/batch", &json!({"scores": rows}));
    (answer.status, answer.json())
}

fn total(client: &mut Client) -> u64 {
    client.get("/v1/leaderboards/b/scores?limit=1").expect(200)["total"].as_u64().unwrap()
}

/// Fills it until it takes no more, and checks the message; returns the number of batches taken.
fn fill(server: &TestTally, client: &mut Client, why: &str) -> usize {
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let mut taken = 0;
    let refused = loop {
        match batch(client, taken) {
            (200, _) => taken += 1,
            refused => break refused,
        }
        assert!(taken < BATCHES_MAX, "more than fits");
    };
    assert_eq!((refused.0, refused.1["code"].as_str()), (503, Some("store_unavailable")), "{}", refused.1);
    let says = |line: &String| line.contains("the store is unavailable") && line.contains(why);
    // Another thread reads its output.
    wait_until(&format!("a line says {why:?}"), || server.log().iter().any(says));
    // Reads go on, and refused batches are absent, even in part.
    assert_eq!(total(client), (taken * ROWS) as u64);
    taken
}

/// There is room again.
fn go_on(client: &mut Client, taken: usize) {
    wait_until("there is room again", || batch(client, taken).0 == 200);
    assert_eq!(total(client), ((taken + 1) * ROWS) as u64);
}
