//! `ban` and `restore`: a banned player plays on and is in no ranking.

use super::{TALLY, check_replay, check_standing, create, end_and_start, place, submit, turn};
use serde_json::{Value, json};
use tally_testkit::{Client, Request, TestTally};

/// Three players, with `b` in the middle banned.
fn with_banned_player(server: &TestTally) -> Client {
    let mut client = server.client();
    for board in ["b", "other"] {
        create(&mut client, board, &json!({"ties": "player"}));
        for (player, score) in [("a", 30), ("b", 20), ("c", 10)] {
            submit(&mut client, board, player, score);
        }
    }
    let answer = client.send(&turn("b", "b", "ban")).expect(200);
    assert_eq!(answer, json!({"board": "b", "player": "b", "banned": true}));
    client
}

#[track_caller]
fn check_hidden(client: &mut Client) {
    check_standing(client, "b", &["a", "c"]);
    check_standing(client, "other", &["a", "b", "c"]);
    place(client, "b", "b").refused(404, "player_not_ranked");
    client.get("/v1/leaderboards/b/players/b/around").refused(404, "player_not_ranked");
    let last = place(client, "b", "c").expect(200);
    assert_eq!((&last["rank"], &last["total"], &last["percentile"]), (&json!(2), &json!(2), &json!(50.0)));
    let around = client.get("/v1/leaderboards/b/players/c/around?above=1").expect(200);
    assert_eq!(around["entries"][0]["player"], "a", "{around}");
    assert_eq!(around["total"], 2);
}

#[test]
fn a_banned_player_is_on_no_page_and_counts_for_no_rank() {
    let server = TestTally::start(TALLY);
    let mut client = with_banned_player(&server);
    check_hidden(&mut client);
    for query in ["order=worst", "min=15", "max=25", "min=20&max=20", "offset=1", "limit=1"] {
        let page = client.get(&format!("/v1/leaderboards/b/scores?{query}")).expect(200);
        assert!(!page["entries"].to_string().contains("\"b\""), "{query}: {page}");
        assert_eq!(page["total"], 2, "{query}");
    }
    let (items, _) =
        tally_testkit::audit::read_pages(&mut client, "/v1/leaderboards/b/scores?limit=1", "entries");
    let ranks: Vec<&Value> = items.iter().map(|entry| &entry["rank"]).collect();
    assert_eq!(ranks, [&json!(1), &json!(2)], "pages skip it without a gap");
}

#[test]
fn submits_of_a_banned_player_are_stored_and_seen_after_restore() {
    let server = TestTally::start(TALLY);
    let mut client = with_banned_player(&server);
    let worse = submit(&mut client, "b", "b", 5);
    assert_eq!(
        (&worse["rank"], &worse["score"], &worse["changed"]),
        (&Value::Null, &json!(20), &json!(false))
    );
    assert_eq!(worse["previous"], json!({"score": 20, "rank": null}));
    let better = submit(&mut client, "b", "b", 40);
    assert_eq!(
        (&better["rank"], &better["score"], &better["changed"]),
        (&Value::Null, &json!(40), &json!(true))
    );
    assert_eq!(better["previous"], json!({"score": 20, "rank": null}));
    let rows = json!({"scores": [{"board": "b", "player": "b", "score": 50}, {"board": "b", "player": "c", "score": 11}]});
    let rows = client.post("/v1/scores/batch", &rows).expect(200);
    assert_eq!((&rows["results"][0]["rank"], &rows["results"][1]["rank"]), (&Value::Null, &json!(2)));
    assert_eq!(rows["results"][0]["previous"], json!({"score": 40, "rank": null}));
    check_hidden(&mut client);
    let answer = client.send(&turn("b", "b", "restore")).expect(200);
    assert_eq!(answer, json!({"board": "b", "player": "b", "banned": false}));
    check_standing(&mut client, "b", &["b", "a", "c"]);
    let shown = place(&mut client, "b", "b").expect(200);
    assert_eq!((&shown["score"], &shown["rank"]), (&json!(50), &json!(1)));
    assert_eq!(shown["at"], rows["results"][0]["at"]);
}

#[test]
fn a_player_without_a_score_can_be_banned() {
    let mut server = TestTally::start(TALLY);
    let mut client = with_banned_player(&server);
    client.send(&turn("b", "new", "ban")).expect(200);
    client.send(&turn("b", "restored", "restore")).expect(200);
    let first = submit(&mut client, "b", "new", 99);
    assert_eq!((&first["rank"], &first["previous"]), (&Value::Null, &Value::Null));
    assert_eq!(submit(&mut client, "b", "restored", 1)["rank"], 3);
    client.delete("/v1/leaderboards/b/players/restored").expect(204);
    check_hidden(&mut client);
    client = end_and_start(&mut server, true);
    check_hidden(&mut client);
    client.send(&turn("b", "new", "restore")).expect(200);
    check_standing(&mut client, "b", &["new", "a", "c"]);
}

