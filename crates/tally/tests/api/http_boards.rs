//! Boards over HTTP: create, repeat, conflict, list, get, delete; health, readiness, metrics and status.
//!
//! Bodies are compared whole. Not here: wrong requests (`bad_input.rs`) and permissions (`http_permissions`).

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::audit::{metric, read_pages};
use tally_testkit::http::segment;
use tally_testkit::{Request, RespClient, TestTally};
use tally_wire::resp::Reply;

/// A board's answer as the contract has it, with the server's instant.
fn shown(board: &str, changes: &Value, count: u64, answer: &Value) -> Value {
    let mut shown = json!({
        "board": board, "order": "descending", "update": "best", "ranking": "ordinal", "ties": "first",
        "score": "int64", "subscore": "none", "all_time": true, "periods": [], "counts": {"all_time": count},
    });
    for (name, value) in changes.as_object().expect("changes are an object") {
        shown[name] = value.clone();
    }
    let created_at = answer["created_at"].as_str().expect("there is an instant");
    assert!(created_at.len() == 27 && created_at.ends_with('Z'), "{created_at}");
    shown["created_at"] = json!(created_at);
    shown
}

#[test]
fn a_board_is_created_repeated_read_and_deleted() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let created = client.put("/v1/leaderboards/goals", &json!({})).expect(201);
    assert_eq!(created, shown("goals", &json!({}), 0, &created));
    assert_eq!(client.put("/v1/leaderboards/goals", &json!({})).expect(200), created);
    assert_eq!(client.send(&Request::new("PUT", "/v1/leaderboards/goals")).expect(200), created);
    assert_eq!(client.get("/v1/leaderboards/goals").expect(200), created);

    client.post("/v1/leaderboards/goals/scores", &json!({"player": "a", "score": 1})).expect(200);
    let counted = client.get("/v1/leaderboards/goals").expect(200);
    assert_eq!(counted, shown("goals", &json!({}), 1, &created));
    assert_eq!(client.put("/v1/leaderboards/goals", &json!({"order": "descending"})).expect(200), counted);

    let deleted = client.delete("/v1/leaderboards/goals");
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    client.get("/v1/leaderboards/goals").refused(404, "leaderboard_not_found");
    client.delete("/v1/leaderboards/goals").refused(404, "leaderboard_not_found");
    client.get("/v1/leaderboards/goals/scores").refused(404, "leaderboard_not_found");

    // The next one of the same name starts empty.
    let again = client.put("/v1/leaderboards/goals", &json!({"order": "ascending"})).expect(201);
    assert_eq!(again, shown("goals", &json!({"order": "ascending"}), 0, &again));
    assert_eq!(client.get("/v1/leaderboards/goals/scores").expect(200)["entries"], json!([]));
}

#[test]
fn every_word_of_a_definition_is_kept_and_survives_a_restart() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    let mut definitions = Vec::new();
    for (name, words) in tally_testkit::model::CHOICES {
        for word in words {
            let board = format!("{name} {word}");
            let changes = json!({name: word});
            let target = format!("/v1/leaderboards/{}", segment(&board));
            let created = client.put(&target, &changes).expect(201);
            assert_eq!(created, shown(&board, &changes, 0, &created));
            definitions.push((target, created));
        }
    }
    server.terminate();
    server.restart();
    let mut client = server.client();
    for (target, created) in definitions {
        assert_eq!(client.get(&target).expect(200), created);
    }
}

#[test]
fn another_definition_is_a_conflict_that_names_the_fields() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({"update": "sum"})).expect(201);
    for (body, fields) in [
        (json!({"order": "ascending"}), vec!["order"]),
        (json!({"update": "best"}), vec!["update"]),
        (json!({"ranking": "dense", "ties": "last"}), vec!["ranking", "ties"]),
        (json!({"score": "float64", "subscore": "ascending"}), vec!["score", "subscore"]),
        (json!({"all_time": false}), vec!["all_time"]),
    ] {
        let answer = client.put("/v1/leaderboards/b", &body);
        answer.refused(409, "definition_conflict");
        let detail = answer.json()["detail"].as_str().expect("there is a detail").to_owned();
        for field in fields {
            assert!(detail.contains(field), "{body}: {detail}");
        }
    }
    // Absent fields are no spec.
    assert_eq!(client.put("/v1/leaderboards/b", &json!({})).expect(200)["update"], "sum");
}

#[test]
fn contradictions_and_reserved_names_are_refused() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    for body in [
        json!({"update": "sum", "subscore": "ascending"}),
        json!({"all_time": false}),
        json!({"all_time": false, "periods": []}),
    ] {
        client.put("/v1/leaderboards/b", &body).refused(422, "invalid_definition");
    }
    let reserved = client.put("/v1/leaderboards/contest:cup", &json!({}));
    assert_eq!(reserved.status, 422, "{}", reserved.text());
    assert_eq!(client.get("/v1/leaderboards").expect(200), json!({"items": []}));
}

