//! Retries: one effect and one answer per key, on every way of the retry.
//!
//! Sums count effects, so most boards here are sums. Not here: retries across kills under load (`kill.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tally_testkit::audit::read_pages;
use tally_testkit::{Client, GIVE_UP, Request, Response, TestTally};

const SCORES: &str = "/v1/leaderboards/b/scores";
const BATCH: &str = "/v1/scores/batch";

fn sum_board(server: &TestTally) -> Client {
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({"update": "sum"})).expect(201);
    client
}

fn add(key: &str, player: &str, score: i64) -> Request {
    Request::new("POST", SCORES).json(&json!({"player": player, "score": score})).idempotent(key)
}

#[track_caller]
fn score(client: &mut Client, player: &str) -> Value {
    client.get(&format!("/v1/leaderboards/b/players/{player}")).expect(200)["score"].clone()
}

#[track_caller]
fn replays(answer: &Response) -> Value {
    assert!(answer.is_replay(), "{answer:?}");
    answer.json()
}

#[test]
fn a_retry_is_the_first_answer_and_has_no_effect() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    let first = client.send(&add("k", "p", 5));
    assert!(!first.is_replay());
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(replays(&client.send(&add("k", "p", 5))), first.expect(200));
    assert_eq!(score(&mut client, "p"), 5);
    // Another key is another request, no key is none at all.
    client.send(&add("k2", "p", 5)).expect(200);
    client.post(SCORES, &json!({"player": "p", "score": 5})).expect(200);
    assert_eq!(score(&mut client, "p"), 15);
}

#[test]
fn a_replay_shows_the_record_of_then_and_the_ranks_of_now() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    client.send(&add("a", "p", 5)).expect(200);
    let second = client.send(&add("b", "p", 5)).expect(200);
    assert_eq!((&second["score"], &second["previous"]), (&json!(10), &json!({"score": 5, "rank": 1})));
    client.send(&add("c", "q", 7)).expect(200);
    client.send(&add("d", "r", 50)).expect(200);
    client.send(&add("e", "p", -9)).expect(200);
    let again = replays(&client.send(&add("b", "p", 5)));
    assert_eq!(
        (&again["score"], &again["at"], &again["changed"]),
        (&second["score"], &second["at"], &second["changed"])
    );
    assert_eq!(again["previous"]["score"], 5);
    assert_eq!(again["rank"], 3, "p has 1 now, behind r and q");
    client.delete("/v1/leaderboards/b/players/p").expect(204);
    assert_eq!(replays(&client.send(&add("b", "p", 5)))["rank"], Value::Null, "p is not ranked now");
}

#[test]
fn the_same_meaning_is_the_same_request() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    let post = |target: &str, body: &str| {
        Request::new("POST", target).body("application/json", body).idempotent("k")
    };
    client.send(&post(SCORES, "{\"player\":\"p\",\"score\":5,\"at\":\"2026-01-01T00:00:00Z\"}")).expect(200);
    for (target, body) in [
        (SCORES, "{ \"score\": 5 , \"at\":\"2026-01-01T00:00:00Z\", \"player\":\"\\u0070\"}"),
        (SCORES, "{\"player\":\"p\",\"score\":\"5\",\"at\":\"2026-01-01T00:00:00Z\"}"),
        ("/v1/leaderboards/%62/scores", "{\"player\":\"p\",\"score\":5,\"at\":\"2026-01-01T00:00:00Z\"}"),
    ] {
        replays(&client.send(&post(target, body)));
    }
    assert_eq!(score(&mut client, "p"), 5);
}

#[test]
fn another_spelling_of_a_path_is_the_same_request() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    for name in ["b", "v1", "goals"] {
        let spelled = name.bytes().fold(String::new(), |spelled, byte| format!("{spelled}%{byte:02x}"));
        let put = |name: &str| Request::new("PUT", format!("/v1/leaderboards/{name}")).json(&json!({}));
        client.send(&put(name).idempotent(&format!("put-{name}"))).expect(201);
        replays(&client.send(&put(&spelled).idempotent(&format!("put-{name}"))));
        let delete = |name: &str| Request::new("DELETE", format!("/v1/leaderboards/{name}"));
        client.send(&delete(&spelled).idempotent(&format!("delete-{name}"))).expect(204);
        replays(&client.send(&delete(name).idempotent(&format!("delete-{name}"))));
    }
}

