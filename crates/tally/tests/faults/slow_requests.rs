//! A request that a database keeps waiting is among the slowest of `/v1/status`, and its lane is the reason.

use crate::TALLY;
use serde_json::{Value, json};
use std::time::Duration;
use tally_testkit::audit::metric;
use tally_testkit::{DatabaseKind, ScratchDatabase, TestTally, wait_until};

/// How long the database does not answer.
const PAUSE: Duration = Duration::from_millis(300);

/// Until this is dropped, the database does not answer.
struct Frozen<'a>(&'a ScratchDatabase);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.0.thaw();
    }
}

#[test]
fn a_request_that_waits_for_its_database_says_so() {
    // Its own one: others would wait for it too.
    let database = ScratchDatabase::start(DatabaseKind::MariaDb10);
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", &database.create_database());
    server.set("TALLY_RANKING_URL", "memory");
    // On a busy machine a renewal may be late.
    server.allow("the store has not answered for `store.lease`");
    server.restart();
    let mut client = server.local();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let mut other = server.local();
    std::thread::scope(|scope| {
        let frozen = Frozen(&database);
        database.freeze();
        scope.spawn(|| drop(other.post("/v1/leaderboards/b/scores", &json!({"player": "a", "score": 1}))));
        wait_until("a batch is in flight", || metric(&client.get("/metrics"), "tally_lane_in_flight") > 0.0);
        std::thread::sleep(PAUSE);
        drop(frozen);
    });
    let status = client.get("/v1/status").expect(200);
    let list = status["slow_requests"].as_array().expect("a list");
    let is_it = |one: &&Value| one["method"] == "POST" && one["route"] == "/v1/leaderboards/{board}/scores";
    let slow = list.iter().find(is_it).unwrap_or_else(|| panic!("{status:#}"));
    let ms = |stage: &str| slow["stages_ms"][stage].as_f64().expect("each stage is there");
    let waited = ms("queue") + ms("read") + ms("commit");
    assert!(waited >= PAUSE.as_secs_f64() * 1e3, "{slow:#}");
}