#[test]
fn it_outlives_a_restart_and_a_kill() {
    let mut server = TestTally::start(TALLY);
    let mut client = with_banned_player(&server);
    for kill in [false, true] {
        submit(&mut client, "b", "b", if kill { 26 } else { 25 });
        client = end_and_start(&mut server, kill);
        check_hidden(&mut client);
        assert_eq!(submit(&mut client, "b", "b", 1)["rank"], Value::Null);
    }
    client.send(&turn("b", "b", "restore")).expect(200);
    for kill in [true, false] {
        client = end_and_start(&mut server, kill);
        check_standing(&mut client, "b", &["a", "b", "c"]);
        assert_eq!(place(&mut client, "b", "b").expect(200)["score"], 26);
    }
}

#[test]
fn twice_is_once_and_a_replay_changes_nothing_again() {
    let mut server = TestTally::start(TALLY);
    let mut client = with_banned_player(&server);
    client.send(&turn("b", "b", "ban")).expect(200);
    check_hidden(&mut client);
    let ban = turn("b", "a", "ban").idempotent("ban");
    let banned = client.send(&ban);
    assert!(!banned.is_replay());
    check_standing(&mut client, "b", &["c"]);
    client.send(&turn("b", "a", "restore").idempotent("ban")).refused(422, "idempotency_key_reused");
    client.send(&turn("other", "a", "ban").idempotent("ban")).refused(422, "idempotency_key_reused");
    client.send(&turn("b", "c", "ban").idempotent("ban")).refused(422, "idempotency_key_reused");
    let restore = turn("b", "a", "restore").idempotent("restore");
    let restored = client.send(&restore);
    restored.expect(200);
    check_replay(&client.send(&ban), 200, &banned);
    check_hidden(&mut client);
    // `{}` is as good as no body.
    check_replay(&client.send(&restore.clone().json(&json!({}))), 200, &restored);
    client = end_and_start(&mut server, true);
    check_replay(&client.send(&ban), 200, &banned);
    check_hidden(&mut client);
}

#[test]
fn a_replayed_submit_shows_the_rank_of_now() {
    let server = TestTally::start(TALLY);
    let mut client = with_banned_player(&server);
    let add = |player: &str, key: &str| {
        let row = json!({"player": player, "score": 35});
        Request::new("POST", "/v1/leaderboards/b/scores").json(&row).idempotent(key)
    };
    assert_eq!(client.send(&add("c", "c")).expect(200)["rank"], 1);
    client.send(&add("b", "b")).expect(200);
    client.send(&turn("b", "c", "ban")).expect(200);
    let again = client.send(&add("c", "c"));
    assert!(again.is_replay());
    let again = again.expect(200);
    assert_eq!((&again["rank"], &again["previous"]), (&Value::Null, &json!({"score": 10, "rank": null})));
    client.send(&turn("b", "b", "restore")).expect(200);
    let shown = client.send(&add("b", "b"));
    assert!(shown.is_replay());
    assert_eq!(shown.expect(200)["rank"], 1, "it is seen now");
}

#[test]
fn a_removed_banned_player_is_still_banned() {
    let server = TestTally::start(TALLY);
    let mut client = with_banned_player(&server);
    client.delete("/v1/leaderboards/b/players/b").expect(204);
    let first = submit(&mut client, "b", "b", 70);
    assert_eq!((&first["rank"], &first["previous"]), (&Value::Null, &Value::Null));
    check_hidden(&mut client);
    client.send(&turn("b", "b", "restore")).expect(200);
    check_standing(&mut client, "b", &["b", "a", "c"]);
}

#[test]
fn a_missing_board_bans_no_player() {
    let server = TestTally::start(TALLY);
    let mut client = with_banned_player(&server);
    for verb in ["ban", "restore"] {
        client.send(&turn("none", "a", verb)).refused(404, "leaderboard_not_found");
    }
    client.delete("/v1/leaderboards/b").expect(204);
    create(&mut client, "b", &json!({}));
    assert_eq!(submit(&mut client, "b", "b", 1)["rank"], 1, "another board of that name knows nothing");
}

/// Both are acknowledged in the same batch again and again: the served state must be the stored one.
#[test]
fn hiding_and_erasing_at_once_is_one_after_the_other() {
    let mut server = TestTally::start(TALLY);
    create(&mut server.client(), "b", &json!({}));
    let players: Vec<String> = (0..60).map(|at| format!("p{at}")).collect();
    std::thread::scope(|scope| {
        for player in &players {
            let (mut banning, mut erasing) = (server.client(), server.client());
            scope.spawn(move || banning.send(&turn("b", player, "ban")).expect(200));
            scope.spawn(move || {
                let answer = erasing.delete(&format!("/v1/players/{player}"));
                assert!(answer.status == 204 || answer.code() == "player_not_found", "{}", answer.text());
            });
        }
    });
    let mut client = server.client();
    let mut ranks = Vec::new();
    for player in &players {
        ranks.push(submit(&mut client, "b", player, 1)["rank"].is_null());
    }
    let mut client = end_and_start(&mut server, true);
    let is_banned = |client: &mut Client, player: &String| place(client, "b", player).status == 404;
    let now: Vec<bool> = players.iter().map(|player| is_banned(&mut client, player)).collect();
    assert_eq!(now, ranks, "the same players are banned after a restart");
}
