//! Changes that reach a follower over HTTP: the leader makes each of them, once, and the client gets its answer.
//!
//! Not here: attempts and their ends with small leaders (`tally-server`, `http/forward`).

use super::followers::{SECRET, database, page, stopped_on, submit, wait_for_same};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use tally_rules::Micros;
use tally_service::keyring::Keyring;
use tally_service::secret::Secret;
use tally_service::signed_requests::{Behalf, SignedRequest};
use tally_testkit::audit::metric;
use tally_testkit::{Client, Cut, Proxy, Reply, Request, RespClient, TestTally, wait_until};

const SCORES: &str = "/v1/leaderboards/b/scores";

/// A leader, its follower, and the network between them.
pub(super) fn pair() -> (Proxy, TestTally, TestTally) {
    let url = database();
    let proxy = Proxy::start(([127, 0, 0, 1], 9).into());
    let (mut first, mut second) = (stopped_on(&url), stopped_on(&url));
    first.set("TALLY_FOLLOW_ADVERTISE", &format!("http://{}", proxy.address()));
    first.restart();
    proxy.retarget(first.address());
    second.restart();
    // The last one is dropped first: a follower that starts once more needs its leader, by way of the proxy.
    (proxy, first, second)
}

/// The signature of a server for a request on behalf of a client.
pub(super) fn sign(request: &SignedRequest<'_>, body: &[u8], behalf: Behalf) -> String {
    let ring = Keyring::new(&[Secret::parse(SECRET).expect("a secret")]);
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock");
    let now = Micros(i64::try_from(since_1970.as_micros()).expect("a time"));
    request.sign(&ring, body, (behalf, [192, 0, 2, 7].into()), now)
}

fn make_sum_board(client: &mut Client) {
    client.put("/v1/leaderboards/b", &json!({"update": "sum"})).expect(201);
}

/// The score of a player at the leader, or null.
fn score(leader: &mut Client, player: &str) -> Value {
    let answer = leader.get(&format!("/v1/leaderboards/b/players/{player}"));
    if answer.status == 200 { answer.json()["score"].clone() } else { Value::Null }
}

#[test]
fn a_follower_passes_changes_to_the_leader_and_answers_back() {
    let (_proxy, first, second) = pair();
    let (mut leader, mut follower) = (first.client(), second.client());
    make_sum_board(&mut follower);
    let add = submit("ann", 5).idempotent("k").header("X-Request-Id", "a-request");
    let made = follower.send(&add);
    made.expect(200);
    assert_eq!((made.header("x-request-id"), made.is_replay()), (Some("a-request"), false));
    assert!(leader.send(&add).is_replay() && follower.send(&add).is_replay());
    follower
        .post("/v1/leaderboards/none/scores", &json!({"player": "ann", "score": 1}))
        .refused(404, "leaderboard_not_found");
    follower.send(&submit("bob", 7)).expect(200);
    follower.send(&submit("cid", 9)).expect(200);
    follower.delete("/v1/leaderboards/b/players/cid").expect(204);
    wait_for_same(&mut leader, &mut follower);
    assert_eq!(page(&mut leader)["total"], 2);
    let metrics = follower.get("/metrics").text();
    assert!(metrics.contains("tally_forwarded_total{outcome=\"answered\"} 7\n"), "{metrics}");
}