#[test]
fn another_request_with_the_key_is_refused() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    client.put("/v1/leaderboards/other", &json!({})).expect(201);
    client.send(&add("k", "p", 5)).expect(200);
    let other = |method: &str, target: &str| Request::new(method, target).idempotent("k");
    let row = json!({"player": "p", "score": 5});
    let at = json!({"player": "p", "score": 5, "at": "2026-01-01T00:00:00Z"});
    for request in [
        add("k", "p", 6),
        add("k", "q", 5),
        other("POST", SCORES).json(&at),
        other("POST", "/v1/leaderboards/other/scores").json(&row),
        other("PUT", "/v1/leaderboards/b").json(&json!({"update": "sum"})),
        other("DELETE", "/v1/leaderboards/b"),
        other("DELETE", "/v1/leaderboards/b/players/p"),
        other("POST", "/v1/keys").json(&json!({"role": "admin"})),
        other("DELETE", "/v1/keys/abc"),
    ] {
        client.send(&request).refused(422, "idempotency_key_reused");
    }
    assert_eq!(score(&mut client, "p"), 5);
    assert_eq!(client.get("/v1/keys").expect(200)["items"], json!([]));
}

/// The reused key is the answer if two rejections hold at once: see the order of rejections.
#[test]
fn a_reused_key_is_told_before_what_else_is_wrong() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    client.send(&add("k", "p", 5)).expect(200);
    let nowhere = Request::new("POST", "/v1/leaderboards/none/scores");
    client
        .send(&nowhere.json(&json!({"player": "p", "score": 5})).idempotent("k"))
        .refused(422, "idempotency_key_reused");
    let float = Request::new("POST", SCORES).json(&json!({"player": "p", "score": 0.5})).idempotent("k");
    client.send(&float).refused(422, "idempotency_key_reused");
}

#[test]
fn the_first_answer_outlives_what_it_was_about() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    let first = client.send(&add("k", "p", 5)).expect(200);
    client.delete("/v1/leaderboards/b").expect(204);
    let again = replays(&client.send(&add("k", "p", 5)));
    assert_eq!((&again["score"], &again["changed"]), (&first["score"], &first["changed"]));
    client.send(&add("new", "p", 5)).refused(404, "leaderboard_not_found");
}

#[test]
fn refused_requests_are_not_stored() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.send(&add("k", "p", 5)).refused(404, "leaderboard_not_found");
    client.put("/v1/leaderboards/b", &json!({"update": "sum"})).expect(201);
    let bad = Request::new("POST", SCORES).json(&json!({"player": "p"})).idempotent("k");
    client.send(&bad).refused(400, "invalid_field");
    client.send(&add("max", "p", i64::MAX)).expect(200);
    client.send(&add("k", "p", 1)).refused(422, "score_overflow");
    client.send(&add("k", "p", -1)).expect(200);
    assert_eq!(score(&mut client, "p"), i64::MAX - 1);
}

#[test]
fn every_change_takes_a_key() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let put = Request::new("PUT", "/v1/leaderboards/b").json(&json!({"update": "sum"})).idempotent("put");
    let created = client.send(&put).expect(201);
    let again = client.send(&put);
    assert_eq!((again.status, replays(&again)), (201, created));
    client.send(&add("add", "p", 1)).expect(200);

    let remove = Request::new("DELETE", "/v1/leaderboards/b/players/p").idempotent("remove");
    client.send(&remove).expect(204);
    client.send(&add("add again", "p", 1)).refused(400, "invalid_parameter");
    client.send(&add("add-again", "p", 1)).expect(200);
    let again = client.send(&remove);
    assert_eq!((again.status, again.is_replay()), (204, true));
    assert_eq!(score(&mut client, "p"), 1, "the player who came back stays");

    let delete = Request::new("DELETE", "/v1/leaderboards/b").idempotent("delete");
    client.send(&delete).expect(204);
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let again = client.send(&delete);
    assert_eq!((again.status, again.is_replay()), (204, true));
    client.get("/v1/leaderboards/b").expect(200);
}

