//! A database without room: it says so, takes nothing by halves, and goes on when there is room again.
//!
//! The database keeps everything in one file that may not grow past its bound, which it meets as it would the end of a
//! disk. Not here: a full disk under the embedded store, which that has tests of its own for.

use serde_json::{Value, json};
use std::time::Duration;
use tally_testkit::{Client, DatabaseKind, ScratchDatabase, TestTally};

const TALLY: &str = env!("CARGO_BIN_EXE_tally");
const BOUNDED: [&str; 2] =
    ["--innodb-file-per-table=0", "--innodb-data-file-path=ibdata1:12M:autoextend:max:20M"];
const ROWS: usize = 500;
/// Long names, so that room is used up in fewer batches.
const NAME: usize = 110;
/// More than the file could hold.
const BATCHES_MAX: usize = 1_000;

fn batch(client: &mut Client, number: usize) -> (u16, Value) {
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

#[test]
fn a_full_database_takes_nothing_and_goes_on_when_there_is_room() {
    let database = ScratchDatabase::start_with(DatabaseKind::MariaDb10, &BOUNDED);
    database.sql("CREATE DATABASE filler; CREATE TABLE filler.room (bytes LONGBLOB) ENGINE = InnoDB");
    database.sql("INSERT INTO filler.room VALUES (REPEAT('x', 4194304))");
    let mut server = TestTally::stopped(TALLY);
    server.allow("a request met a fault fault=the store is away");
    server.set("TALLY_STORE_URL", &database.create_database());
    server.set("TALLY_STORE_LEASE", "60s");
    server.restart();
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let mut taken = 0;
    let refused = loop {
        match batch(&mut client, taken) {
            (200, _) => taken += 1,
            refused => break refused,
        }
        assert!(taken < BATCHES_MAX, "more than the file could hold");
    };
    assert_eq!((refused.0, refused.1["code"].as_str()), (503, Some("store_away")), "{}", refused.1);
    let says = |line: &String| line.contains("the store is away") && line.contains("is full");
    // What it says is read by another thread.
    while !server.log().iter().any(says) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Reading goes on, and what was refused is not there, not even in part.
    assert_eq!(total(&mut client), (taken * ROWS) as u64);
    database.sql("DROP TABLE filler.room");
    let mut tries = 0;
    while batch(&mut client, taken).0 != 200 {
        tries += 1;
        assert!(tries < 1_000, "there is room again");
    }
    assert_eq!(total(&mut client), ((taken + 1) * ROWS) as u64);
}
