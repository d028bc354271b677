//! Scores as they are published: the newest of each player, with its rank, to all subscribers at that time.

use super::{BOARD, TALLY, listen, stream, submit};
use crate::periods::began_today;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tally_testkit::{EventStream, RespClient, TestTally};

/// Reads until every player has the expected score; returns how many batches that took. A rank is that of the batch: a player
/// that others push down gets no event.
fn read_until(stream: &mut EventStream, wanted: &BTreeMap<String, Value>) -> usize {
    let (mut known, mut batches) = (BTreeMap::new(), 0);
    while known != *wanted {
        let batch = stream.expect("score");
        assert_eq!((&batch["board"], &batch["incomplete"]), (&json!("b"), &Value::Null));
        for entry in batch["entries"].as_array().expect("entries") {
            let player = entry["player"].as_str().expect("a name").to_owned();
            assert!((1..=5).contains(&entry["rank"].as_u64().expect("a rank")), "{entry}");
            known.insert(player, entry["score"].clone());
        }
        for player in batch["gone"].as_array().into_iter().flatten() {
            known.remove(player.as_str().expect("a name"));
        }
        batches += 1;
    }
    batches
}

fn at(of: &[(&str, i64)]) -> BTreeMap<String, Value> {
    of.iter().map(|(player, score)| ((*player).to_owned(), json!(score))).collect()
}

#[test]
fn subscribers_get_the_newest_of_each_player() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({"update": "latest"})).expect(201);
    submit(&mut client, "before", 5);
    let mut streams = [listen(&server, &stream(BOARD)), listen(&server, &stream(BOARD))];
    // Through every listener, one by one and many at once.
    for score in 1..=300 {
        submit(&mut client, "ann", score);
    }
    let row = |score: i64| json!({"board": "b", "player": "bob", "score": score});
    let rows: Vec<Value> = (1..=1_000).map(row).collect();
    client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    let mut resp = RespClient::connect(server.resp());
    resp.call(&["ZADD", "b", "700", "cid"]);
    resp.call(&["LB.SUBMIT", "b", "dan", "1"]);
    let wanted = at(&[("ann", 300), ("bob", 1_000), ("cid", 700), ("dan", 1)]);
    for stream in &mut streams {
        let batches = read_until(stream, &wanted);
        assert!(batches < 200, "{batches} batches for a few hundred changes: nothing was put together");
    }
    // A banned or removed player has no rank any more; a restored one has.
    client.post("/v1/leaderboards/b/players/bob/ban", &json!({})).expect(200);
    client.delete("/v1/leaderboards/b/players/cid").expect(204);
    for stream in &mut streams {
        let mut gone = Vec::new();
        while gone.len() < 2 {
            let batch = stream.expect("score");
            gone.extend(batch["gone"].as_array().expect("somebody is gone").iter().cloned());
        }
        gone.sort_by_key(Value::to_string);
        assert_eq!(gone, [json!("bob"), json!("cid")]);
    }
    client.post("/v1/leaderboards/b/players/bob/restore", &json!({})).expect(200);
    for stream in &mut streams {
        read_until(stream, &at(&[("bob", 1_000)]));
    }
}

#[test]
fn a_board_of_periods_tells_of_its_first_and_numbers_may_be_text() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let yearly = |name: &str| json!({"name": name, "schedule": "0 0 1 1 *"});
    let definition = json!({"all_time": false, "periods": [yearly("first"), yearly("second")]});
    client.put("/v1/leaderboards/b", &definition).expect(201);
    let mut plain = listen(&server, &stream(BOARD));
    let mut exact = listen(&server, &stream(BOARD).header("Tally-Int64", "string"));
    submit(&mut client, "ann", 9_007_199_254_740_993);
    for (stream, score) in
        [(&mut plain, json!(9_007_199_254_740_993_i64)), (&mut exact, json!("9007199254740993"))]
    {
        let event = stream.read().expect("it goes on");
        assert_eq!((&*event.event, &*event.id), ("score", "0"), "where the stream stands");
        let batch = event.data;
        assert!(batch["period"].as_str().expect("a name").starts_with("first:"), "{batch}");
        assert_eq!((&batch["total"], &batch["entries"][0]["score"]), (&json!(1), &score));
    }
}

/// A period that has ended takes late scores while it is in its grace. Watchers get those of the open one.
#[test]
fn a_board_of_periods_tells_of_the_open_one() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let (yearly, before) = began_today(&mut client);
    client.put("/v1/leaderboards/b", &json!({"all_time": false, "periods": [yearly]})).expect(201);
    let mut events = listen(&server, &stream(BOARD));
    let mut score = |row: &Value| client.post("/v1/leaderboards/b/scores", row).expect(200)["period"].clone();
    let over = score(&json!({"player": "old", "score": 5, "at": before}));
    let open = score(&json!({"player": "ann", "score": 7}));
    assert_ne!(over, open);
    let batch = events.expect("score");
    assert_eq!(
        (&batch["period"], &batch["total"], &batch["entries"][0]["player"]),
        (&open, &json!(1), &json!("ann"))
    );
}