#[test]
fn a_key_is_made_and_revoked_once() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    let create =
        Request::new("POST", "/v1/keys").json(&json!({"role": "admin", "name": "n"})).idempotent("create");
    let created = local.send(&create).expect(201);
    let again = local.send(&create);
    assert_eq!((again.status, replays(&again)), (201, created.clone()));
    assert_eq!(local.get("/v1/keys").expect(200)["items"].as_array().map(Vec::len), Some(1));
    let revoke = format!("/v1/keys/{}?force=true", created["id"].as_str().expect("an id"));
    let revoke = Request::new("DELETE", revoke).idempotent("revoke");
    local.send(&revoke).expect(204);
    let again = local.send(&revoke);
    assert_eq!((again.status, again.is_replay()), (204, true));
}

#[test]
fn a_batch_stands_for_its_rows() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    let row = |player: &str, score: Value| json!({"board": "b", "player": player, "score": score});
    let batch = |rows: Vec<Value>| Request::new("POST", BATCH).json(&json!({"scores": rows})).idempotent("K");
    let first = client.send(&batch(vec![row("a", json!(1)), row("b", json!("x")), row("c", json!(3))]));
    assert!(!first.is_replay());
    let first = first.expect(200);
    assert_eq!(first["results"][1]["error"]["code"], "invalid_field");

    // The refused row is corrected under the same key, the others are replays.
    let second = client.send(&batch(vec![row("a", json!(1)), row("b", json!(2)), row("c", json!(3))]));
    assert!(!second.is_replay(), "one row was new");
    let second = second.expect(200);
    let replayed: Vec<bool> = (0..3).map(|at| second["results"][at]["replayed"] == json!(true)).collect();
    assert_eq!(replayed, [true, false, true]);
    assert_eq!(second["results"][1].get("replayed"), None);

    let third = client.send(&batch(vec![row("a", json!(1)), row("b", json!(2)), row("c", json!(3))]));
    assert!(third.is_replay(), "every row was a replay");
    for (player, sum) in [("a", 1), ("b", 2), ("c", 3)] {
        assert_eq!(score(&mut client, player), sum);
    }
    // K#1 is the second row's key, through every listener.
    assert_eq!(replays(&client.send(&add("K#1", "b", 2)))["score"], 2);
    client.send(&add("K#0", "a", 2)).refused(422, "idempotency_key_reused");
    let with_id = json!({"scores": [{"board": "b", "player": "c", "score": 3, "id": "K#2"}]});
    let by_id = client.post(BATCH, &with_id);
    assert_eq!(replays(&by_id)["results"][0]["replayed"], json!(true));
    // K itself was never used.
    client.send(&add("K", "z", 1)).expect(200);
}

#[test]
fn a_row_id_is_a_key_of_the_same_kind() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    let row = |id: &str, player: &str, score: i64| json!({"board": "b", "player": player, "score": score, "id": id});
    client.send(&add("single", "a", 1)).expect(200);
    let rows = json!({"scores": [row("single", "a", 1), row("single", "a", 2), row("new", "b", 1), row("new", "b", 1)]});
    let done = client.send(&Request::new("POST", BATCH).json(&rows).idempotent("unused")).expect(200);
    assert_eq!(done["results"][0]["replayed"], json!(true));
    assert_eq!(done["results"][1]["error"]["code"], "idempotency_key_reused");
    assert_eq!(done["results"][1]["id"], "single");
    assert_eq!(done["results"][1]["idempotency_key"], "single", "the present name");
    assert_eq!((&done["results"][2]["score"], done["results"][2].get("replayed")), (&json!(1), None));
    assert_eq!((&done["results"][3]["score"], &done["results"][3]["replayed"]), (&json!(1), &json!(true)));
    assert_eq!(score(&mut client, "a"), 1);
    assert_eq!(score(&mut client, "b"), 1, "the same id twice in a batch has one effect");
    replays(&client.send(&add("new", "b", 1)));
    client.send(&add("unused#0", "c", 1)).expect(200);
}

#[test]
fn keys_outlive_a_restart_and_a_kill() {
    let mut server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    let first = client.send(&add("k", "p", 5)).expect(200);
    let batch = json!({"scores": [{"board": "b", "player": "q", "score": 1, "idempotency_key": "row"}]});
    client.post(BATCH, &batch).expect(200);
    for kill in [false, true] {
        if kill {
            server.kill9();
        } else {
            server.terminate();
        }
        server.restart();
        let mut client = server.client();
        assert_eq!(replays(&client.send(&add("k", "p", 5))), first);
        replays(&client.post(BATCH, &batch));
        client.send(&add("k", "p", 6)).refused(422, "idempotency_key_reused");
        assert_eq!((score(&mut client, "p"), score(&mut client, "q")), (json!(5), json!(1)));
    }
}

