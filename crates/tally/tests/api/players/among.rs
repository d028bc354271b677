//! `POST /v1/leaderboards/{board}/among`.

use super::{TALLY, create, submit, turn};
use serde_json::{Value, json};
use tally_testkit::{Client, Request, TestTally};

/// a, b and c share 30, d and e share 20, f has 10.
fn boards(client: &mut Client) {
    for ranking in ["ordinal", "competition", "dense"] {
        create(client, ranking, &json!({"ranking": ranking, "ties": "player"}));
        for (player, score) in [("f", 10), ("e", 20), ("c", 30), ("a", 30), ("d", 20), ("b", 30)] {
            submit(client, ranking, player, score);
        }
    }
}

fn ask(client: &mut Client, board: &str, players: &[&str]) -> Value {
    client.post(&format!("/v1/leaderboards/{board}/among"), &json!({"players": players})).expect(200)
}

/// (player, rank among them, rank on the board), as the entries come.
fn ranks(answer: &Value) -> Vec<(&str, u64, u64)> {
    let entries = answer["entries"].as_array().expect("entries");
    let number = |entry: &Value, name: &str| entry[name].as_u64().expect("a rank");
    let one = |entry| (number(entry, "rank"), number(entry, "overall_rank"));
    entries
        .iter()
        .map(|entry| {
            let (rank, overall) = one(entry);
            (entry["player"].as_str().expect("a name"), rank, overall)
        })
        .collect()
}

#[test]
fn ranks_among_them_are_of_the_board_s_kind() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    boards(&mut client);
    for (board, expected) in [
        ("ordinal", [("b", 1, 2), ("c", 2, 3), ("d", 3, 4), ("e", 4, 5), ("f", 5, 6)]),
        ("competition", [("b", 1, 1), ("c", 1, 1), ("d", 3, 4), ("e", 3, 4), ("f", 5, 6)]),
        ("dense", [("b", 1, 1), ("c", 1, 1), ("d", 2, 2), ("e", 2, 2), ("f", 3, 3)]),
    ] {
        // In no order, with one of them twice and strangers between.
        let answer = ask(&mut client, board, &["f", "no", "c", "e", "c", "b", "none", "d", "no"]);
        assert_eq!(ranks(&answer), expected, "{board}");
        let mut missing: Vec<&str> =
            answer["missing"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        missing.sort_unstable();
        assert_eq!(missing, ["no", "none"], "{board}: each once");
        assert_eq!(answer["period"], "all_time");
        assert_eq!(answer["board"], board);
    }
}

#[test]
fn an_entry_is_that_of_a_page_with_both_ranks() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    create(&mut client, "b", &json!({"subscore": "ascending", "order": "ascending", "ranking": "dense"}));
    for (player, score, subscore) in [("p", i64::MAX, 1), ("q", 5, 2), ("r", 5, 1)] {
        let row = json!({"player": player, "score": score, "subscore": subscore});
        client.post("/v1/leaderboards/b/scores", &row).expect(200);
    }
    let page = client.get("/v1/leaderboards/b/scores").expect(200);
    let mut expected: Vec<Value> = page["entries"].as_array().expect("entries")[1..].to_vec();
    for (at, entry) in expected.iter_mut().enumerate() {
        entry["overall_rank"] = entry["rank"].clone();
        entry["rank"] = json!(at + 1);
    }
    let answer = ask(&mut client, "b", &["p", "q"]);
    assert_eq!(answer["entries"], json!(expected));
    assert_eq!(answer["missing"], json!([]));
    let asked = Request::new("POST", "/v1/leaderboards/b/among").json(&json!({"players": ["p"]}));
    let texts = client.send(&asked.header("Tally-Int64", "string")).expect(200);
    assert_eq!(texts["entries"][0]["score"], json!(i64::MAX.to_string()));
}

#[test]
fn a_thousand_may_be_asked_for_at_once() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    create(&mut client, "b", &json!({}));
    let names: Vec<String> = (0..1_001).map(|at| format!("p{at}")).collect();
    let rows: Vec<Value> = (0..1_000)
        .map(|at: usize| json!({"board": "b", "player": names[at], "score": at * 7 % 1_000}))
        .collect();
    client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    let target = "/v1/leaderboards/b/among";
    let answer = client.post(target, &json!({"players": names[..1_000]})).expect(200);
    let page = client.get("/v1/leaderboards/b/scores?limit=1000").expect(200);
    let (entries, paged) = (answer["entries"].as_array().expect("all"), page["entries"].as_array());
    for (entry, paged) in entries.iter().zip(paged.expect("all")) {
        assert_eq!((&entry["player"], &entry["rank"]), (&paged["player"], &paged["rank"]));
        assert_eq!(entry["overall_rank"], paged["rank"]);
    }
    assert_eq!((entries.len(), &answer["missing"]), (1_000, &json!([])));
    client.post(target, &json!({"players": names})).refused(400, "invalid_field");
    // The bound is on the request, also where it comes to few players.
    client.post(target, &json!({"players": vec!["p1"; 1_001]})).refused(400, "invalid_field");
    assert_eq!(ask(&mut client, "b", &["p1"; 1_000])["entries"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_banned_player_is_missing() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    boards(&mut client);
    client.send(&turn("competition", "a", "ban")).expect(200);
    client.send(&turn("competition", "b", "ban")).expect(200);
    let answer = ask(&mut client, "competition", &["a", "b", "c", "d", "f"]);
    assert_eq!(ranks(&answer), [("c", 1, 1), ("d", 2, 2), ("f", 3, 4)]);
    let mut missing: Vec<&str> =
        answer["missing"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    missing.sort_unstable();
    assert_eq!(missing, ["a", "b"]);
}

#[test]
fn a_reader_may_ask_and_no_board_is_said_so() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    create(&mut local, "b", &json!({}));
    submit(&mut local, "b", "p", 1);
    let made = local.post("/v1/keys", &json!({"role": "reader"})).expect(201);
    let mut reader = server.client().with_key(made["key"].as_str().expect("a key"));
    assert_eq!(ranks(&ask(&mut reader, "b", &["p"])), [("p", 1, 1)]);
    reader
        .post("/v1/leaderboards/none/among", &json!({"players": ["p"]}))
        .refused(404, "leaderboard_not_found");
    let period = reader.post("/v1/leaderboards/b/among?period=all_time", &json!({"players": ["p"]}));
    period.expect(200);
    let period = reader.post("/v1/leaderboards/b/among?period=weekly", &json!({"players": ["p"]}));
    period.refused(404, "period_not_found");
    server.client().post("/v1/leaderboards/b/among", &json!({"players": ["p"]})).refused(401, "unauthorized");
}
