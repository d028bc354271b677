//! Profiles: put, shown, shown beside ranks.

use super::{TALLY, check_replay, create, end_and_start, submit, turn};
use serde_json::{Value, json};
use tally_testkit::http::segment;
use tally_testkit::{Request, TestTally};

fn put(player: &str, profile: &Value) -> Request {
    Request::new("PUT", format!("/v1/players/{}", segment(player))).json(profile)
}

/// A profile as it is answered.
fn shown(player: &str, profile: &Value) -> Value {
    let mut shown = profile.clone();
    shown["player"] = json!(player);
    shown
}

#[test]
fn a_profile_is_created_replaced_and_deleted() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    client.get("/v1/players/p").refused(404, "player_not_found");
    let whole = json!({"name": "Ada \"Ä\" 🦀", "avatar_url": "https://example.com/a.png?x=1&y=%20#f",
        "metadata": {"level": 3, "tags": ["a", null], "deep": {"x": [1.5, true]}, "most": u64::MAX, "least": i64::MIN}});
    assert_eq!(client.send(&put("p", &whole)).expect(201), shown("p", &whole));
    assert_eq!(client.get("/v1/players/p").expect(200), shown("p", &whole));
    client = end_and_start(&mut server, true);
    assert_eq!(client.get("/v1/players/p").expect(200), shown("p", &whole));
    // PUT replaces: an absent field is removed.
    for profile in [json!({"name": "B"}), json!({"metadata": {}}), json!({}), whole.clone()] {
        assert_eq!(client.send(&put("p", &profile)).expect(200), shown("p", &profile));
        assert_eq!(client.get("/v1/players/p").expect(200), shown("p", &profile));
    }
    client.delete("/v1/players/p").expect(204);
    client.get("/v1/players/p").refused(404, "player_not_found");
    client.delete("/v1/players/p").refused(404, "player_not_found");
    assert_eq!(client.send(&put("p", &json!({}))).expect(201), json!({"player": "p"}));
}

#[test]
fn players_are_told_apart_by_their_bytes() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let players = ["é", "e\u{301}", "a/b", "a b", "a", "A", "\u{0}", "日本", "%", &"x".repeat(128)];
    for (at, player) in players.iter().enumerate() {
        client.send(&put(player, &json!({"name": at.to_string()}))).expect(201);
    }
    for (at, player) in players.iter().enumerate() {
        let answer = client.get(&format!("/v1/players/{}", segment(player))).expect(200);
        assert_eq!(answer, json!({"player": player, "name": at.to_string()}));
    }
}

#[test]
fn a_retry_is_the_first_answer() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    let profile = json!({"name": "Ada", "metadata": {"b": 1, "a": [2]}});
    let create = put("p", &profile).idempotent("create");
    let created = client.send(&create);
    created.expect(201);
    check_replay(&client.send(&create), 201, &created);
    client.send(&put("p", &json!({"name": "Eve"}))).expect(200);
    let turned = "{ \"metadata\":{\"a\":[2],\"b\":1}, \"name\":\"\\u0041da\"}";
    let spelled =
        Request::new("PUT", "/v1/players/%70").body("application/json", turned).idempotent("create");
    check_replay(&client.send(&spelled), 201, &created);
    assert_eq!(client.get("/v1/players/p").expect(200)["name"], "Eve", "a replay has no effect");
    for other in
        [put("q", &profile), put("p", &json!({"name": "Ada"})), Request::new("DELETE", "/v1/players/p")]
    {
        client.send(&other.idempotent("create")).refused(422, "idempotency_key_reused");
    }
    client = end_and_start(&mut server, true);
    check_replay(&client.send(&create), 201, &created);
    assert_eq!(client.get("/v1/players/p").expect(200)["name"], "Eve");
    // A rejected request may be corrected under the same key.
    client.send(&put("p", &json!({"name": ""})).idempotent("fix")).refused(400, "invalid_field");
    client.send(&put("p", &json!({"name": "x"})).idempotent("fix")).expect(200);
}

