//! A database that comes back without its last commits, under a server with ranks in memory. The server says so, reads everything
//! anew, and decides nothing on a lost state.
//!
//! The database is killed and started on a copy of its data, as after a restored snapshot or the failover to an asynchronous
//! replica. Not here: several servers (`servers/lost.rs`), and how the store notices (its own tests).

use crate::TALLY;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally_testkit::{
    Client, DatabaseKind, EventStream, GIVE_UP, Reply, Request, RespClient, Response, ScratchDatabase,
    SetAtEnd, TestTally, wait_until,
};

const SECRET: &str = "0505050505050505050505050505050505050505050505050505050505050505";
const POLL_PAUSE: Duration = Duration::from_millis(5);

fn start_on(url: &str) -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    for (name, value) in [("STORE_URL", url), ("SECRET", SECRET), ("STORE_LEASE", "2s")] {
        server.set(&format!("TALLY_{name}"), value);
    }
    for text in ["has lost commits", "`store.lease`", "it is tried again"] {
        server.allow(text);
    }
    server.restart();
    server
}

/// Sends until the database is available.
#[track_caller]
fn send(client: &mut Client, request: &Request) -> Response {
    let began = Instant::now();
    loop {
        let answer = client.send(request);
        if answer.status != 503 {
            return answer;
        }
        assert!(began.elapsed() < GIVE_UP, "{}", answer.text());
        std::thread::sleep(POLL_PAUSE);
    }
}

#[track_caller]
fn post(client: &mut Client, path: &str, body: &Value) -> Response {
    send(client, &Request::new("POST", path).json(body))
}

fn submit(player: &str, score: i64) -> Request {
    let body = json!({"player": player, "score": score});
    Request::new("POST", "/v1/leaderboards/b/scores").json(&body).idempotent(&format!("{player}-{score}"))
}

/// Players with their scores, best first.
fn scores(page: &Value) -> Vec<(String, i64)> {
    let entries = page["entries"].as_array().expect("entries");
    let one =
        |entry: &Value| (entry["player"].as_str().unwrap().to_owned(), entry["score"].as_i64().unwrap());
    entries.iter().map(one).collect()
}

fn of(all: &[(&str, i64)]) -> Vec<(String, i64)> {
    all.iter().map(|(player, score)| ((*player).to_owned(), *score)).collect()
}

/// A client's view during permanent reads: pages, phases without an answer, pages.
fn watch(
    client: &mut Client,
    (began, stop): (&AtomicBool, &AtomicBool),
) -> Vec<Result<Vec<(String, i64)>, String>> {
    let mut seen = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let answer = client.get("/v1/leaderboards/b/scores");
        let found = match answer.status {
            200 => Ok(scores(&answer.json())),
            503 => Err(answer.json()["phase"].as_str().unwrap_or_default().to_owned()),
            _ => panic!("{}", answer.text()),
        };
        if seen.last() != Some(&found) {
            seen.push(found);
        }
        began.store(true, Ordering::SeqCst);
        std::thread::sleep(POLL_PAUSE);
    }
    seen
}

/// What `/readyz` says while everything is read anew, which a locked table of the database delays.
fn readiness_while_reloading(
    database: &ScratchDatabase,
    (name, client): (&str, &mut Client),
    go_on: impl FnOnce(),
) -> Value {
    let table = database.hold_locks(name, "LOCK TABLES boards WRITE");
    go_on();
    let (began, mut answer) = (Instant::now(), client.get("/readyz"));
    while answer.json()["reason"] != "lost_commits" && began.elapsed() < GIVE_UP {
        std::thread::sleep(POLL_PAUSE);
        answer = client.get("/readyz");
    }
    drop(table);
    assert_eq!(answer.status, 503, "{}", answer.text());
    answer.json()
}

fn wait_for_reloads(client: &mut Client, wanted: u64) -> Value {
    let began = Instant::now();
    loop {
        let status = client.get("/v1/status");
        if status.status == 200 && status.json()["lost_commits"]["reloads"] == json!(wanted) {
            return status.json()["lost_commits"]["last"].clone();
        }
        assert!(began.elapsed() < GIVE_UP, "{}", status.text());
        std::thread::sleep(POLL_PAUSE);
    }
}

