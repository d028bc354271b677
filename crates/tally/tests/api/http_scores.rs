//! Scores over HTTP: submit, batch, page, player, around, remove and imports, with whole answers.
//!
//! The model has the expected reply of a board where a case is not written out. Not here: retries (`idempotency.rs`), pages
//! under concurrent writes (`pages.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::http::segment;
use tally_testkit::{Client, Request, TestTally};

const SCORES: &str = "/v1/leaderboards/b/scores";

fn at(second: u32) -> String {
    format!("2026-01-01T00:00:{second:02}.000000Z")
}

fn board(server: &TestTally, definition: &Value) -> Client {
    let mut client = server.client();
    client.put("/v1/leaderboards/b", definition).expect(201);
    client
}

/// Submits with an instant, so that the answer can be compared whole.
#[track_caller]
fn submit(client: &mut Client, player: &str, score: &Value, second: u32) -> Value {
    client.post(SCORES, &json!({"player": player, "score": score, "at": at(second)})).expect(200)
}

#[track_caller]
fn entries(client: &mut Client, query: &str) -> Vec<(u64, String)> {
    let page = client.get(&format!("{SCORES}?{query}")).expect(200);
    let entries = page["entries"].as_array().expect("entries").clone();
    let one = |entry: &Value| {
        (entry["rank"].as_u64().expect("a rank"), entry["player"].as_str().expect("a name").to_owned())
    };
    entries.iter().map(one).collect()
}

fn players(entries: &[(u64, String)]) -> String {
    entries.iter().map(|(_, player)| player.as_str()).collect()
}

#[test]
fn a_submit_says_before_and_after() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({}));
    assert_eq!(
        submit(&mut client, "ann", &json!(10), 1),
        json!({"board": "b", "period": "all_time", "player": "ann", "score": 10, "at": at(1), "rank": 1,
            "changed": true, "previous": null})
    );
    submit(&mut client, "bob", &json!(20), 2);
    assert_eq!(
        submit(&mut client, "ann", &json!(5), 3),
        json!({"board": "b", "period": "all_time", "player": "ann", "score": 10, "at": at(1), "rank": 2,
            "changed": false, "previous": {"score": 10, "rank": 2}}),
        "a worse score changes nothing, its instant neither"
    );
    assert_eq!(
        submit(&mut client, "ann", &json!(30), 4),
        json!({"board": "b", "period": "all_time", "player": "ann", "score": 30, "at": at(4), "rank": 1,
            "changed": true, "previous": {"score": 10, "rank": 2}})
    );
    assert_eq!(submit(&mut client, "ann", &json!(30), 5)["changed"], false);
}

#[test]
fn latest_and_sum_have_their_own_rules() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    for (name, update) in [("l", "latest"), ("s", "sum")] {
        client.put(&format!("/v1/leaderboards/{name}"), &json!({"update": update})).expect(201);
    }
    let mut ask = |board: &str, score: i64, second: u32| {
        let body = json!({"player": "p", "score": score, "at": at(second)});
        let answer = client.post(&format!("/v1/leaderboards/{board}/scores"), &body).expect(200);
        (answer["score"].clone(), answer["at"].clone(), answer["changed"].clone())
    };
    let is = |score: i64, second: u32, changed: bool| (json!(score), json!(at(second)), json!(changed));
    assert_eq!(ask("l", 10, 5), is(10, 5, true));
    assert_eq!(ask("l", 3, 4), is(10, 5, false), "an older one changes nothing");
    assert_eq!(ask("l", 3, 5), is(3, 5, true), "of the same instant the new one");
    assert_eq!(ask("l", 3, 9), is(3, 5, false), "the same score is no change");
    assert_eq!(ask("s", 10, 5), is(10, 5, true));
    assert_eq!(ask("s", 4, 3), is(14, 5, true), "the instant never moves back");
    assert_eq!(ask("s", -15, 6), is(-1, 6, true));
    assert_eq!(ask("s", 0, 9), is(-1, 6, false));
}

