//! Ranks on many leaderboards at once: all of one player, and a list of them.

use super::{TALLY, create, place, submit, turn};
use serde_json::{Value, json};
use tally_testkit::{Request, TestTally};

fn ranks(client: &mut tally_testkit::Client, player: &str) -> Value {
    client.get(&format!("/v1/players/{player}/ranks")).expect(200)
}

#[test]
fn one_request_has_the_ranks_of_a_player_everywhere() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let weekly = json!([{"name": "weekly", "schedule": "0 0 * * 1"}]);
    create(&mut client, "plain", &json!({}));
    create(&mut client, "weeks", &json!({"periods": weekly}));
    create(&mut client, "only-weeks", &json!({"periods": weekly, "all_time": false}));
    create(&mut client, "sub", &json!({"subscore": "descending"}));
    create(&mut client, "without", &json!({}));
    for (player, score) in [("ann", 5), ("bob", 7)] {
        for board in ["plain", "weeks", "only-weeks"] {
            submit(&mut client, board, player, score);
        }
        let row = json!({"player": player, "score": score, "subscore": 1});
        client.post("/v1/leaderboards/sub/scores", &row).expect(200);
    }
    submit(&mut client, "without", "bob", 1);
    let answer = ranks(&mut client, "ann");
    assert_eq!(answer["player"], "ann");
    let items = answer["items"].as_array().expect("items");
    let names: Vec<&str> = items.iter().filter_map(|item| item["board"].as_str()).collect();
    assert_eq!((names, answer.get("next_cursor")), (vec!["only-weeks", "plain", "sub", "weeks"], None));
    for item in items {
        let board = item["board"].as_str().expect("a name");
        assert_eq!(item["banned"], false);
        let of_board = item["ranks"].as_array().expect("ranks");
        let count = if board == "weeks" { 2 } else { 1 };
        assert_eq!(of_board.len(), count, "{item}");
        for rank in of_board {
            // Each is that of its own request.
            let period = tally_testkit::http::segment(rank["period"].as_str().expect("a period"));
            let path = format!("/v1/leaderboards/{board}/players/ann?period={period}");
            let mut single = client.get(&path).expect(200);
            single.as_object_mut().expect("an object").retain(|name, _| name != "board" && name != "player");
            assert_eq!((rank, &rank["rank"]), (&single, &json!(2)), "{board}");
        }
    }
    // Page by page, and as strings.
    let path = "/v1/players/ann/ranks?limit=1";
    let (all, pages) = tally_testkit::audit::read_pages(&mut client, path, "items");
    assert_eq!((&all, pages.len() >= 4), (items, true));
    let strings = Request::new("GET", path).header("Tally-Int64", "string");
    assert_eq!(client.send(&strings).expect(200)["items"][0]["ranks"][0]["score"], "5");
    assert_eq!(ranks(&mut client, "nobody"), json!({"player": "nobody", "items": []}));
}

#[test]
fn a_ban_is_shown_with_what_it_hides() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    let weekly = json!([{"name": "weekly", "schedule": "0 0 * * 1"}]);
    create(&mut client, "plain", &json!({}));
    create(&mut client, "weeks", &json!({"periods": weekly}));
    for (board, player, score) in [("plain", "ann", 3), ("weeks", "ann", 5), ("weeks", "bob", 7)] {
        submit(&mut client, board, player, score);
    }
    client.send(&turn("weeks", "ann", "ban")).expect(200);
    client.send(&turn("weeks", "cid", "ban")).expect(200);
    let read = |server: &mut TestTally| {
        let mut client = server.client();
        let banned = ranks(&mut client, "ann")["items"].clone();
        assert_eq!((&banned[0]["board"], &banned[0]["banned"]), (&json!("plain"), &json!(false)));
        let hidden = &banned[1];
        assert_eq!((&hidden["board"], &hidden["banned"]), (&json!("weeks"), &json!(true)));
        let of_board = hidden["ranks"].as_array().expect("ranks");
        assert_eq!(of_board.len(), 2, "{hidden}");
        for rank in of_board {
            assert_eq!(
                (&rank["score"], &rank["rank"], &rank["total"]),
                (&json!(5), &Value::Null, &Value::Null)
            );
        }
        // A ban without a score.
        let cid = ranks(&mut client, "cid")["items"].clone();
        assert_eq!(cid, json!([{"board": "weeks", "banned": true, "ranks": []}]));
        client.get("/v1/players/cid").expect(200);
    };
    read(&mut server);
    server.kill9();
    server.restart();
    read(&mut server);
    let mut client = server.client();
    client.send(&turn("weeks", "ann", "restore")).expect(200);
    assert_eq!(ranks(&mut client, "ann")["items"][1]["ranks"][0]["rank"], 2);
}

#[test]
fn a_player_without_a_profile_is_known_by_its_scores() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.get("/v1/players/ann").refused(404, "player_not_found");
    create(&mut client, "plain", &json!({}));
    submit(&mut client, "plain", "ann", 3);
    assert_eq!(client.get("/v1/players/ann").expect(200), json!({"player": "ann"}));
    client.post("/v1/members", &json!({"login_id": "bob", "name": "Bob", "player": "b"})).expect(201);
    assert_eq!(client.get("/v1/players/b").expect(200), json!({"player": "b"}));
    client.delete("/v1/players/ann").expect(204);
    client.get("/v1/players/ann").refused(404, "player_not_found");
}

