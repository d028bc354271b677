//! Corrected scores on leaderboards without a contest, and the list of bans.

use super::{TALLY, check_replay, create, place, submit, turn};
use serde_json::{Value, json};
use tally_testkit::{Client, Request, TestTally};

fn correct(board: &str, player: &str, body: &Value) -> Request {
    Request::new("POST", format!("/v1/leaderboards/{board}/players/{player}/correct")).json(body)
}

fn audited(client: &mut Client) -> Vec<Value> {
    let page = client.get("/v1/audit?action=score.corrected").expect(200);
    page["items"].as_array().expect("items").clone()
}

#[test]
fn a_score_is_set_against_the_rule_of_its_leaderboard() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    for (board, rule) in [("best", "best"), ("sum", "sum"), ("latest", "latest")] {
        create(&mut client, board, &json!({"update": rule}));
        submit(&mut client, board, "ann", 9000);
        submit(&mut client, board, "bob", 7);
        let before = place(&mut client, board, "ann").expect(200);
        let request = correct(board, "ann", &json!({"score": 5, "reason": "a bot"})).idempotent(board);
        let first = client.send(&request);
        let done = first.expect(200);
        assert_eq!(
            (&done["score"], &done["rank"], &done["changed"], &done["period"]),
            (&json!(5), &json!(2), &json!(true), &json!("all_time")),
            "{rule}"
        );
        assert_eq!(done["previous"], json!({"score": 9000, "rank": 1}));
        // Ties stay as they were.
        assert_eq!(done["at"], before["at"]);
        check_replay(&client.send(&request), 200, &first);
        client
            .send(&correct(board, "ann", &json!({"score": 6, "reason": "a bot"})).idempotent(board))
            .refused(422, "idempotency_key_reused");
    }
    let rows = audited(&mut client);
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (row["subject"].clone(), row["detail"].clone(), row["reason"].clone()))
        .collect();
    let row = |board: &str| (json!("ann"), json!(format!("{board}: 9000 to 5")), json!("a bot"));
    assert_eq!(shown, [row("latest"), row("sum"), row("best")]);
    server.kill9();
    server.restart();
    let mut client = server.client();
    for board in ["best", "sum", "latest"] {
        assert_eq!(place(&mut client, board, "ann").expect(200)["score"], 5);
    }
    // The rule holds again.
    assert_eq!(submit(&mut client, "best", "ann", 4)["score"], 5);
    assert_eq!(submit(&mut client, "sum", "ann", 4)["score"], 9);
}

#[test]
fn a_correction_is_of_one_window() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let periods = json!([{"name": "yearly", "schedule": "0 0 1 1 *"}]);
    create(&mut client, "years", &json!({"periods": periods}));
    create(&mut client, "only-years", &json!({"periods": periods, "all_time": false}));
    submit(&mut client, "years", "ann", 9);
    let body = json!({"score": 3, "period": "yearly", "reason": "r"});
    let request = correct("years", "ann", &body).idempotent("k");
    let first = client.send(&request);
    let done = first.expect(200);
    let period = done["period"].as_str().expect("a name").to_owned();
    assert!(period.starts_with("yearly:"), "{done}");
    check_replay(&client.send(&request), 200, &first);
    let score = |client: &mut Client, period: &str| {
        client.get(&format!("/v1/leaderboards/years/players/ann?period={period}")).expect(200)["score"]
            .clone()
    };
    assert_eq!((score(&mut client, "yearly"), score(&mut client, "all_time")), (json!(3), json!(9)));
    assert_eq!(audited(&mut client)[0]["detail"], json!(format!("years {period}: 9 to 3")));
    // By its own name too, and a player without a score gets one.
    let named = json!({"score": 8, "period": period, "reason": "r"});
    assert_eq!(client.send(&correct("years", "new", &named)).expect(200)["previous"], Value::Null);
    assert_eq!(audited(&mut client)[0]["detail"], json!(format!("years {period}: none to 8")));
    for (board, period, code) in [
        ("years", "weekly", "period_not_found"),
        ("years", "yearly:nonsense", "period_not_found"),
        ("only-years", "all_time", "period_not_found"),
    ] {
        let body = json!({"score": 1, "period": period, "reason": "r"});
        client.send(&correct(board, "ann", &body)).refused(404, code);
    }
    client
        .send(&correct("only-years", "ann", &json!({"score": 1, "reason": "r"})))
        .refused(404, "period_not_found");
    let late = json!({"score": 1, "period": "yearly:1999-01-01", "reason": "r"});
    client.send(&correct("years", "ann", &late)).refused(409, "period_closed");
}

#[test]
fn a_correction_needs_a_reason_and_a_number_of_its_leaderboard() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    create(&mut client, "plain", &json!({}));
    submit(&mut client, "plain", "ann", 9);
    for (body, pointer) in [
        (json!({"score": 1}), "/reason"),
        (json!({"reason": "r"}), "/score"),
        (json!({"score": "x", "reason": "r"}), "/score"),
        (json!({"score": 1.5, "reason": "r"}), "/score"),
        (json!({"score": 1, "subscore": 1, "reason": "r"}), "/subscore"),
        (json!({"score": 1, "period": 1, "reason": "r"}), "/period"),
    ] {
        let refused = client.send(&correct("plain", "ann", &body));
        refused.refused(400, "invalid_field");
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{}", refused.text());
    }
    client
        .send(&correct("nowhere", "ann", &json!({"score": 1, "reason": "r"})))
        .refused(404, "leaderboard_not_found");
    assert_eq!(place(&mut client, "plain", "ann").expect(200)["score"], 9);
    assert!(audited(&mut client).is_empty());
}

#[test]
fn the_score_of_a_banned_player_is_corrected_where_nobody_sees_it() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    create(&mut client, "plain", &json!({}));
    submit(&mut client, "plain", "ann", 9);
    submit(&mut client, "plain", "bob", 7);
    client.send(&turn("plain", "ann", "ban")).expect(200);
    let done = client.send(&correct("plain", "ann", &json!({"score": 5, "reason": "r"}))).expect(200);
    assert_eq!((&done["score"], &done["rank"]), (&json!(5), &Value::Null));
    place(&mut client, "plain", "ann").refused(404, "player_not_ranked");
    client.send(&turn("plain", "ann", "restore")).expect(200);
    let shown = place(&mut client, "plain", "ann").expect(200);
    assert_eq!((&shown["score"], &shown["rank"]), (&json!(5), &json!(2)));
}

#[test]
fn bans_are_listed() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    create(&mut client, "plain", &json!({}));
    let path = "/v1/leaderboards/plain/bans";
    assert_eq!(client.get(path).expect(200), json!({"items": []}));
    for player in ["cid", "ann", "bob"] {
        client.send(&turn("plain", player, "ban")).expect(200);
    }
    client.send(&turn("plain", "bob", "restore")).expect(200);
    server.kill9();
    server.restart();
    let mut client = server.client();
    let wanted = [json!({"player": "ann"}), json!({"player": "cid"})];
    assert_eq!(client.get(path).expect(200), json!({"items": wanted}));
    let (all, pages) = tally_testkit::audit::read_pages(&mut client, &format!("{path}?limit=1"), "items");
    assert_eq!((&all[..], pages.len()), (&wanted[..], 2));
    client.get("/v1/leaderboards/nowhere/bans").refused(404, "leaderboard_not_found");
}
