//! Servers that follow the one that writes: they answer with its ranks, and one of them leads after it.
//!
//! Not here: that each kind of change is followed (`tally-service`, `followers`).

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::{
    Client, DatabaseKind, Reply, Request, RespClient, ScratchDatabase, TestTally, wait_until,
};

pub(super) const SECRET: &str = "0707070707070707070707070707070707070707070707070707070707070707";

/// A server that is not started, and follows another one of this database.
pub(super) fn stopped_on(url: &str) -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    // On a busy machine or disk a renewal takes seconds.
    let settings =
        [("STORE_URL", url), ("SECRET", SECRET), ("STORE_LEASE", "8s"), ("FOLLOW_ADVERTISE", "auto")];
    for (name, value) in settings {
        server.set(&format!("TALLY_{name}"), value);
    }
    server.allow("the store has not answered for `store.lease`");
    server
}

pub(super) fn database() -> String {
    ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database()
}

pub(super) fn submit(player: &str, score: i64) -> Request {
    Request::new("POST", "/v1/leaderboards/b/scores").json(&json!({"player": player, "score": score}))
}

/// The page of the leaderboard, or null while the server does not answer.
pub(super) fn page(client: &mut Client) -> Value {
    let answer = client.get("/v1/leaderboards/b/scores?limit=1000");
    if answer.status == 200 { answer.json() } else { Value::Null }
}

/// The leader that a server follows.
fn leader_of(client: &mut Client) -> Option<String> {
    client.get("/readyz").json()["follows"]["leader"].as_str().map(str::to_owned)
}

/// Waits until a server leads.
pub(crate) fn leads(server: &TestTally) {
    let mut client = server.client();
    wait_until("the follower leads", || {
        let ready = client.get("/readyz");
        ready.status == 200 && ready.json()["follows"].is_null()
    });
}

/// Waits until a server shows what the leader shows.
pub(super) fn wait_for_same(leader: &mut Client, follower: &mut Client) {
    let wanted = page(leader);
    wait_until("the follower shows the same", || page(follower) == wanted);
}

#[test]
fn a_follower_shows_what_the_leader_has() {
    let url = database();
    let (mut first, mut second) = (stopped_on(&url), stopped_on(&url));
    second.allow("a request met a fault");
    first.restart();
    let mut leader = first.client();
    leader.put("/v1/leaderboards/b", &json!({})).expect(201);
    for number in 0..50 {
        leader.send(&submit(&format!("before-{number}"), number)).expect(200);
    }
    second.restart();
    let mut follower = second.client();
    let advertised = format!("http://{}", first.address());
    assert_eq!(leader_of(&mut follower), Some(advertised));
    assert_eq!(leader_of(&mut leader), None);
    wait_for_same(&mut leader, &mut follower);
    for number in 0..50 {
        leader.send(&submit(&format!("after-{number}"), number)).expect(200);
    }
    leader.post("/v1/leaderboards/b/players/after-7/ban", &json!({})).expect(200);
    leader.delete("/v1/leaderboards/b/players/after-8").expect(204);
    leader.put("/v1/leaderboards/c", &json!({})).expect(201);
    wait_for_same(&mut leader, &mut follower);
    wait_until("the follower has the new leaderboard", || follower.get("/v1/leaderboards/c").status == 200);
    // The Redis protocol reads there, too.
    let mut resp = RespClient::connect(second.resp());
    assert_eq!(resp.call(&["ZSCORE", "b", "after-49"]), Reply::Bulk(b"49".to_vec()));
    assert_eq!(resp.call(&["ZADD", "b", "1", "x"]), Reply::Integer(1));
    assert_eq!(leader.get("/v1/leaderboards/b/players/x").json()["score"], 1);
    leader.delete("/v1/leaderboards/c").expect(204);
    wait_until("the follower has it no more", || follower.get("/v1/leaderboards/c").status == 404);
}

#[test]
fn an_answer_says_its_state_and_a_read_waits_for_one() {
    let url = database();
    let (mut first, mut second) = (stopped_on(&url), stopped_on(&url));
    first.restart();
    let mut leader = first.client();
    leader.put("/v1/leaderboards/b", &json!({})).expect(201);
    second.restart();
    let mut follower = second.client();
    for score in 1..100 {
        let written = leader.send(&submit("ann", score));
        let state = written.header("tally-as-of").expect("a state").to_owned();
        let position = state.split(';').next().unwrap();
        let read = Request::new("GET", "/v1/leaderboards/b/players/ann").header("tally-at-least", position);
        let read = follower.send(&read);
        assert_eq!(read.expect(200)["score"], score, "after {state}");
        assert!(read.header("tally-as-of").is_some_and(|state| state.contains("age=")), "{read:?}");
    }
    // One that does not come is asked of the leader, which has a later token then.
    let never = Request::new("GET", "/v1/leaderboards/b").header("tally-at-least", "18446744073709551615.1");
    assert_eq!(follower.send(&never).status, 503);
    let wrong = Request::new("GET", "/v1/leaderboards/b").header("tally-at-least", "1");
    assert_eq!([follower.send(&wrong).status, leader.send(&wrong).status], [400, 400]);
}

