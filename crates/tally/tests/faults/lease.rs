//! Two servers and one database: one of them serves it, and which one is never in doubt.
//!
//! Rankings are in memory, so a server that has not noticed another writer would answer and decide with old ranks. Not here: the
//! store's own tests of its lease, which produce the moments that are rare from outside.

use crate::TALLY;
use serde_json::json;
use std::net::TcpStream;
use std::time::Duration;
use tally_testkit::{
    Client, DatabaseKind, Proxy, Request, RespClient, ScratchDatabase, TestTally, wait_until,
};

const SECRET: &str = "0707070707070707070707070707070707070707070707070707070707070707";
const LEASE: &str = "4s";

/// A server that is not started, on this database and a data directory of its own.
fn stopped_on(url: &str) -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    for (name, value) in [("STORE_URL", url), ("SECRET", SECRET), ("STORE_LEASE", LEASE)] {
        server.set(&format!("TALLY_{name}"), value);
    }
    // On a busy machine a renewal may be late.
    server.allow("the store has not answered for `store.lease`");
    server
}

fn database() -> (&'static ScratchDatabase, String) {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    (server, server.create_database())
}

fn submit(player: &str, score: i64) -> Request {
    Request::new("POST", "/v1/leaderboards/b/scores").json(&json!({"player": player, "score": score}))
}

fn make_board(client: &mut Client) {
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    client.send(&submit("ann", 10)).expect(200);
}

/// The board's best player.
fn best(client: &mut Client) -> (String, i64) {
    let page = client.get("/v1/leaderboards/b/scores").expect(200);
    let entry = &page["entries"][0];
    (entry["player"].as_str().unwrap_or_default().to_owned(), entry["score"].as_i64().unwrap_or_default())
}

fn wait_until_ready(client: &mut Client) {
    wait_until("it is ready", || client.get("/readyz").status == 200);
}

#[test]
fn a_second_server_is_refused_and_the_first_goes_on() {
    let (_, url) = database();
    let mut first = stopped_on(&url);
    first.restart();
    make_board(&mut first.client());
    let second = stopped_on(&url).run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
    second.expect(1);
    assert_eq!(second.stdout, "");
    let address = first.address().to_string();
    let waits = "waiting up to 4s";
    for words in ["another process has the store open", &address, first.data().to_str().unwrap(), waits] {
        assert!(second.stderr.contains(words), "no {words:?} in {}", second.stderr);
    }
    // Nor may a command that would work on the store itself; one beside the server calls it.
    stopped_on(&url).run(&["keys", "list"]).expect(1);
    first.run(&["keys", "list"]).expect(0);
    assert_eq!(best(&mut first.client()), ("ann".into(), 10));
    first.client().send(&submit("bob", 20)).expect(200);
}

#[test]
fn a_server_that_waits_for_the_store_reports_its_health() {
    let (_, url) = database();
    let mut server = stopped_on(&url);
    server.restart();
    server.stay();
    let address = server.address();
    server.kill9();
    let asking = std::thread::spawn(move || {
        wait_until("it listens", || TcpStream::connect(address).is_ok());
        let mut client = Client::new(address);
        (client.get("/healthz").status, client.get("/readyz"))
    });
    server.restart();
    let (healthy, ready) = asking.join().expect("it is answered");
    assert_eq!((healthy, ready.status), (200, 503), "{ready:?}");
    let said = ready.json();
    assert_eq!((&said["phase"], &said["reason"]), (&json!("opening"), &json!("store")), "{said}");
}

#[test]
fn a_server_after_a_killed_one_waits_and_one_after_an_ended_one_does_not() {
    let (_, url) = database();
    let mut first = stopped_on(&url);
    let mut second = stopped_on(&url);
    first.restart();
    make_board(&mut first.client());
    first.kill9();
    second.restart();
    second.wait_logged("waiting up to 4s");
    assert_eq!(best(&mut second.client()), ("ann".into(), 10));
    second.client().send(&submit("bob", 20)).expect(200);
    second.terminate();
    first.restart();
    assert_eq!(best(&mut first.client()), ("bob".into(), 20));
    // A command takes it and gives it back.
    first.terminate();
    assert!(!first.log().iter().any(|line| line.contains("waiting")), "{:?}", first.log());
    first.run(&["keys", "list"]).expect(0);
    second.restart();
    second.terminate();
    assert!(second.log().iter().filter(|line| line.contains("waiting")).count() == 1);
}

#[test]
fn a_frozen_server_that_was_replaced_neither_writes_nor_answers() {
    let (_, url) = database();
    let mut first = stopped_on(&url);
    let mut second = stopped_on(&url);
    first.allow("another server has taken the store over");
    first.restart();
    make_board(&mut first.client());
    let mut clients: Vec<Client> = (0..6).map(|_| first.client()).collect();
    clients.iter_mut().for_each(|client| drop(best(client)));
    let mut resp = RespClient::connect(first.resp());
    resp.call(&["ZSCORE", "b", "ann"]);
    first.signal("STOP");
    second.restart();
    second.client().send(&submit("bob", 20)).expect(200);
    second.client().send(&submit("ann", 15)).expect(200);
    // They are sent while it is frozen, so it finds them the moment it goes on.
    resp.send_bytes(b"ZADD b 99 eve\r\nZREVRANGE b 0 -1\r\n");
    let asked: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(number, mut client)| {
            std::thread::spawn(move || match number % 2 {
                0 => client.try_send(&submit("eve", 99)),
                _ => client.try_send(&Request::new("GET", "/v1/leaderboards/b/scores")),
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    first.signal("CONT");
    for answered in asked {
        // Refused, or cut by the end of the server.
        if let Ok(answer) = answered.join().unwrap() {
            assert_eq!(answer.status, 503, "{}", answer.text());
        }
    }
    assert_eq!(first.wait_exit(), Some(1));
    let replies = String::from_utf8_lossy(&resp.read_to_end()).into_owned();
    assert!(replies.lines().all(|line| line.starts_with('-')), "{replies}");
    let taken = format!("which answers at {}", second.address());
    assert!(first.log().iter().any(|line| line.contains(&taken)), "{:?}", first.log());
    let page = second.client().get("/v1/leaderboards/b/scores").expect(200);
    let scores: Vec<_> =
        page["entries"].as_array().unwrap().iter().map(|entry| entry["score"].clone()).collect();
    assert_eq!(scores, [json!(20), json!(15)]);
}

#[test]
fn a_database_that_was_away_for_longer_than_the_lease_ends_nothing() {
    let (server, url) = database();
    let proxy = Proxy::start(server.address());
    let mut tally = stopped_on(&url.replace(&server.address().to_string(), &proxy.address().to_string()));
    // The background tasks read the store as well.
    tally.allow("the store is unavailable");
    tally.restart();
    let mut client = tally.client();
    make_board(&mut client);
    proxy.refuse();
    proxy.cut();
    wait_until("its lease is over", || client.get("/readyz").status != 200);
    let answer = client.get("/v1/leaderboards/b/scores");
    answer.refused(503, "loading");
    assert_eq!(answer.json()["phase"], "lease");
    assert_eq!(client.send(&submit("eve", 99)).status, 503);
    proxy.pass();
    wait_until_ready(&mut client);
    assert_eq!(best(&mut client), ("ann".into(), 10));
    client.send(&submit("bob", 20)).expect(200);
    assert_eq!(best(&mut client), ("bob".into(), 20));
}