/// Of the bounds both sides; what else can be wrong is in `bad_input`.
#[test]
fn bounds_of_a_profile() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let metadata = |bytes: usize| {
        let around = json!({"k": ""}).to_string().len();
        json!({"metadata": {"k": "x".repeat(bytes - around)}})
    };
    let address = |bytes: usize| json!({"avatar_url": format!("https://e.x/{}", "a".repeat(bytes - 12))});
    let wide = json!({"metadata": {"k": "ä".repeat(4 * 1_024)}});
    for (at, (profile, fits)) in [
        (metadata(8 * 1_024), true),
        (metadata(8 * 1_024 + 1), false),
        (wide, false),
        (json!({"name": "n".repeat(256)}), true),
        (json!({"name": "ä".repeat(128)}), true),
        (json!({"name": "n".repeat(257)}), false),
        (json!({"name": "ä".repeat(129)}), false),
        (address(2_048), true),
        (address(2_049), false),
        (json!({"avatar_url": "http://10.0.0.1:8080/a"}), true),
        (json!({"avatar_url": "javascript:alert(1)"}), false),
    ]
    .into_iter()
    .enumerate()
    {
        let player = format!("p{at}");
        let answer = client.send(&put(&player, &profile));
        let kept = client.get(&format!("/v1/players/{player}"));
        if fits {
            assert_eq!(
                (answer.expect(201), kept.expect(200)),
                (shown(&player, &profile), shown(&player, &profile))
            );
        } else {
            answer.refused(400, "invalid_field");
            kept.refused(404, "player_not_found");
        }
    }
}

/// Every list of entries, with and without profiles.
#[test]
fn profiles_stand_beside_ranks_where_they_are_asked_for() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    create(&mut client, "b", &json!({}));
    let ada = json!({"name": "Ada", "metadata": {"x": 1}});
    for (player, score) in [("a", 3), ("b", 2), ("c", 1), ("d", 0)] {
        submit(&mut client, "b", player, score);
    }
    client.send(&put("a", &ada)).expect(201);
    client.send(&put("c", &json!({}))).expect(201);
    client.send(&put("nobody", &ada)).expect(201);
    let expected = json!([["a", ada], ["b", null], ["c", {}]]);
    let page = Request::new("GET", "/v1/leaderboards/b/scores?limit=3");
    let around = Request::new("GET", "/v1/leaderboards/b/players/b/around?above=1&below=1");
    let among = json!({"players": ["b", "c", "a", "gone"]});
    let among = Request::new("POST", "/v1/leaderboards/b/among?period=all_time").json(&among);
    for request in [page, around, among] {
        let plain = client.send(&request).expect(200);
        let mut with = request.clone();
        with.target.extend_from_slice(b"&expand=player");
        let mut answer = client.send(&with).expect(200);
        let entries = answer["entries"].as_array_mut().expect("entries");
        let mut profiles = Vec::new();
        for entry in entries.iter_mut() {
            let profile = entry.as_object_mut().and_then(|entry| entry.remove("profile"));
            profiles.push(json!([entry["player"], profile.expect("an entry has a profile or null")]));
        }
        assert_eq!(json!(profiles), expected, "{request:?}");
        // The cursor and everything else is as without.
        assert_eq!(answer, plain, "{request:?}");
        for other in ["players", "", "Player", "player,board"] {
            let mut wrong = request.clone();
            wrong.target.extend_from_slice(format!("&expand={other}").as_bytes());
            client.send(&wrong).refused(400, "invalid_parameter");
        }
    }
    client.get("/v1/leaderboards/b/players/a?expand=player").refused(400, "unknown_parameter");
}

#[test]
fn a_page_of_a_thousand_has_all_its_profiles() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    create(&mut client, "b", &json!({}));
    let row = |at: u32| json!({"board": "b", "player": format!("p{at}"), "score": at});
    let rows: Vec<Value> = (0..1_000).map(row).collect();
    client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    for at in (0..1_000).step_by(50) {
        client.send(&put(&format!("p{at}"), &json!({"name": format!("n{at}")}))).expect(201);
    }
    let page = client.get("/v1/leaderboards/b/scores?limit=1000&expand=player").expect(200);
    for entry in page["entries"].as_array().expect("entries") {
        let at = entry["score"].as_u64().expect("a score");
        let profile = if at % 50 == 0 { json!({"name": format!("n{at}")}) } else { Value::Null };
        assert_eq!(entry["profile"], profile, "{entry}");
    }
}

#[test]
fn a_profile_has_nothing_to_do_with_boards() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    create(&mut client, "b", &json!({}));
    submit(&mut client, "b", "p", 1);
    client.send(&put("p", &json!({"name": "P"}))).expect(201);
    client.send(&turn("b", "p", "ban")).expect(200);
    client.delete("/v1/leaderboards/b").expect(204);
    assert_eq!(client.get("/v1/players/p").expect(200)["name"], "P");
}