#[test]
fn a_follower_leads_when_the_leader_is_killed_and_when_it_stops() {
    let url = database();
    let (mut first, mut second) = (stopped_on(&url), stopped_on(&url));
    first.restart();
    first.client().put("/v1/leaderboards/b", &json!({})).expect(201);
    first.client().send(&submit("ann", 10)).expect(200);
    second.restart();
    first.client().send(&submit("bob", 20)).expect(200);
    let wanted = page(&mut first.client());
    first.kill9();
    leads(&second);
    assert_eq!(page(&mut second.client()), wanted, "nothing is lost");
    second.client().send(&submit("eve", 30)).expect(200);
    // The killed one comes back, and follows.
    first.restart();
    let advertised = format!("http://{}", second.address());
    assert_eq!(leader_of(&mut first.client()), Some(advertised));
    wait_for_same(&mut second.client(), &mut first.client());
    second.terminate();
    assert!(second.log().iter().any(|line| line.contains("to_follower=true")), "{:?}", second.log());
    leads(&first);
    first.client().send(&submit("dan", 40)).expect(200);
    assert_eq!(page(&mut first.client())["total"], 4);
}

#[test]
fn a_frozen_leader_is_replaced_and_its_follower_answers_with_nothing_old() {
    let url = database();
    let (mut first, mut second) = (stopped_on(&url), stopped_on(&url));
    first.allow("another server has taken the store over");
    first.restart();
    first.client().put("/v1/leaderboards/b", &json!({})).expect(201);
    first.client().send(&submit("ann", 10)).expect(200);
    second.restart();
    let mut follower = second.client();
    wait_for_same(&mut first.client(), &mut follower);
    first.signal("STOP");
    wait_until("the follower knows that it may be behind", || {
        let ready = follower.get("/readyz");
        ready.status == 503 || ready.json()["follows"].is_null()
    });
    leads(&second);
    follower.send(&submit("bob", 20)).expect(200);
    first.signal("CONT");
    assert_eq!(first.wait_exit(), Some(1));
    assert_eq!(page(&mut follower)["total"], 2);
}

/// What a dead leader has committed and its follower has not heard.
fn missed(change: impl FnOnce(&mut Client)) -> (TestTally, TestTally) {
    let url = database();
    let (mut first, mut second) = (stopped_on(&url), stopped_on(&url));
    second.allow("the clock");
    first.restart();
    let mut leader = first.client();
    for board in ["b", "c"] {
        leader.put(&format!("/v1/leaderboards/{board}"), &json!({})).expect(201);
    }
    for number in 0..100 {
        leader.send(&submit(&format!("p{number}"), number)).expect(200);
    }
    second.restart();
    wait_for_same(&mut leader, &mut second.client());
    second.signal("STOP");
    change(&mut leader);
    let wanted = page(&mut leader);
    first.kill9();
    second.signal("CONT");
    leads(&second);
    assert_eq!(page(&mut second.client()), wanted, "nothing is lost");
    second.wait_logged("leads with the ranks that it has followed has_all=false");
    (first, second)
}

#[test]
fn a_follower_that_leads_reads_the_records_that_it_has_missed() {
    missed(|leader| {
        for number in 0..100 {
            leader.send(&submit(&format!("p{number}"), 1_000 + number)).expect(200);
            leader.send(&submit(&format!("new-{number}"), number)).expect(200);
        }
        leader.delete("/v1/leaderboards/b/players/p7").expect(204);
    });
}

#[test]
fn a_follower_that_leads_loads_leaderboards_that_it_has_missed() {
    let (_first, second) = missed(|leader| {
        leader.post("/v1/leaderboards/b/players/p7/ban", &json!({})).expect(200);
        leader.send(&submit("p8", 5_000)).expect(200);
        leader.delete("/v1/leaderboards/c").expect(204);
        leader.put("/v1/leaderboards/d", &json!({})).expect(201);
    });
    let mut leader = second.client();
    assert_eq!(
        [leader.get("/v1/leaderboards/c").status, leader.get("/v1/leaderboards/d").status],
        [404, 200]
    );
    leader.post("/v1/leaderboards/b/players/p7/restore", &json!({})).expect(200);
    assert_eq!(leader.get("/v1/leaderboards/b/players/p7").json()["score"], 7);
}

#[test]
fn only_servers_of_the_store_read_its_changes() {
    let url = database();
    let mut server = stopped_on(&url);
    server.restart();
    let mut client = server.client();
    client.get("/servers/changes").expect(401);
    let forged = Request::new("GET", "/servers/changes").header("tally-forwarded", "v1 1 server 0.0.0.0 0 0");
    client.send(&forged).expect(401);
    client.post("/servers/changes", &json!({})).expect(405);
}

#[test]
fn an_address_that_is_none_is_refused() {
    let mut server = stopped_on("mysql://root@127.0.0.1:1/none");
    for (wrong, listen) in
        [("10.0.0.5:8420", "127.0.0.1:0"), ("http://", "127.0.0.1:0"), ("auto", "0.0.0.0:0")]
    {
        server.set("TALLY_FOLLOW_ADVERTISE", wrong);
        let refused = server.run(&["serve", "--http", listen, "--resp", "off"]);
        refused.expect(2);
        assert!(refused.stderr.contains("follow.advertise"), "{wrong}: {}", refused.stderr);
    }
}