/// Lines of a file are the way to a score in a year that is over.
#[test]
fn a_player_is_known_by_a_score_in_a_closed_period() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    let yearly = json!([{"name": "yearly", "schedule": "0 0 1 1 *", "keep": 50}]);
    create(&mut client, "plain", &json!({}));
    create(&mut client, "years", &json!({"all_time": false, "periods": yearly}));
    submit(&mut client, "plain", "bob", 1);
    let path = server.data().join("old.csv");
    std::fs::write(&path, "day,who\n2020-05-05,ann\n2021-05-05,ann\n2021-05-05,bob\n")
        .expect("it is written");
    let path = path.to_str().expect("a path of text").to_owned();
    let columns = ["--player", "who", "--score-value", "1", "--at", "day"];
    server.run(&[&["import", "scores", "years", &path], &columns[..]].concat()).expect(0);
    for _ in 0..2 {
        assert_eq!(client.get("/v1/players/ann").expect(200), json!({"player": "ann"}));
        assert_eq!(ranks(&mut client, "ann")["items"], json!([]));
        let years = json!({"board": "years", "banned": false, "ranks": []});
        let kept = client.get("/v1/players/ann/ranks?closed=true").expect(200);
        assert_eq!(kept["items"], json!([years]));
        let kept = client.get("/v1/players/bob/ranks?closed=true").expect(200)["items"].clone();
        assert_eq!((&kept[0]["board"], &kept[0]["ranks"][0]["rank"]), (&json!("plain"), &json!(1)));
        assert_eq!((&kept[1], kept.get(2)), (&years, None));
        let page = client.get("/v1/players/bob/ranks?closed=true&limit=1").expect(200);
        let next = page["next_cursor"].as_str().expect("there is one more");
        let rest = client.get(&format!("/v1/players/bob/ranks?closed=true&cursor={next}")).expect(200);
        assert_eq!(rest["items"], json!([years]));
        let found = client.get("/v1/players?prefix=ann").expect(200);
        assert_eq!(found["items"], json!([{"player": "ann", "boards": []}]));
        client.get("/v1/players/nobody").refused(404, "player_not_found");
        server.terminate();
        server.restart();
        client = server.client();
    }
    client.delete("/v1/players/ann").expect(204);
    client.get("/v1/players/ann").refused(404, "player_not_found");
}

#[test]
fn each_of_many_ranks_is_answered_alone() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let yearly = json!([{"name": "yearly", "schedule": "0 0 1 1 *"}]);
    create(&mut client, "plain", &json!({}));
    create(&mut client, "years", &json!({"periods": yearly}));
    for (board, player, score) in [("plain", "ann", 3), ("years", "ann", 5), ("years", "bob", 7)] {
        submit(&mut client, board, player, score);
    }
    let row = |board: &str, player: &str| json!({"board": board, "player": player});
    let dated = |period: &str| json!({"board": "years", "player": "ann", "period": period});
    let asked = [
        row("plain", "ann"),
        row("years", "bob"),
        dated("yearly"),
        row("plain", "bob"),
        row("nowhere", "ann"),
        dated("yearly:1971-01-01"),
        row("plain", "ann"),
    ];
    let results = client.post("/v1/ranks", &json!({"ranks": asked})).expect(200)["results"].clone();
    assert_eq!(results[0], place(&mut client, "plain", "ann").expect(200));
    assert_eq!(results[1], place(&mut client, "years", "bob").expect(200));
    assert_eq!((&results[2]["rank"], &results[2]["total"]), (&json!(2), &json!(2)));
    assert!(results[2]["period"].as_str().expect("a name").starts_with("yearly:"), "{results}");
    for (at, code) in [(3, "player_not_ranked"), (4, "leaderboard_not_found"), (5, "period_not_found")] {
        assert_eq!(results[at]["error"]["code"], code, "{results}");
        assert_eq!(results[at]["board"], asked[at]["board"]);
    }
    assert_eq!(results[6], results[0]);
    assert_eq!(results.as_array().map(Vec::len), Some(asked.len()));
}

/// The rows of the request are within their bound, and each has what it needs.
#[test]
fn many_ranks_have_a_bound() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    create(&mut client, "plain", &json!({}));
    submit(&mut client, "plain", "ann", 3);
    let rows = |count: usize| json!({"ranks": vec![json!({"board": "plain", "player": "ann"}); count]});
    client.post("/v1/ranks", &rows(200)).expect(200);
    for (body, pointer) in [
        (rows(201), "/ranks"),
        (rows(0), "/ranks"),
        (json!({}), "/ranks"),
        (json!({"ranks": [{"board": "plain", "player": "ann"}, {"board": "plain"}]}), "/ranks/1/player"),
        (json!({"ranks": [{"board": "a@b", "player": "ann"}]}), "/ranks/0/board"),
        (json!({"ranks": [{"board": "a", "player": "ann", "period": 1}]}), "/ranks/0/period"),
        (json!({"ranks": [7]}), "/ranks/0"),
    ] {
        let refused = client.post("/v1/ranks", &body);
        refused.refused(400, "invalid_field");
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{}", refused.text());
    }
}
