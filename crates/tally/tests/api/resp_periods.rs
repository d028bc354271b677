//! Periods over the Redis protocol: the order of closed ones comes from the store, at every position in a pipeline, and a removal
//! goes by the open one.
//!
//! Not here: when a period closes (`periods.rs`), and which names mean which (`http` tests of the same).

use crate::TALLY;
use crate::periods::began_today;
use serde_json::json;
use tally_testkit::{RespClient, TestTally};
use tally_wire::resp::Reply;

const PLAYERS: usize = 1_500;

/// A board whose year 2000 is closed, with players `p0000` to `p1499` that have their number as score.
fn board(server: &TestTally) {
    let rule = json!({"name": "yearly", "schedule": "0 0 1 1 *", "keep": 99});
    let spec = json!({"update": "best", "periods": [rule]});
    server.client().put("/v1/leaderboards/years", &spec).expect(201);
    let lines: String = (0..PLAYERS).map(|at| format!("2000-06-15,p{at:04},{at}\n")).collect();
    let path = server.data().join("past.csv");
    std::fs::write(&path, format!("at,who,points\n{lines}")).expect("it is written");
    let path = path.to_str().expect("a path of text");
    server
        .run(&["import", "scores", "years", path, "--player", "who", "--score", "points", "--at", "at"])
        .expect(0);
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

fn call(client: &mut RespClient, line: &str) -> Reply {
    client.call(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn a_closed_period_answers_like_a_sorted_set() {
    let server = TestTally::start(TALLY);
    board(&server);
    let mut client = RespClient::connect(server.resp());
    let rows = [
        ("ZCARD years@yearly:2000-01-01", Reply::Integer(1_500)),
        ("ZSCORE years@yearly:2000-01-01 p0700", bulk("700")),
        ("ZSCORE years@yearly:2000-01-01 nobody", Reply::Null),
        ("ZREVRANK years@yearly:2000-01-01 p0700", Reply::Integer(799)),
        ("ZCOUNT years@yearly:2000-01-01 10 (20", Reply::Integer(10)),
        ("ZREVRANGE years@yearly:2000-01-01 0 1", Reply::Array(vec![bulk("p1499"), bulk("p1498")])),
        ("ZRANGE years@yearly:2000-01-01 0 0 WITHSCORES", Reply::Array(vec![bulk("p0000"), bulk("0")])),
        ("EXISTS years@yearly:2000-01-01 years@yearly:1999-01-01", Reply::Integer(1)),
        ("ZCARD years@yearly:1999-01-01", Reply::Integer(0)),
    ];
    for (line, wanted) in &rows {
        assert_eq!(call(&mut client, line), *wanted, "{line}");
    }
    // All at once.
    let lines: Vec<Vec<&str>> = rows.iter().map(|(line, _)| line.split(' ').collect()).collect();
    let wanted: Vec<Reply> = rows.iter().map(|(_, wanted)| wanted.clone()).collect();
    assert_eq!(client.pipeline(&lines), wanted);
    let Reply::Error(error) = call(&mut client, "ZADD years@yearly:2000-01-01 1 p0001") else {
        panic!("it is only read")
    };
    assert!(error.starts_with(b"READONLY"), "{}", String::from_utf8_lossy(&error));
}

/// Reads of the store keep their place between reads of memory and writes.
#[test]
fn it_is_asked_in_its_turn() {
    let server = TestTally::start(TALLY);
    board(&server);
    let mut client = RespClient::connect(server.resp());
    let closed = ["ZREVRANK", "years@yearly:2000-01-01", "p1499"];
    let pipeline: [&[&str]; 12] = [
        &["ZSCORE", "years", "new"],
        &closed,
        &["ZSCORE", "years", "new"],
        &["ZADD", "years", "5", "new"],
        &closed,
        &["ZSCORE", "years", "new"],
        &["ZADD", "years", "7", "new"],
        &closed,
        &["MULTI"],
        &closed,
        &["ZSCORE", "years", "new"],
        &["EXEC"],
    ];
    let pipeline: Vec<Vec<&str>> = pipeline.iter().map(|words| words.to_vec()).collect();
    let queued = Reply::Simple(b"QUEUED".to_vec());
    let wanted = [
        Reply::Null,
        Reply::Integer(0),
        Reply::Null,
        Reply::Integer(1),
        Reply::Integer(0),
        bulk("5"),
        Reply::Integer(0),
        Reply::Integer(0),
        Reply::Simple(b"OK".to_vec()),
        queued.clone(),
        queued,
        Reply::Array(vec![Reply::Integer(0), bulk("7")]),
    ];
    assert_eq!(client.pipeline(&pipeline), wanted);
}

/// A leaderboard without all time reads its first period. One that has ended and still takes scores is not that period.
#[test]
fn a_removal_goes_by_the_open_period() {
    let server = TestTally::start(TALLY);
    let mut http = server.client();
    let (yearly, before) = began_today(&mut http);
    let spec = json!({"all_time": false, "update": "sum", "periods": [yearly]});
    http.put("/v1/leaderboards/late", &spec).expect(201);
    let old = json!({"player": "old", "score": 5, "at": before});
    let answer = http.post("/v1/leaderboards/late/scores", &old).expect(200);
    let closing = answer["period"].as_str().expect("a name").to_owned();
    let mut client = RespClient::connect(server.resp());
    // The open period has no scores yet.
    let none = Reply::Array(Vec::new());
    assert_eq!(call(&mut client, "ZCARD late"), Reply::Integer(0));
    assert_eq!(call(&mut client, "ZPOPMAX late"), none);
    assert_eq!(call(&mut client, "ZREMRANGEBYRANK late 0 -1"), Reply::Integer(0));
    for (player, score) in [("a", 3), ("b", 4), ("c", 1)] {
        let row = json!({"player": player, "score": score});
        http.post("/v1/leaderboards/late/scores", &row).expect(200);
    }
    assert_eq!(call(&mut client, "ZPOPMAX late"), Reply::Array(vec![bulk("b"), bulk("4")]));
    assert_eq!(call(&mut client, "ZREM late a"), Reply::Integer(1));
    assert_eq!(call(&mut client, "ZREM late a"), Reply::Integer(0));
    assert_eq!(call(&mut client, "ZRANGE late 0 -1"), Reply::Array(vec![bulk("c")]));
    // A removal is from each open period, and its reply counts members of the one that is read.
    let kept = format!("ZCARD late@{closing}");
    assert_eq!(call(&mut client, &kept), Reply::Integer(1));
    assert_eq!(call(&mut client, "ZREM late old"), Reply::Integer(0));
    assert_eq!(call(&mut client, &kept), Reply::Integer(0));
}