#[test]
fn int64_is_exact_to_its_ends() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({"update": "sum"}));
    for (player, score) in [("max", i64::MAX), ("min", i64::MIN), ("odd", 9_007_199_254_740_993)] {
        assert_eq!(submit(&mut client, player, &json!(score), 1)["score"], json!(score));
        assert_eq!(submit(&mut client, player, &json!("0"), 2)["previous"]["score"], json!(score));
    }
    for (player, score) in [("max", 1), ("min", -1)] {
        client.post(SCORES, &json!({"player": player, "score": score})).refused(422, "score_overflow");
    }
    let strings = Request::new("GET", SCORES).header("Tally-Int64", "string");
    let page = client.send(&strings).expect(200);
    let scores: Vec<&Value> =
        page["entries"].as_array().expect("entries").iter().map(|one| &one["score"]).collect();
    assert_eq!(scores, ["9223372036854775807", "9007199254740993", "-9223372036854775808"]);
    assert_eq!(page["entries"][0]["rank"], 1, "ranks and totals stay numbers");
    let player = Request::new("GET", "/v1/leaderboards/b/players/odd").header("Tally-Int64", "string");
    assert_eq!(client.send(&player).expect(200)["score"], "9007199254740993");
    let body = json!({"player": "odd", "score": "-9007199254740994"});
    let answer =
        client.send(&Request::new("POST", SCORES).json(&body).header("Tally-Int64", "string")).expect(200);
    assert_eq!((&answer["score"], &answer["previous"]["score"]), (&json!("-1"), &json!("9007199254740993")));
    let bounded = entries(&mut client, "min=-9223372036854775808&max=-1");
    assert_eq!(bounded, [(2, "odd".to_owned()), (3, "min".to_owned())]);
}

#[test]
fn float64_keeps_infinities_and_every_bit() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({"score": "float64", "update": "latest"}));
    submit(&mut client, "up", &json!("inf"), 1);
    submit(&mut client, "down", &json!("-inf"), 1);
    submit(&mut client, "zero", &json!(-0.0), 1);
    submit(&mut client, "whole", &json!(3), 1);
    let page = client.get(SCORES).expect(200);
    let scores: Vec<&Value> =
        page["entries"].as_array().expect("entries").iter().map(|one| &one["score"]).collect();
    assert_eq!(scores, [&json!("inf"), &json!(3.0), &json!(0.0), &json!("-inf")]);
    assert!(client.get("/v1/leaderboards/b/players/zero").text().contains("\"score\":0.0"), "one zero only");
    assert_eq!(players(&entries(&mut client, "min=0&max=inf")), "upwholezero");
    assert_eq!(players(&entries(&mut client, "max=-1e308")), "down");

    let mut rng = tally_testkit::Rng::of("floats");
    for round in 0..400 {
        let value = f64::from_bits(rng.bits());
        if !value.is_finite() {
            continue;
        }
        // The shortest decimal that reads back as this double, which a JSON library must not round.
        let text = format!("{value:e}");
        let body = format!("{{\"player\":\"p\",\"score\":{text},\"at\":\"{}\"}}", at(1));
        let answer = client.send(&Request::new("POST", SCORES).body("application/json", body));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let written = answer.text();
        let written = written.split("\"score\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
        let read: f64 = written.expect("a score").parse().expect("a number");
        assert_eq!(read.to_bits(), value.to_bits(), "round {round}: {text} came back as {read:e}");
    }
}

#[test]
fn sums_of_floats_never_become_nothing() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({"score": "float64", "update": "sum"}));
    submit(&mut client, "p", &json!("inf"), 1);
    client.post(SCORES, &json!({"player": "p", "score": "-inf"})).refused(422, "score_overflow");
    assert_eq!(submit(&mut client, "q", &json!(0.5), 1)["score"], json!(0.5));
    assert_eq!(submit(&mut client, "q", &json!(0.25), 2)["score"], json!(0.75));
}

#[test]
fn ties_have_four_orders_and_ranks_three_kinds() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let rows = [("c", 5, 2), ("a", 5, 3), ("b", 5, 1), ("x", 9, 4), ("y", 1, 5), ("d", 5, 2)];
    for (name, definition, expected) in [
        ("1", json!({"ties": "first"}), "x1 b2 c3 d4 a5 y6"),
        ("2", json!({"ties": "last"}), "x1 a2 c3 d4 b5 y6"),
        ("3", json!({"ties": "player"}), "x1 a2 b3 c4 d5 y6"),
        ("4", json!({"ties": "player_reversed"}), "x1 d2 c3 b4 a5 y6"),
        ("5", json!({"ranking": "competition"}), "x1 b2 c2 d2 a2 y6"),
        ("6", json!({"ranking": "dense"}), "x1 b2 c2 d2 a2 y3"),
        ("7", json!({"order": "ascending", "ranking": "competition"}), "y1 b2 c2 d2 a2 x6"),
    ] {
        client.put(&format!("/v1/leaderboards/{name}"), &definition).expect(201);
        let target = format!("/v1/leaderboards/{name}/scores");
        for (player, score, second) in rows {
            client.post(&target, &json!({"player": player, "score": score, "at": at(second)})).expect(200);
        }
        let page = client.get(&target).expect(200);
        let shown: Vec<String> = page["entries"]
            .as_array()
            .expect("entries")
            .iter()
            .map(|one| format!("{}{}", one["player"].as_str().expect("a name"), one["rank"]))
            .collect();
        assert_eq!(shown.join(" "), expected, "{definition}");
    }
}

