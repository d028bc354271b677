//! The slowest requests in `/v1/status`, with the stages of their lanes.
//!
//! Fewer requests than the list holds are all in it, so nothing here has to be slow. Not here: one that is
//! (`faults/slow_requests.rs`), and the bound of the list (`server/src/slow_requests.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::{Client, Request, TestTally};

const STAGES: [&str; 7] = ["body", "queue", "read", "commit", "publish", "reply", "other"];

fn slow_requests(client: &mut Client) -> Vec<Value> {
    let status = client.get("/v1/status").expect(200);
    status["slow_requests"].as_array().expect("a list").clone()
}

fn of<'a>(list: &'a [Value], method: &str, route: &str) -> &'a Value {
    let found: Vec<_> = list.iter().filter(|one| one["method"] == method && one["route"] == route).collect();
    let [one] = found.as_slice() else { panic!("{method} {route}: {list:#?}") };
    one
}

/// The milliseconds of some stages.
fn sum(request: &Value, stages: &[&str]) -> f64 {
    stages.iter().map(|stage| request["stages_ms"][stage].as_f64().expect("each stage is there")).sum()
}

#[test]
fn the_slowest_requests_have_the_stages_of_their_lanes() {
    let server = TestTally::start(TALLY);
    let mut client = server.local();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let member = client.post("/v1/members", &json!({"login_id": "ann", "name": "Ann"})).expect(201);
    let score = json!({"player": "ann", "score": 1});
    client.post("/v1/leaderboards/b/scores", &score).expect(200);
    client.post("/v1/deposits", &json!({"to": member["id"], "amount": 1})).expect(201);
    client.get("/v1/leaderboards/b/scores").expect(200);
    client.get("/v1/leaderboards/none").refused(404, "leaderboard_not_found");
    assert_eq!(client.send(&Request::new("GET", "/v1/nothing")).status, 404);
    // The console asks for the status all the time, and a digest of a password is slow by design: both are left out.
    slow_requests(&mut client);
    let list = slow_requests(&mut client);
    let routes = [
        ("POST", "/v1/leaderboards/{board}/scores", 200),
        ("POST", "/v1/deposits", 201),
        ("GET", "/v1/leaderboards/{board}/scores", 200),
        ("GET", "/v1/leaderboards/{board}", 404),
    ];
    let left_out =
        |one: &Value| ["/v1/status", "/v1/members", "none"].iter().any(|route| one["route"] == *route);
    assert!(!list.iter().any(left_out), "{list:#?}");
    for (method, route, status) in routes {
        let one = of(&list, method, route);
        assert_eq!(one["status"], status, "{one}");
        let ms = one["ms"].as_f64().expect("a number");
        let all = sum(one, &STAGES);
        assert!(ms > 0.0 && (all - ms).abs() < 0.01, "{one}");
        let cause = one["cause"].as_str().expect("a text");
        assert!(STAGES.iter().all(|stage| sum(one, &[stage]) <= sum(one, &[cause])), "{one}");
        // A change of a score or of money goes through a lane, and a read does not.
        let in_lane = sum(one, &["queue", "read", "commit", "publish", "reply"]);
        assert_eq!(in_lane > 0.0, method != "GET", "{one}");
        assert!(one["beside"].is_array(), "{one}");
    }
    let times: Vec<f64> = list.iter().map(|one| one["ms"].as_f64().expect("a number")).collect();
    assert!(times.is_sorted_by(|one, next| one >= next), "{times:?}");
    // Each key may see them.
    let made = client.post("/v1/keys", &json!({"role": "reader"})).expect(201);
    let mut reader = server.client().with_key(made["key"].as_str().expect("it is shown once"));
    of(&slow_requests(&mut reader), "POST", "/v1/deposits");
}