#[test]
fn names_are_bytes_and_lists_are_in_their_order() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let long = "ä".repeat(64);
    let names = [
        "Z",
        "a",
        "a b",
        "a/b",
        "a%2Fb",
        "a+b",
        "b?c=d#e",
        "goals",
        "é",
        "日本",
        "🥇",
        &long,
        "leaderboards",
        "...",
    ];
    for name in names {
        let created = client.put(&format!("/v1/leaderboards/{}", segment(name)), &json!({})).expect(201);
        assert_eq!(created["board"], name);
    }
    let mut sorted = names;
    sorted.sort_unstable();
    for limit in [1, 3, 20, 1000] {
        let (items, pages) = read_pages(&mut client, &format!("/v1/leaderboards?limit={limit}"), "items");
        let listed: Vec<&str> = items.iter().map(|item| item["board"].as_str().expect("a name")).collect();
        assert_eq!(listed, sorted, "limit {limit}");
        assert_eq!(pages.len(), names.len().div_ceil(limit), "no empty page follows the last");
    }
    // A different spelling of the same bytes is the same board.
    assert_eq!(client.get("/v1/leaderboards/%67oals").expect(200)["board"], "goals");
    client.get("/v1/leaderboards/Goals").refused(404, "leaderboard_not_found");
}

#[test]
fn a_list_walks_keys_while_boards_come_and_go() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    for name in ["b", "d", "f", "h"] {
        client.put(&format!("/v1/leaderboards/{name}"), &json!({})).expect(201);
    }
    let first = client.get("/v1/leaderboards?limit=2").expect(200);
    let cursor = first["next_cursor"].as_str().expect("there are more").to_owned();
    client.delete("/v1/leaderboards/d").expect(204);
    client.put("/v1/leaderboards/a", &json!({})).expect(201);
    client.put("/v1/leaderboards/e", &json!({})).expect(201);
    let rest = client.get(&format!("/v1/leaderboards?limit=20&cursor={cursor}")).expect(200);
    let names: Vec<&Value> =
        rest["items"].as_array().expect("items").iter().map(|item| &item["board"]).collect();
    assert_eq!(names, ["e", "f", "h"]);
    assert_eq!(rest.get("next_cursor"), None);
}

#[test]
fn of_many_that_create_a_board_at_once_one_does() {
    let server = TestTally::start(TALLY);
    for board in ["b", "c", "d"] {
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let creating = (0..20).map(|_| {
                let mut client = server.client();
                scope.spawn(move || client.put(&format!("/v1/leaderboards/{board}"), &json!({})).status)
            });
            let creating: Vec<_> = creating.collect();
            creating.into_iter().map(|thread| thread.join().expect("it is answered")).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| [200, 201].contains(status)), "{statuses:?}");
    }
}

#[test]
fn health_and_readiness_need_nothing() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    for target in ["/healthz", "/readyz", "/readyz/store", "/readyz/ranking", "/readyz/applications"] {
        let strange = Request::new("GET", target)
            .header("Host", "evil.example")
            .header("Origin", "http://evil.example");
        assert_eq!(client.send(&strange).status, 200, "{target}");
        assert_eq!(client.send(&Request::new("HEAD", target)).status, 200, "{target}");
        client.post(target, &json!({})).refused(405, "method_not_allowed");
    }
    let ready = client.get("/readyz").expect(200);
    for member in ["phase", "done", "total", "eta_s", "parts"] {
        assert!(ready.get(member).is_some(), "{member} in {ready}");
    }
}

#[test]
fn metrics_count_what_was_done() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    for score in 0..3 {
        client.post("/v1/leaderboards/b/scores", &json!({"player": "p", "score": score})).expect(200);
    }
    let metrics = client.get("/metrics");
    assert!(metrics.header("content-type").is_some_and(|kind| kind.contains("text")), "{metrics:?}");
    for (name, value) in [
        ("tally_ready", 1.0),
        ("tally_boards", 1.0),
        ("tally_board_members", 1.0),
        ("tally_lane_requests_total", 3.0),
        ("tally_lane_queued_requests", 0.0),
    ] {
        assert_eq!(metric(&metrics, name), value, "{name}");
    }
    let route =
        "tally_http_requests_total{route=\"/v1/leaderboards/{board}/scores\",method=\"POST\",class=\"2xx\"}";
    assert_eq!(metric(&metrics, route), 3.0);
    for stage in ["queue", "read", "commit", "publish"] {
        let labels = format!("lane=\"scores\",stage=\"{stage}\"");
        assert_eq!(metric(&metrics, &format!("tally_lane_seconds_count{{{labels}}}")), 3.0, "{stage}");
        let all = metric(&metrics, &format!("tally_lane_seconds_bucket{{{labels},le=\"+Inf\"}}"));
        assert_eq!(all, 3.0, "{stage}");
        assert!(metric(&metrics, &format!("tally_lane_seconds_sum{{{labels}}}")) > 0.0, "{stage}");
    }
    assert!(metrics.text().ends_with("# EOF\n"));
}