#[test]
fn a_subscore_breaks_ties_and_counts_for_shared_ranks() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({"subscore": "ascending", "ranking": "dense"}));
    for (player, score, subscore) in [("a", 5, 9), ("b", 5, 3), ("c", 5, 3), ("d", 7, 99)] {
        let body = json!({"player": player, "score": score, "subscore": subscore, "at": at(1)});
        assert_eq!(client.post(SCORES, &body).expect(200)["subscore"], subscore);
    }
    let shown = entries(&mut client, "");
    assert_eq!(shown.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [1, 2, 2, 3]);
    assert_eq!(players(&shown), "dbca");
    let better =
        client.post(SCORES, &json!({"player": "a", "score": 5, "subscore": -1, "at": at(2)})).expect(200);
    assert_eq!(
        better,
        json!({"board": "b", "period": "all_time", "player": "a", "score": 5, "subscore": -1, "at": at(2), "rank": 2,
            "changed": true, "previous": {"score": 5, "subscore": 9, "rank": 3}})
    );
    for (body, pointer) in [
        (json!({"player": "a", "score": 5}), "/subscore"),
        (json!({"player": "a", "score": 5, "subscore": 1.5}), "/subscore"),
    ] {
        let answer = client.post(SCORES, &body);
        answer.refused(400, "invalid_field");
        assert_eq!(answer.json()["errors"][0]["pointer"], pointer, "{body}");
    }
}

#[test]
fn pages_by_offset_range_and_from_the_worst() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({"ties": "player"}));
    for (player, score) in [("a", 60), ("b", 50), ("c", 40), ("d", 30), ("e", 20), ("f", 10)] {
        submit(&mut client, player, &json!(score), 1);
    }
    for (query, shown, first_rank) in [
        ("", "abcdef", 1),
        ("limit=2", "ab", 1),
        ("offset=4", "ef", 5),
        ("offset=1&limit=2", "bc", 2),
        ("offset=6", "", 0),
        ("offset=18446744073709551615", "", 0),
        ("order=worst", "fedcba", 6),
        ("order=best&limit=1", "a", 1),
        ("order=worst&limit=2&offset=1", "ed", 5),
        ("min=20&max=40", "cde", 3),
        ("min=21&max=39", "d", 4),
        ("max=10", "f", 6),
        ("min=61", "", 0),
        ("min=40&max=20", "", 0),
        ("min=20&max=50&order=worst", "edcb", 5),
        ("min=20&max=50&limit=2&offset=1", "cd", 3),
        ("period=all_time", "abcdef", 1),
    ] {
        let page = entries(&mut client, query);
        assert_eq!(players(&page), shown, "{query}");
        assert_eq!(page.first().map_or(0, |(rank, _)| *rank), first_rank, "{query}");
        let whole = client.get(&format!("{SCORES}?{query}")).expect(200);
        assert_eq!((&whole["total"], &whole["period"]), (&json!(6), &json!("all_time")), "{query}");
    }
    let page = client.get(&format!("{SCORES}?limit=1")).expect(200);
    assert_eq!(page["entries"][0], json!({"rank": 1, "player": "a", "score": 60, "at": at(1)}));
    assert!(page["next_cursor"].is_string());
    assert_eq!(
        client.get(&format!("{SCORES}?limit=6")).expect(200).get("next_cursor"),
        None,
        "no page follows"
    );
    client.get(&format!("{SCORES}?period=weekly")).refused(404, "period_not_found");
}

#[test]
fn cursors_keep_their_range_and_direction() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({}));
    for score in 0..50 {
        submit(&mut client, &format!("p{score:02}"), &json!(score / 3), 1);
    }
    for query in ["min=3&max=12", "min=3&max=12&order=worst", "order=worst", "min=4"] {
        let target = format!("{SCORES}?limit=7&{query}");
        let (walked, _) = tally_testkit::audit::read_pages(&mut client, &target, "entries");
        let whole = client.get(&format!("{SCORES}?limit=1000&{query}")).expect(200);
        assert_eq!(json!(walked), whole["entries"], "{query}");
    }
}

