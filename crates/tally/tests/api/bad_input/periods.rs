//! Periods: impossible definitions, and unknown names.

use super::world::{World, period};
use serde_json::{Value, json};
use tally_testkit::Request;

fn put(board: &str, body: &Value) -> Request {
    Request::new("PUT", format!("/v1/leaderboards/{board}")).json(body)
}

fn with(name: &str, value: Value) -> Value {
    let mut period = period("daily", "0 0 * * *");
    period[name] = value;
    json!({"periods": [period]})
}

#[test]
fn fields_of_a_period() {
    let mut world = World::start();
    let mut refuse = |body: &Value, code: &str, pointer: &str| {
        // Neither made nor changed.
        for board in ["new", "w", "y"] {
            world.refuse(&put(board, body), 400, code, Some(pointer));
        }
    };
    for periods in [json!(null), json!(1), json!("weekly"), json!({}), json!(true)] {
        refuse(&json!({"periods": periods}), "invalid_field", "/periods");
    }
    let many: Vec<Value> = (0..17).map(|at| period(&format!("p{at}"), "0 0 * * *")).collect();
    refuse(&json!({"periods": many}), "invalid_field", "/periods");
    for one in [json!(null), json!(1), json!("weekly"), json!([])] {
        refuse(&json!({"periods": [period("daily", "0 0 * * *"), one]}), "invalid_field", "/periods/1");
    }
    refuse(&json!({"periods": [{"schedule": "0 0 * * *"}]}), "invalid_field", "/periods/0/name");
    refuse(&json!({"periods": [{"name": "daily"}]}), "invalid_field", "/periods/0/schedule");
    for name in ["name", "schedule", "time_zone"] {
        for value in [json!(null), json!(1), json!([]), json!(true)] {
            refuse(&with(name, value), "invalid_field", &format!("/periods/0/{name}"));
        }
    }
    for (name, most) in [("keep", 100_001), ("grace_s", 604_801)] {
        for value in [json!(null), json!(-1), json!(most), json!(1.5), json!("1"), json!(true), json!(1e300)]
        {
            refuse(&with(name, value), "invalid_field", &format!("/periods/0/{name}"));
        }
    }
    for name in ["no", "Name", "start", "timezone"] {
        refuse(&with(name, json!("x")), "unknown_field", &format!("/periods/0/{name}"));
    }
    for (name, value) in [("prizes", json!({})), ("prizes", json!("5")), ("prize_ties", json!("both"))] {
        refuse(&with(name, value), "invalid_field", &format!("/periods/0/{name}"));
    }
    let no_amount = json!([{"from": 1, "to": 2, "currency": "KRW"}]);
    refuse(&with("prizes", no_amount), "invalid_field", "/periods/0/prizes/0/amount");
}

#[test]
fn periods_that_cannot_be() {
    let mut world = World::start();
    let long = "x".repeat(33);
    let mut bodies = Vec::new();
    for schedule in [
        "",
        "x",
        "* * * *",
        "0 0 * * * *",
        "0 0 0 1 1 * 2026",
        "60 * * * *",
        "0 24 * * *",
        "0 0 0 * *",
        "0 0 32 * *",
        "0 0 * 13 *",
        "0 0 * * 8",
        "*/0 * * * *",
        "0 0 * foo *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "-1 * * * *",
        "0 0 * * \u{1f947}",
    ] {
        bodies.push((with("schedule", json!(schedule)), "/periods/0/schedule"));
    }
    for zone in ["", "Mars/Phobos", "asia", "+09:00", "../UTC", "Asia/Seoul ", "Europe/\u{0}"] {
        bodies.push((with("time_zone", json!(zone)), "/periods/0/time_zone"));
    }
    for name in ["", "Weekly", "a b", "a:b", "wöchentlich", "all_time", ".", "a\u{0}", &long] {
        bodies.push((with("name", json!(name)), "/periods/0/name"));
    }
    let twice = [period("a", "0 0 * * *"), period("b", "0 0 * * *"), period("a", "0 1 * * *")];
    bodies.push((json!({"periods": twice}), "/periods/2/name"));
    let prize = |currency: &str| json!({"from": 1, "to": 2, "currency": currency, "amount": 1});
    bodies.push((with("prizes", json!([prize("KRW"), prize("KRW")])), "/periods/0/prizes/1/from"));
    bodies.push((with("prizes", json!([prize("ZZZ")])), "/periods/0/prizes/0/currency"));
    for (body, pointer) in &bodies {
        for board in ["new", "w", "y"] {
            world.refuse(&put(board, body), 422, "invalid_definition", Some(pointer));
        }
    }
    for (board, body) in [
        ("new", json!({"all_time": false})),
        ("new", json!({"all_time": false, "periods": []})),
        ("y", json!({"periods": []})),
    ] {
        world.refuse(&put(board, &body), 422, "invalid_definition", Some("/periods"));
    }
    let contradiction = json!({"update": "sum", "subscore": "ascending"});
    world.refuse(&put("new", &contradiction), 422, "invalid_definition", Some("/subscore"));
    // Fixed fields do not change, and a rejected change takes good periods with it.
    let both = json!({"order": "ascending", "periods": [period("daily", "0 0 * * *")]});
    world.refuse(&put("w", &both), 409, "definition_conflict", None);
    world.refuse(&put("y", &json!({"all_time": true})), 409, "definition_conflict", None);
}

#[test]
fn scores_that_nothing_takes() {
    let mut world = World::start();
    let late = json!({"player": "new", "score": 9, "at": "1971-07-18T00:00:00Z"});
    let request = Request::new("POST", "/v1/leaderboards/y/scores").json(&late);
    world.refuse(&request, 409, "period_closed", None);
    let mut row = late;
    row["board"] = json!("y");
    let batch = Request::new("POST", "/v1/scores/batch").json(&json!({"scores": [row]}));
    let answer = world.client().send(&batch).expect(200);
    assert_eq!(answer["results"][0]["error"]["code"], "period_closed", "{answer}");
    world.unchanged(&batch);
}

#[test]
fn periods_that_are_nowhere() {
    let mut world = World::start();
    let of_all =
        ["", "fortnightly", "ALL_TIME", "all_time:", "all_time:previous", ":", "2026-01-01", "%F0%9F%A5%87"];
    let of_w = [
        "Weekly",
        "weekly:",
        "weekly:next",
        "weekly:Previous",
        "weekly:x",
        "weekly:1971-07-12",
        "weekly:1971-07-18T00:00:00Z",
        "weekly:9999-12-31",
        "weekly:9999-12-31T23:59:59.999999Z",
        "weekly:-9999-01-01",
        "weekly:0000-01-01",
        "weekly:2026-02-30",
        "weekly:2026-13-01",
        "weekly:2026-1-1",
        "weekly:2026-01-01T25:00",
        "weekly:99999999999999999999",
        "weekly:weekly:previous",
        "weekly%00",
        " weekly",
    ];
    for (board, values) in
        [("b", &of_all[..]), ("b", &["weekly", "weekly:previous"]), ("w", &of_all), ("w", &of_w)]
    {
        for value in values {
            let value = value.replace(' ', "%20");
            for path in ["scores", "players/p", "players/p/around"] {
                let target = format!("/v1/leaderboards/{board}/{path}?period={value}");
                world.refuse(&Request::new("GET", target), 404, "period_not_found", None);
            }
            let among = Request::new("POST", format!("/v1/leaderboards/{board}/among?period={value}"));
            let among = among.json(&json!({"players": ["p"]}));
            world.refuse(&among, 404, "period_not_found", None);
        }
    }
}