#[test]
fn the_leader_believes_only_servers_of_the_store() {
    let (_proxy, first, second) = pair();
    make_sum_board(&mut second.client());
    // A command on the machine of the follower has the token of that machine.
    let made = second.local().post("/v1/keys", &json!({"role": "server"})).expect(201);
    let key = made["key"].as_str().expect("a key").to_owned();
    let mut follower = second.client().with_key(&key);
    wait_until("the follower knows the key", || follower.get("/v1/leaderboards").status == 200);
    follower.send(&submit("ann", 1)).expect(200);
    second.client().send(&submit("ann", 1)).refused(401, "unauthorized");

    let body = r#"{"player":"ann","score":1}"#;
    let authorization = format!("Bearer {key}");
    let headers = [("authorization", authorization.as_bytes()), ("content-type", b"application/json")];
    let sent = |sent: &str, behalf| {
        let headers = if behalf == Behalf::Client { &headers[..] } else { &headers[1..] };
        let request = SignedRequest { method: "POST", target: SCORES, headers };
        let value = sign(&request, body.as_bytes(), behalf);
        Request::new("POST", SCORES).body("application/json", sent).header("Tally-Forwarded", &value)
    };
    let mut leader = first.client();
    leader.send(&sent(body, Behalf::CommandLine)).expect(200);
    leader.send(&sent(body, Behalf::Client).key(&key)).expect(200);
    // The signature covers what else the operation reads.
    let keyed = sent(body, Behalf::Client).key(&key).idempotent("of another");
    leader.send(&keyed).refused(401, "unauthorized");
    for behalf in [Behalf::Client, Behalf::Local, Behalf::Server] {
        leader.send(&sent(body, behalf)).refused(401, "unauthorized");
    }
    leader.send(&sent(r#"{"player":"ann","score":9}"#, Behalf::CommandLine)).refused(400, "malformed_body");
    let forged = Request::new("POST", SCORES).json(&json!({"player": "ann", "score": 1})).key(&key);
    leader
        .send(&forged.header("Tally-Forwarded", "v1 1 command_line 192.0.2.7 0 0"))
        .refused(401, "unauthorized");
    // It is never forwarded again.
    second.client().send(&sent(body, Behalf::CommandLine)).refused(503, "not_leader");
    assert_eq!(score(&mut leader.with_key(&key), "ann"), 3);
}

#[test]
fn a_change_whose_answer_was_lost_is_made_once() {
    let (proxy, first, second) = pair();
    let (mut leader, mut follower) = (first.client(), second.client());
    make_sum_board(&mut follower);
    proxy.cut_at(b"\"once\",\"score\":1}", Cut::Answer);
    follower.send(&submit("once", 1)).refused(503, "outcome_unknown");
    wait_until("the leader has made it", || score(&mut leader, "once") == 1);
    for cut in [Cut::Before, Cut::Answer] {
        let player = format!("keyed-{cut:?}");
        proxy.cut_at(format!("\"{player}\",\"score\":1}}").as_bytes(), cut);
        follower.send(&submit(&player, 1).idempotent(&player)).expect(200);
        assert!(!proxy.is_armed());
        assert_eq!(score(&mut leader, &player), 1);
    }
    assert_eq!(score(&mut leader, "once"), 1, "it was not sent again");
}

#[test]
fn a_change_that_is_sent_while_the_leader_is_killed_is_made_once() {
    let (_proxy, mut first, second) = pair();
    let mut follower = second.client();
    make_sum_board(&mut follower);
    follower.send(&submit("ann", 5).idempotent("before")).expect(200);
    first.kill9();
    let after = submit("ann", 7).idempotent("after");
    wait_until("it is made", || follower.send(&after).status == 200);
    assert!(follower.send(&after).is_replay());
    assert!(follower.send(&submit("ann", 5).idempotent("before")).is_replay());
    assert_eq!(score(&mut follower, "ann"), 12);
}

#[test]
fn a_read_is_answered_by_the_leader_while_the_follower_is_behind() {
    let (proxy, first, mut second) = pair();
    make_sum_board(&mut first.client());
    second.terminate();
    // It is older than that for most of the time.
    second.set("TALLY_FOLLOW_AGE_MAX", "20ms");
    second.restart();
    let (mut leader, mut follower) = (first.client(), second.client());
    let mut resp = RespClient::connect(second.resp());
    leader.send(&submit("ann", 5)).expect(200);
    let read = |client: &mut Client| client.get("/v1/leaderboards/b/players/ann");
    wait_for_same(&mut leader, &mut follower);
    for _ in 0..50 {
        assert_eq!(read(&mut follower).expect(200)["score"], 5);
        assert_eq!(resp.call(&["ZSCORE", "b", "ann"]), Reply::Bulk(b"5".to_vec()));
        std::thread::sleep(Duration::from_millis(3));
    }
    let metrics = follower.get("/metrics");
    assert!(metric(&metrics, "tally_forwarded_total{outcome=\"answered\"}") > 0.0);
    // The leader is away: the answer comes soon, and says so.
    proxy.freeze();
    wait_until("the reads are refused", || read(&mut follower).status == 503);
    let behind = read(&mut follower);
    behind.refused(503, "loading");
    assert_eq!(behind.json()["phase"], "behind");
    let is_behind = |reply| matches!(reply, Reply::Error(text) if text.starts_with(b"LOADING"));
    assert!(is_behind(resp.call(&["ZSCORE", "b", "ann"])));
    proxy.pass();
    wait_until("it answers again", || read(&mut follower).status == 200);
}