#[test]
fn scopes_do_not_meet() {
    let server = TestTally::start(TALLY);
    sum_board(&server).send(&add("k", "p", 1)).expect(200);
    let mut local = server.local();
    assert!(
        local.send(&add("k", "p", 1)).is_replay(),
        "this machine is one caller, with its token or without"
    );
    let key = |client: &mut Client| {
        let created = client.post("/v1/keys", &json!({"role": "server"})).expect(201);
        created["key"].as_str().expect("it is shown once").to_owned()
    };
    for key in [key(&mut local), key(&mut local)] {
        let mut client = server.client().with_key(&key);
        assert!(!client.send(&add("k", "p", 1)).is_replay(), "another caller's key is another key");
        assert!(client.send(&add("k", "p", 1)).is_replay());
    }
    assert_eq!(score(&mut local, "p"), 3);
}

#[test]
fn a_storm_of_equal_requests_has_one_effect() {
    let server = TestTally::start(TALLY);
    sum_board(&server).send(&add("before", "p", 1)).expect(200);
    for round in 0..3 {
        let key = format!("storm-{round}");
        let answers: Vec<Response> = std::thread::scope(|scope| {
            let storm = (0..100).map(|_| {
                let (mut client, key) = (server.client(), key.clone());
                scope.spawn(move || {
                    loop {
                        let answer = client.send(&add(&key, "p", 10));
                        if answer.status != 409 {
                            return answer;
                        }
                        answer.refused(409, "idempotency_in_progress");
                        assert!(answer.header("retry-after").is_some(), "{answer:?}");
                        std::thread::yield_now();
                    }
                })
            });
            let storm: Vec<_> = storm.collect();
            storm.into_iter().map(|thread| thread.join().expect("it is answered")).collect()
        });
        let first: Vec<&Response> = answers.iter().filter(|answer| !answer.is_replay()).collect();
        assert_eq!(first.len(), 1, "one of them did it");
        for answer in &answers {
            assert_eq!(answer.expect(200), first[0].json());
        }
        assert_eq!(score(&mut server.client(), "p"), json!(1 + 10 * (round + 1)));
    }
}

/// An API key made under a forgotten idempotency key is another API key.
#[test]
fn an_api_key_is_made_again_after_its_request_is_forgotten() {
    let server = TestTally::start_set(TALLY, &[("TALLY_IDEMPOTENCY_KEEP", "1s")]);
    let create =
        Request::new("POST", "/v1/keys").json(&json!({"role": "reader", "name": "n"})).idempotent("create");
    let mut local = server.local();
    let first = local.send(&create).expect(201);
    let begun = Instant::now();
    let second = loop {
        let answer = local.send(&create);
        let key = answer.expect(201);
        if !answer.is_replay() {
            break key;
        }
        assert_eq!(key, first);
        assert!(begun.elapsed() < GIVE_UP, "it is never forgotten");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_ne!((&second["id"], &second["key"]), (&first["id"], &first["key"]));
    for key in [&first, &second] {
        let token = key["key"].as_str().expect("a token");
        server.client().with_key(token).get("/v1/leaderboards").expect(200);
    }
    let again = local.send(&create);
    assert!(!again.is_replay() || again.json() == second, "{}", again.text());
}

#[test]
fn keys_have_a_form() {
    let server = TestTally::start(TALLY);
    let mut client = sum_board(&server);
    client.send(&add(&"x".repeat(255), "p", 1)).expect(200);
    for key in ["", "a b", &"x".repeat(256), "ä"] {
        client.send(&add(key, "p", 1)).refused(400, "invalid_parameter");
    }
    client.send(&add("a", "p", 1).idempotent("b")).refused(400, "invalid_parameter");
    let (entries, _) = read_pages(&mut client, &format!("{SCORES}?limit=10"), "entries");
    assert_eq!(entries.len(), 1, "nothing was written for a bad key");
    // With the index of the last row behind it, the longest key is one too.
    let body = json!({"scores": vec![json!({"board": "b", "player": "q", "score": 1}); 1_000]});
    let long = Request::new("POST", BATCH).json(&body).idempotent(&"x".repeat(255));
    assert!(!client.send(&long).is_replay());
    replays(&client.send(&long));
    assert_eq!(score(&mut client, "q"), 1_000);
}