#[test]
fn one_player_s_place() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({"ranking": "competition"}));
    for (player, score) in [("a", 3), ("b/ü", 2), ("c", 2), ("x", 9), ("y", 1), ("z", 0)] {
        submit(&mut client, player, &json!(score), 1);
    }
    let place = |player: &str| format!("/v1/leaderboards/b/players/{}", segment(player));
    assert_eq!(
        client.get(&place("b/ü")).expect(200),
        json!({"board": "b", "period": "all_time", "player": "b/ü", "score": 2, "at": at(1), "rank": 3, "total": 6,
            "percentile": 66.67})
    );
    for (player, percentile) in [("x", 100.0), ("a", 83.33), ("c", 66.67), ("y", 33.33), ("z", 16.67)] {
        assert_eq!(client.get(&place(player)).expect(200)["percentile"], json!(percentile), "{player}");
    }
    client.get(&place("nobody")).refused(404, "player_not_ranked");
    client.get("/v1/leaderboards/none/players/a").refused(404, "leaderboard_not_found");
}

#[test]
fn around_a_player_is_clipped_at_the_ends() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({"ties": "player"}));
    for (at, player) in "abcdefghijklmnopq".chars().enumerate() {
        submit(&mut client, &player.to_string(), &json!(100 - at / 2), 1);
    }
    for (player, query, shown) in [
        ("i", "", "defghijklmn"),
        ("a", "?above=3&below=1", "ab"),
        ("q", "?above=2", "opq"),
        ("i", "?above=0&below=0", "i"),
        ("i", "?above=100&below=100", "abcdefghijklmnopq"),
        ("c", "?below=0", "abc"),
    ] {
        let answer = client.get(&format!("/v1/leaderboards/b/players/{player}/around{query}")).expect(200);
        let entries = answer["entries"].as_array().expect("entries");
        let names: String = entries.iter().filter_map(|one| one["player"].as_str()).collect();
        assert_eq!(names, shown, "{player}{query}");
        for entry in entries {
            assert_eq!(
                entry["rank"],
                json!(
                    "abcdefghijklmnopq".find(entry["player"].as_str().expect("a name")).expect("it is there")
                        + 1
                )
            );
        }
        assert_eq!((&answer["total"], answer.get("next_cursor")), (&json!(17), None));
    }
    client.get("/v1/leaderboards/b/players/z/around").refused(404, "player_not_ranked");
}

#[test]
fn a_removed_player_is_gone_and_may_come_back() {
    let mut server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({}));
    for (player, score) in [("a", 3), ("b", 2), ("c", 1)] {
        submit(&mut client, player, &json!(score), 1);
    }
    let removed = client.delete("/v1/leaderboards/b/players/a");
    assert_eq!((removed.status, removed.body.len()), (204, 0));
    client.delete("/v1/leaderboards/b/players/a").refused(404, "player_not_ranked");
    client.get("/v1/leaderboards/b/players/a").refused(404, "player_not_ranked");
    assert_eq!(entries(&mut client, ""), [(1, "b".to_owned()), (2, "c".to_owned())]);
    server.kill9();
    server.restart();
    let mut client = server.client();
    client.get("/v1/leaderboards/b/players/a").refused(404, "player_not_ranked");
    let back = submit(&mut client, "a", &json!(0), 2);
    assert_eq!((&back["rank"], &back["previous"], &back["changed"]), (&json!(3), &Value::Null, &json!(true)));
}

#[test]
fn instants_of_the_server_strictly_increase() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({"update": "latest"}));
    let mut instants = Vec::new();
    for score in 0..20 {
        let answer = client.post(SCORES, &json!({"player": "p", "score": score})).expect(200);
        instants.push(answer["at"].as_str().expect("an instant").to_owned());
        let rows: Vec<Value> =
            (0..10).map(|row| json!({"board": "b", "player": format!("p{row}"), "score": score})).collect();
        let answer = client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
        for row in answer["results"].as_array().expect("results") {
            instants.push(row["at"].as_str().expect("an instant").to_owned());
        }
    }
    assert!(instants.is_sorted_by(|left, right| left < right), "{instants:?}");
}

#[test]
fn a_caller_may_say_when() {
    let server = TestTally::start(TALLY);
    let mut client = board(&server, &json!({"update": "latest"}));
    let mut when =
        |player: &str, at: &str| client.post(SCORES, &json!({"player": player, "score": 1, "at": at}));
    assert_eq!(when("a", "1872-11-30T15:00:00+01:00").expect(200)["at"], "1872-11-30T14:00:00.000000Z");
    assert_eq!(when("b", "2026-01-01T00:00:00.1234569Z").expect(200)["at"], "2026-01-01T00:00:00.123456Z");
    when("c", "9999-01-01T00:00:00Z").refused(422, "at_in_future");
}