#[test]
fn status_shows_settings_to_admins_only() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    local.post("/v1/leaderboards/b/scores", &json!({"player": "p", "score": 1})).expect(200);
    let status = local.get("/v1/status").expect(200);
    assert_eq!(status["boards_total"], 1);
    assert_eq!(status["boards"][0]["board"], "b");
    assert_eq!(status["boards"][0]["members"], 1);
    let in_memory = status["ranking"]["kind"] == "memory";
    assert_eq!(status["boards"][0]["bytes"].as_u64().is_some_and(|bytes| bytes > 0), in_memory, "{status}");
    assert_eq!(status["lanes"][0]["queued"], 0);
    assert!(status["settings"].is_object(), "{status}");
    assert!(!status.to_string().contains(server.token()), "no credential is shown");

    let key = |role: &str| {
        let created = server.local().post("/v1/keys", &json!({"role": role})).expect(201);
        created["key"].as_str().expect("it is shown once").to_owned()
    };
    for role in ["server", "reader"] {
        let status = server.client().with_key(&key(role)).get("/v1/status").expect(200);
        assert_eq!(status.get("settings"), None, "{role}");
        assert_eq!(status["boards_total"], 1, "{role}");
        let sees_money = status["activity"]["today"].get("moved").is_some();
        assert_eq!(sees_money, role == "server", "{role}");
    }
    assert!(server.client().with_key(&key("admin")).get("/v1/status").expect(200)["settings"].is_object());
}

#[test]
fn status_counts_what_was_done_today() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    let counts = |status: &Value| {
        let activity = &status["activity"];
        // The day may end while this runs.
        let of = |what: &str| {
            let yesterday = activity["yesterday"][what].as_u64().unwrap_or(0);
            yesterday + activity["today"][what].as_u64().expect("a number")
        };
        let krw = |day: &str| {
            let moved = activity[day]["moved"].as_array().into_iter().flatten();
            let amount = |one: &Value| one["amount"].as_str().and_then(|text| text.parse::<u64>().ok());
            moved.filter(|one| one["currency"] == "KRW").filter_map(amount).sum::<u64>()
        };
        (of("scores"), of("transfers"), krw("yesterday") + krw("today"))
    };
    let before = local.get("/v1/status").expect(200);
    assert!(before["activity"]["today"]["since"].is_string(), "{before}");
    assert_eq!(counts(&before), (0, 0, 0));
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    let submit = Request::new("POST", "/v1/leaderboards/b/scores").json(&json!({"player": "p", "score": 1}));
    local.send(&submit.clone().idempotent("k")).expect(200);
    assert!(local.send(&submit.idempotent("k")).is_replay());
    let scores =
        [("p", 0), ("q", 2)].map(|(player, score)| json!({"board": "b", "player": player, "score": score}));
    local.post("/v1/scores/batch", &json!({"scores": scores})).expect(200);
    let late = json!({"player": "p", "score": 1, "at": "2999-01-01T00:00:00Z"});
    local.post("/v1/leaderboards/b/scores", &late).refused(422, "at_in_future");
    // No scores: a ban, a correction and a removal.
    local.post("/v1/leaderboards/b/players/q/ban", &json!({})).expect(200);
    local.post("/v1/leaderboards/b/players/p/correct", &json!({"score": 7, "reason": "why"})).expect(200);
    local.delete("/v1/leaderboards/b/players/p").expect(204);
    let ann = local.post("/v1/members", &json!({"login_id": "ann", "name": "Ann"})).expect(201)["id"].clone();
    for amount in [5, 20] {
        local.post("/v1/deposits", &json!({"to": ann, "amount": amount})).expect(201);
    }
    let mut resp = RespClient::connect(server.resp());
    assert_eq!(resp.call(&["ZADD", "b", "1", "r", "2", "s"]), Reply::Integer(2));
    assert_eq!(resp.call(&["ZREM", "b", "r"]), Reply::Integer(1));
    // An import is no play: opening balances, transfers and scores from elsewhere.
    server.run(&["seed", "wallets", "--members", "2", "--transactions", "3"]).expect(0);
    server.run(&["seed", "scores", "b", "--players", "3"]).expect(0);
    assert_eq!(counts(&local.get("/v1/status").expect(200)), (5, 2, 25));
}

#[test]
fn a_head_is_a_get_without_its_body() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let get = client.get("/v1/leaderboards/b");
    let head = client.send(&Request::new("HEAD", "/v1/leaderboards/b"));
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), get.header("content-length"));
    // The connection is still in step.
    assert_eq!(client.get("/v1/leaderboards/b").expect(200), get.json());
}
