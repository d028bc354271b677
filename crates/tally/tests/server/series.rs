//! A series of contests by the real clock, over moments at which the server was down. Not here: one contest (`contests.rs`).

use crate::TALLY;
use crate::contests::{CHEAP, acting, balanced, member, pair, players, wallet};
use jiff::Timestamp;
use serde_json::json;
use tally_testkit::http::segment;
use tally_testkit::{Client, Request, TestTally, wait_for};

/// Whole seconds until the next full minute by the machine's clock, and that minute as written in a name.
fn next_minute() -> (Timestamp, String) {
    let seconds = Timestamp::now().as_second();
    let next = Timestamp::from_second(seconds - seconds.rem_euclid(60) + 60).expect("a time of this century");
    (next, next.strftime("%Y%m%d%H%M").to_string())
}

fn sleep_until(at: Timestamp) {
    std::thread::sleep(at.duration_since(Timestamp::now()).try_into().unwrap_or_default());
}

/// Pays the prizes of a settled period again, whose winner is a member: nothing is left to pay.
fn repaid_twice(local: &mut Client, period: &str) {
    let repay = Request::new("POST", format!("/v1/leaderboards/minutes/prizes/repay?period={period}"));
    let repay = repay.json(&json!({"reason": "why"})).idempotent("repay");
    for _ in 0..2 {
        let repaid = local.send(&repay).expect(200);
        let unpaid = json!({"member_closed": 0, "limit_exceeded": 0, "no_member": 0});
        assert_eq!(
            (&repaid["settled"], &repaid["paid"], &repaid["unpaid"]),
            (&json!(true), &json!(1), &unpaid)
        );
    }
    assert!(local.send(&repay).is_replay());
    let other = json!({"reason": "another"});
    let other =
        Request::new("POST", "/v1/leaderboards/minutes/prizes/repay").json(&other).idempotent("repay");
    local.send(&other).refused(422, "idempotency_key_reused");
}

/// A series of a contest a minute, over HTTP and by the real clock; the server is killed before the start and before the end.
#[test]
fn a_series_goes_on_over_moments_at_which_the_server_was_down() {
    let mut server = TestTally::start_set(TALLY, &CHEAP);
    let (ann, _) = member(&server, "ann", 1_000);
    // The minute must not pass while the contest is prepared.
    if next_minute().0.duration_since(Timestamp::now()).as_secs() < 20 {
        sleep_until(next_minute().0);
    }
    let (minute, stamp) = next_minute();
    // Twice an hour, in half an hour first: none ends by itself while this runs.
    let now = minute.as_second() / 60;
    let end = format!("{},{} * * * *", (now + 30).rem_euclid(60), now.rem_euclid(60));
    let template = json!({"title": "Every minute", "staff": ["boss"], "capacity": 2,
        "entry_fee": {"currency": "KRW", "amount": 100},
        "prizes": [{"from": 1, "to": 1, "currency": "KRW", "amount": 500}]});
    let series = json!({"id": "minutely", "template": template, "open": "* * * * *", "start": "* * * * *",
        "end": end, "ahead": 1});
    let mut local = server.local();
    let create = Request::new("POST", "/v1/contest-series").json(&series).idempotent("series");
    let made = local.send(&create).expect(201);
    // A board whose period ends with the same minute pays too.
    let (bob, _) = member(&server, "bob", 1);
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": 30}]);
    let period = json!({"name": "minutely", "schedule": "* * * * *", "prizes": prizes});
    local.put("/v1/leaderboards/minutes", &json!({"periods": [period]})).expect(201);
    local.post("/v1/leaderboards/minutes/scores", &json!({"player": "bob", "score": 5})).expect(200);
    let cup = format!("minutely-{stamp}");
    assert_eq!((&made["last_contest"], &made["last"]), (&json!(cup), &json!(cup)));
    assert!(local.send(&create).is_replay());
    local.post("/v1/contest-series", &series).refused(409, "series_exists");
    let path = format!("/v1/contests/{cup}");
    let opened = wait_for("the next contest is open", || {
        let contest = local.get(&path).expect(200);
        (contest["state"] == "open").then_some(contest)
    });
    assert_eq!((&opened["series"], &opened["starts_at"]), (&json!("minutely"), &json!(micros(minute))));
    local.post("/v1/contests", &json!({"id": "minutely-0", "title": "Named like one"})).expect(201);
    let listed = local.get("/v1/contests?series=minutely&state=open").expect(200);
    assert_eq!(listed["items"].as_array().expect("a list").first(), Some(&opened));
    assert_eq!(local.get("/v1/contests?series=minutely&state=draft").expect(200)["items"], json!([]));
    acting(&mut local, "ann", &format!("{path}/applications"), &json!({})).expect(201);
    local.post(&format!("{path}/applications/accept"), &players(&["ann"])).expect(200);
    server.kill9();
    sleep_until(minute);
    server.restart();
    // Before the server answers requests: it has started, and the next one exists.
    let mut local = server.local();
    let started = local.get(&path).expect(200);
    assert_eq!((&started["state"], &started["start_report"]["enrolled"]), (&json!("running"), &json!(1)));
    assert_eq!(wallet(&mut local, &ann), pair("900", "0"));
    let period = segment(&format!("minutely:{}", micros(minute - std::time::Duration::from_secs(1))));
    let paid = local.get(&format!("/v1/leaderboards/minutes/prizes?period={period}")).expect(200);
    assert_eq!((&paid["settled"], &paid["items"][0]["player"]), (&json!(true), &json!("bob")), "{paid}");
    assert_eq!(wallet(&mut local, &bob), pair("31", "0"));
    repaid_twice(&mut local, &period);
    let last = local.get("/v1/contest-series/minutely").expect(200)["last_contest"].clone();
    assert!(last.as_str().is_some_and(|last| last > cup.as_str()), "{last}");
    local.get(&format!("/v1/contests/{}", last.as_str().expect("a name"))).expect(200);
    local
        .post(&format!("/v1/leaderboards/contest:{cup}/scores"), &json!({"player": "ann", "score": 1}))
        .expect(200);
    local.delete("/v1/contest-series/minutely").expect(204);
    local.get("/v1/contest-series/minutely").refused(404, "series_not_found");
    assert_eq!(local.get("/v1/contest-series").expect(200)["items"], json!([]));
    // Its contests go on without it, also over its end.
    let soon = Timestamp::now() + std::time::Duration::from_secs(5);
    local.send(&Request::new("PATCH", &path).json(&json!({"ends_at": micros(soon)}))).expect(200);
    server.kill9();
    sleep_until(soon);
    server.restart();
    let mut local = server.local();
    assert_eq!(local.get(&path).expect(200)["state"], "settled");
    assert_eq!(wallet(&mut local, &ann), pair("1400", "0"));
    balanced(&mut local);
}

fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
