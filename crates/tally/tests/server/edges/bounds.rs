//! Bounds that can be set: bodies that do not arrive, a full queue, keys that are forgotten, boards and API keys.

use super::{TALLY, add, key, score, sum_board};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;
use tally_testkit::audit::metric;
use tally_testkit::{Client, GIVE_UP, Request, TestTally};

const HEAD: &str = "POST /v1/leaderboards/b/scores HTTP/1.1\r\nHost: 127.0.0.1\r\n\
    Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n";

#[test]
fn a_body_that_does_not_arrive_is_408() {
    let server = TestTally::start_set(TALLY, &[("TALLY_HTTP_BODY_TIMEOUT", "300ms")]);
    let mut client = sum_board(&server);
    for begun in ["", "{\"player\":\"p\",\"score\":1}"] {
        let answer = server.client().raw(format!("{HEAD}{begun}").as_bytes()).expect("it is told");
        answer.refused(408, "body_timeout");
        assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    }
    assert_eq!(score(&mut client, "p"), 0);
    client.send(&add("p", 1)).expect(200);
}

/// The time is that of the whole body: a byte now and then does not keep the connection.
#[test]
fn a_body_that_trickles_is_408() {
    let server = TestTally::start_set(TALLY, &[("TALLY_HTTP_BODY_TIMEOUT", "300ms")]);
    let mut stream = TcpStream::connect(server.address()).expect("it listens");
    stream.write_all(HEAD.as_bytes()).expect("it listens");
    let mut trickling = stream.try_clone().expect("it is a socket");
    let trickle = std::thread::spawn(move || {
        for _ in 0..100_000 {
            if trickling.write_all(b" ").is_err() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("it is told");
    assert_eq!(&answer, b"HTTP/1.1 408");
    drop(stream);
    trickle.join().expect("the server has closed");
}

/// Sends one batch under its key until it is taken; returns how often it was refused.
fn insist(mut client: Client, number: usize) -> usize {
    let row = json!({"board": "b", "player": format!("p{number}"), "score": 1});
    let batch = Request::new("POST", "/v1/scores/batch").json(&json!({"scores": vec![row; 50]}));
    let batch = batch.idempotent(&format!("k{number}"));
    let (mut refused, began) = (0, Instant::now());
    loop {
        let answer = client.send(&batch);
        if answer.status == 200 {
            assert!(!answer.is_replay(), "what was refused left no key behind");
            return refused;
        }
        answer.refused(503, "overloaded");
        let seconds = answer.header("retry-after").and_then(|seconds| seconds.parse::<u32>().ok());
        assert!(seconds.is_some_and(|seconds| seconds > 0), "{answer:?}");
        refused += 1;
        assert!(began.elapsed() < GIVE_UP, "{}", answer.text());
        std::thread::yield_now();
    }
}

/// An empty queue takes any batch, or a large one could never pass: only a second one behind it is too much.
#[test]
fn a_full_queue_says_when_to_come_back() {
    let mut server = TestTally::start_set(TALLY, &[("TALLY_LANE_QUEUE_REQUESTS_MAX", "5")]);
    server.allow("too much is waiting already");
    let mut client = sum_board(&server);
    let (mut batches, mut refused) = (0, 0);
    // Their coincidence is random: repeat until some have met.
    while refused == 0 {
        assert!(batches < 5_000, "no batch met another");
        refused += std::thread::scope(|scope| {
            let many = (batches..batches + 25).map(|number| (server.client(), number));
            let many = many.map(|(client, number)| scope.spawn(move || insist(client, number)));
            let many: Vec<_> = many.collect();
            many.into_iter().map(|one| one.join().expect("it was taken")).sum::<usize>()
        });
        batches += 25;
    }
    for number in 0..batches {
        assert_eq!(score(&mut client, &format!("p{number}")), 50, "each batch once, and whole");
    }
    let metrics = client.get("/metrics");
    assert!(metric(&metrics, "tally_lane_refused_full_total") >= 50.0, "{}", metrics.text());
}

#[test]
fn a_key_is_new_again_when_it_is_forgotten() {
    let server = TestTally::start_set(TALLY, &[("TALLY_IDEMPOTENCY_KEEP", "1s")]);
    let mut client = sum_board(&server);
    let request = add("p", 1).idempotent("k");
    assert!(!client.send(&request).is_replay());
    let create = Request::new("PUT", "/v1/leaderboards/other").json(&json!({})).idempotent("put");
    client.send(&create).expect(201);
    // This does not depend on time: as long as it is a replay it has no effect, then it has one.
    let mut again = client.send(&request);
    let began = Instant::now();
    while again.is_replay() {
        assert!(began.elapsed() < GIVE_UP, "it is never forgotten");
        assert_eq!(again.expect(200)["score"], 1);
        std::thread::sleep(std::time::Duration::from_millis(20));
        again = client.send(&request);
    }
    assert_eq!(again.expect(200)["score"], 2);
    client.delete("/v1/leaderboards/other").expect(204);
    let mut put = client.send(&create);
    while put.is_replay() {
        assert!(began.elapsed() < GIVE_UP, "it is never forgotten");
        std::thread::sleep(std::time::Duration::from_millis(20));
        put = client.send(&create);
    }
    put.expect(201);
    // Another request may have the key then.
    let mut other = client.send(&add("q", 7).idempotent("k"));
    while other.status == 422 {
        assert!(began.elapsed() < GIVE_UP, "it is never forgotten");
        other.refused(422, "idempotency_key_reused");
        std::thread::sleep(std::time::Duration::from_millis(20));
        other = client.send(&add("q", 7).idempotent("k"));
    }
    assert_eq!(other.expect(200)["score"], 7);
    assert_eq!(score(&mut client, "p"), 2);
}

#[test]
fn boards_have_a_limit() {
    let mut server = TestTally::start_set(TALLY, &[("TALLY_LIMITS_BOARDS", "2")]);
    let mut client = server.client();
    let put = |name: &str| Request::new("PUT", format!("/v1/leaderboards/{name}")).json(&json!({}));
    client.send(&put("a").idempotent("a")).expect(201);
    client.send(&put("b")).expect(201);
    client.send(&put("c").idempotent("c")).refused(422, "too_many_boards");
    client.send(&put("a")).expect(200);
    assert!(client.send(&put("a").idempotent("a")).is_replay());
    server.kill9();
    server.restart();
    let mut client = server.client();
    client.send(&put("c").idempotent("c")).refused(422, "too_many_boards");
    client.delete("/v1/leaderboards/a").expect(204);
    client.send(&put("c").idempotent("c")).expect(201);
    assert_eq!(client.get("/v1/leaderboards").expect(200)["items"].as_array().map(Vec::len), Some(2));
}

#[test]
fn api_keys_have_a_limit() {
    let server = TestTally::start_set(TALLY, &[("TALLY_LIMITS_KEYS", "2")]);
    let mut local = server.local();
    let make = Request::new("POST", "/v1/keys").json(&json!({"role": "reader"}));
    key(&mut local, "admin");
    let second = local.send(&make.clone().idempotent("second")).expect(201);
    let full = local.send(&make);
    assert_eq!(full.status, 422, "{}", full.text());
    assert!(full.text().contains("limits.keys"), "{}", full.text());
    assert!(local.send(&make.clone().idempotent("second")).is_replay(), "a replay makes none");
    let command = server.run(&["keys", "create", "--role", "reader"]);
    command.expect(1);
    assert!(command.stderr.contains("limits.keys"), "{}", command.stderr);
    let id = second["id"].as_str().expect("an id");
    local.delete(&format!("/v1/keys/{id}")).expect(204);
    local.send(&make).expect(201);
    assert_eq!(local.get("/v1/keys").expect(200)["items"].as_array().map(Vec::len), Some(2));
}
