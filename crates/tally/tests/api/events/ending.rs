//! The end of streams: with the permissions of the subscriber, at their limits, with the server, and with a client that
//! does not read.

use super::{BOARD, MINE, TALLY, after, deposit, listen, member, metric, stream, submit, text};
use serde_json::json;
use std::time::Instant;
use tally_testkit::{EventStream, GIVE_UP, Request, Response, TestTally};

fn refused(server: &TestTally, request: &Request) -> Response {
    EventStream::open(server.address(), request).expect_err("it is refused")
}

#[test]
fn a_stream_ends_with_the_right_to_it() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    let (_, token) = member(&server, "ann");
    let mut nobody = listen(&server, &stream(BOARD));
    // The first key ends protected mode.
    let made = local.post("/v1/keys", &json!({"role": "reader"})).expect(201);
    assert_eq!(nobody.rest(), []);
    refused(&server, &stream(BOARD)).refused(401, "unauthorized");
    let key = text(&made["key"]);
    let mut reader = listen(&server, &stream(BOARD).key(&key));
    let mut mine = listen(&server, &stream(MINE).key(&token));
    let mut boards = listen(&server, &stream(BOARD).key(&token));
    refused(&server, &stream(MINE).key(&key)).refused(403, "forbidden");
    local.post("/v1/keys", &json!({"role": "admin"})).expect(201);
    local.delete(&format!("/v1/keys/{}", text(&made["id"]))).expect(204);
    assert_eq!(reader.rest(), []);
    // Another password ends the earlier sessions.
    let found = local.get("/v1/members?login_id=ann").expect(200);
    let id = text(&found["items"][0]["id"]);
    let change = Request::new("PATCH", format!("/v1/members/{id}")).json(&json!({"password": "another one"}));
    local.send(&change).expect(200);
    assert_eq!((mine.rest(), boards.rest()), (vec![], vec![]));
    // A deleted board has no events.
    let mut board = listen(&server, &stream(BOARD).key(&format!("tally_local_{}", server.token())));
    local.delete("/v1/leaderboards/b").expect(204);
    assert_eq!(board.rest(), []);
}

#[test]
fn streams_of_a_member_end_when_it_is_signed_out_or_closed() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    for act in ["sign-out", "close"] {
        let (id, token) = member(&server, act);
        let mut mine = listen(&server, &stream(MINE).key(&token));
        let mut boards = listen(&server, &stream(BOARD).key(&token));
        local.send(&Request::new("POST", format!("/v1/members/{id}/{act}"))).expect(200);
        assert_eq!((mine.rest(), boards.rest()), (vec![], vec![]), "{act}");
        refused(&server, &stream(MINE).key(&token)).refused(401, "unauthorized");
    }
}

#[test]
fn a_token_that_has_ended_ends_its_streams() {
    let server = TestTally::start_set(TALLY, &[("TALLY_AUTH_TOKEN_TTL", "5s")]);
    let (_, token) = member(&server, "ann");
    assert_eq!(listen(&server, &stream(MINE).key(&token)).rest(), []);
    refused(&server, &stream(MINE).key(&token)).refused(401, "unauthorized");
}

#[test]
fn streams_are_bounded_in_all_and_by_caller() {
    let bounds = [("STREAMS_MAX", "3"), ("KEY_STREAMS_MAX", "2"), ("MEMBER_STREAMS_MAX", "1")];
    let bounds = bounds.map(|(name, value)| (format!("TALLY_EVENTS_{name}"), value));
    let bounds: Vec<(&str, &str)> = bounds.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let server = TestTally::start_set(TALLY, &bounds);
    let mut local = server.local();
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    let (_, token) = member(&server, "ann");
    let (_, other) = member(&server, "bob");
    let mut open = vec![listen(&server, &stream(BOARD)), listen(&server, &stream(BOARD))];
    let full = refused(&server, &stream(BOARD));
    full.refused(429, "too_many_streams");
    assert!(full.header("retry-after").is_some());
    open.push(listen(&server, &stream(MINE).key(&token)));
    refused(&server, &stream(BOARD).key(&token)).refused(429, "too_many_streams");
    let full = refused(&server, &stream(MINE).key(&other));
    full.refused(503, "too_many_streams");
    assert!(full.header("retry-after").is_some());
    assert_eq!(metric(&mut local, "tally_event_streams"), 3.0);
    // A slot is free again once its client has disconnected; the server notices that, though not at once.
    open.clear();
    let started = Instant::now();
    while metric(&mut local, "tally_event_streams") > 0.0 {
        assert!(started.elapsed() < GIVE_UP, "streams stay open without a client");
    }
    drop(listen(&server, &stream(MINE).key(&other)));
}

#[test]
fn streams_end_at_once_when_the_server_does() {
    let mut server = TestTally::start(TALLY);
    let mut local = server.local();
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    let (ann, token) = member(&server, "ann");
    let mut streams = vec![listen(&server, &stream(BOARD)), listen(&server, &stream(MINE).key(&token))];
    deposit(&mut local, &ann, "KRW", 1);
    let heard = streams[1].expect("transaction");
    let last_id = streams[1].last_id.clone();
    // No client reads this one.
    let asleep = listen(&server, &stream(BOARD));
    server.terminate();
    for stream in &mut streams {
        assert_eq!(stream.rest(), []);
    }
    drop(asleep);
    server.restart();
    deposit(&mut server.local(), &ann, "KRW", 2);
    let next = listen(&server, &after(MINE, &last_id).key(&token)).expect("transaction");
    assert_eq!((&heard["amount"], &next["amount"]), (&json!("1"), &json!("2")));
}

#[test]
fn a_stream_that_has_nothing_to_say_gives_signs_of_life() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    let mut silent = listen(&server, &stream(BOARD));
    silent.read_comment();
    // It goes on.
    submit(&mut local, "ann", 1);
    silent.expect("score");
}

/// A stream of a client that does not read is closed; the others get all events, and submits go on.
#[test]
fn a_slow_reader_is_closed_and_no_other_waits_for_it() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    let (asleep, mut awake) = (listen(&server, &stream(BOARD)), listen(&server, &stream(BOARD)));
    let reading = std::thread::spawn(move || {
        let mut heard = 0;
        while let Some(event) = awake.read() {
            heard += 1;
            if event.data["entries"].to_string().contains("\"last\"") {
                return heard;
            }
        }
        panic!("one who reads is closed");
    });
    let (started, mut score) = (Instant::now(), 0);
    // Long names: the system's buffer of a connection is full soon.
    let name = |number: usize| format!("{number:0120}");
    while metric(&mut local, "tally_event_streams_slow_total") < 1.0 {
        assert!(started.elapsed() < GIVE_UP, "a stream that nobody reads stays open");
        score += 1;
        let row = |number: usize| json!({"board": "b", "player": name(number), "score": score});
        let rows: Vec<_> = (0..1_000).map(row).collect();
        local.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    }
    submit(&mut local, "last", 1);
    assert!(reading.join().expect("it reads") > 1);
    drop(asleep);
}