fn nothing_is_decided_on_a_state_that_is_gone(kind: DatabaseKind) {
    let mut database = ScratchDatabase::start(kind);
    let url = database.create_database();
    let name = url.rsplit('/').next().unwrap();
    let mut server = start_on(&url);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    client.send(&submit("ann", 10)).expect(200);
    let made = client.post("/v1/members", &json!({"login_id": "m", "name": "m"})).expect(201);
    let member = made["id"].as_str().unwrap().to_owned();
    client.post("/v1/deposits", &json!({"to": member, "amount": 100})).expect(201);
    database.keep_copy();
    // Acknowledged, and about to be lost.
    send(&mut client, &submit("ann", 11)).expect(200);
    let mut events =
        EventStream::open(server.address(), &Request::new("GET", "/v1/leaderboards/b/events")).unwrap();
    send(&mut client, &submit("bob", 50)).expect(200);
    events.expect("score");
    post(&mut client, "/v1/deposits", &json!({"to": member, "amount": 1_000})).expect(201);
    send(&mut client, &Request::new("PUT", "/v1/leaderboards/c").json(&json!({}))).expect(201);
    let mut resp = RespClient::connect(server.resp());
    let (began, stop, address) = (AtomicBool::new(false), AtomicBool::new(false), server.address());
    let (seen, last) = std::thread::scope(|scope| {
        let end = SetAtEnd::new(&stop);
        let (mut watching, signals) = (Client::new(address), (&began, &stop));
        let watching = scope.spawn(move || watch(&mut watching, signals));
        wait_until("a page is read", || began.load(Ordering::SeqCst));
        // A server ends its streams when it has not known for five seconds whether it may answer, and MySQL may take longer to start.
        server.signal("STOP");
        database.put_copy_back();
        let of_ready = (name, &mut Client::new(address));
        let at = readiness_while_reloading(&database, of_ready, || server.signal("CONT"));
        assert_eq!((&at["phase"], &at["reason"]), (&json!("reloading"), &json!("lost_commits")));
        let last = wait_for_reloads(&mut client, 1);
        std::thread::sleep(Duration::from_millis(50));
        drop(end);
        (watching.join().unwrap(), last)
    });
    // Pages of before, then none, then the stored ones: nothing of before once the loss is known.
    let (before, after) = (of(&[("bob", 50), ("ann", 11)]), of(&[("ann", 10)]));
    assert_eq!((seen.first(), seen.last()), (Some(&Ok(before)), Some(&Ok(after.clone()))), "{seen:?}");
    let at = seen.iter().position(|seen| *seen == Err("reloading".into())).expect("it says so");
    assert!(seen[at..].iter().all(|seen| seen.as_ref().map_or(true, |page| *page == after)), "{seen:?}");
    assert!(last["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{last}");
    assert!(last["after_version"].as_str() < last["up_to_version"].as_str(), "{last}");
    server.wait_logged("has lost commits");
    let metrics = client.get("/metrics").text();
    assert!(metrics.contains("tally_lost_commits_reloads"), "{metrics}");
    // The stream says that its events may be lost, and ends.
    let reset = events.rest().pop().expect("an event");
    assert_eq!((reset.event.as_str(), events.last_id.as_str()), ("reset", ""));
    // Lost money is not held, a lost board takes nothing, a lost key is new.
    let wallet = client.get(&format!("/v1/wallets/{member}")).expect(200);
    assert_eq!(wallet["items"][0]["balance"], json!("100"), "{wallet}");
    client.post("/v1/holds", &json!({"member": member, "amount": 500})).refused(422, "insufficient_funds");
    client.get("/v1/leaderboards/c").expect(404);
    let again = client.send(&submit("bob", 50));
    assert_eq!(again.expect(200)["rank"], json!(1));
    assert_eq!(resp.call(&["ZSCORE", "b", "bob"]), Reply::Bulk(b"50".to_vec()));
    client.put("/v1/leaderboards/c", &json!({})).expect(201);
    // All of that is stored, and is the whole state for the next start.
    let page = client.get("/v1/leaderboards/b/scores").expect(200);
    assert_eq!(scores(&page), of(&[("bob", 50), ("ann", 10)]));
    server.run(&["verify"]).expect(0);
    server.terminate();
    server.restart();
    assert_eq!(scores(&server.client().get("/v1/leaderboards/b/scores").expect(200)), scores(&page));
}

#[test]
fn nothing_is_decided_on_a_state_that_is_gone_from_mariadb() {
    nothing_is_decided_on_a_state_that_is_gone(DatabaseKind::MariaDb10);
}

#[test]
fn nothing_is_decided_on_a_state_that_is_gone_from_mysql() {
    nothing_is_decided_on_a_state_that_is_gone(DatabaseKind::MySql9);
}
