//! Players found by the beginning of a name.

use super::{TALLY, create, submit, turn};
use serde_json::{Value, json};
use tally_testkit::http::segment;
use tally_testkit::{Client, Request, TestTally};

fn find(client: &mut Client, prefix: &str) -> Value {
    client.get(&format!("/v1/players?prefix={}", segment(prefix))).expect(200)
}

/// Their players, in order.
fn names(answer: &Value) -> Vec<&str> {
    answer["items"].as_array().expect("items").iter().filter_map(|item| item["player"].as_str()).collect()
}

#[test]
fn a_player_is_found_by_its_beginning_on_any_leaderboard() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    let periods = json!([{"name": "weekly", "schedule": "0 0 * * 1"}]);
    create(&mut client, "goals", &json!({}));
    create(&mut client, "points", &json!({}));
    create(&mut client, "weeks", &json!({"periods": periods, "all_time": false}));
    for (board, player) in [
        ("goals", "Harry Kane"),
        ("goals", "harry"),
        ("goals", "HARRY"),
        ("goals", "Hank"),
        ("points", "Harry Kane"),
        ("weeks", "Harriet"),
    ] {
        submit(&mut client, board, player, 1);
    }
    client.send(&turn("goals", "harry", "ban")).expect(200);
    for _ in 0..2 {
        let found = find(&mut client, "harry");
        assert_eq!(names(&found), ["HARRY", "Harry Kane", "harry"]);
        assert_eq!(
            (&found["items"][1]["boards"], &found["complete"]),
            (&json!(["goals", "points"]), &json!(true))
        );
        assert_eq!(names(&find(&mut client, "HARRI")), ["Harriet"]);
        assert_eq!(names(&find(&mut client, "harry kane")), ["Harry Kane"]);
        assert_eq!(names(&find(&mut client, "arry")), Vec::<&str>::new());
        // From the tables as well as from memory.
        server.terminate();
        server.restart();
        client = server.client();
    }
    let some = client.get("/v1/players?prefix=ha&limit=2").expect(200);
    assert_eq!((names(&some), &some["complete"]), (vec!["HARRY", "Hank"], &json!(false)));
    // By its whole id alone, because no list has it.
    let profile = json!({"name": "Lee"});
    client.put("/v1/players/lonely", &profile).expect(201);
    assert_eq!(find(&mut client, "lonely")["items"], json!([{"player": "lonely", "boards": []}]));
    assert_eq!(names(&find(&mut client, "lone")), Vec::<&str>::new());
    client.get("/v1/players").refused(400, "invalid_parameter");
    client.get("/v1/players?prefix=%20").refused(400, "invalid_parameter");
    client.get("/v1/players?prefix=a&limit=101").refused(400, "invalid_parameter");
}

#[test]
fn letters_of_any_case_find_a_player() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.local();
    create(&mut client, "goals", &json!({}));
    // More than an answer has begin with each letter, so a search goes on to the next ones.
    for number in 0..25 {
        for start in ["x", "X", "xx", "mc"] {
            submit(&mut client, "goals", &format!("{start}-{number}"), 1);
        }
    }
    for player in ["xXSlayerXx", "xXsLAYER", "McGinn", ".hack"] {
        submit(&mut client, "goals", player, 1);
    }
    let member = json!({"login_id": "DeShawn", "name": "A Name", "player": "iPlayer"});
    client.post("/v1/members", &member).expect(201);
    for _ in 0..2 {
        for (prefix, players) in [
            ("xxslayer", &["xXSlayerXx", "xXsLAYER"][..]),
            ("XXSLAYERX", &["xXSlayerXx"]),
            ("mcginn", &["McGinn"]),
            ("MCGI", &["McGinn"]),
            (".HACK", &[".hack"]),
            ("deshawn", &["iPlayer"]),
            ("IPLAY", &["iPlayer"]),
        ] {
            let found = find(&mut client, prefix);
            assert_eq!((names(&found), &found["complete"]), (players.to_vec(), &json!(true)), "{prefix}");
        }
        assert_eq!(find(&mut client, "xx")["complete"], json!(false), "more than 20 begin so");
        server.terminate();
        server.restart();
        client = server.local();
    }
}

#[test]
fn a_member_is_not_crowded_out_by_players_of_leaderboards() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    create(&mut local, "goals", &json!({}));
    for player in ["max-1", "max-2", "max-3"] {
        submit(&mut local, "goals", player, 1);
    }
    for (login, player) in [("a", "zoe"), ("b", "zac")] {
        let member = json!({"login_id": login, "name": "Max Cheat", "player": player});
        local.post("/v1/members", &member).expect(201);
    }
    for (limit, players, complete) in [
        (9, &["max-1", "max-2", "max-3", "zac", "zoe"][..], true),
        (3, &["max-1", "zac", "zoe"], false),
        (1, &["zac"], false),
    ] {
        let found = local.get(&format!("/v1/players?prefix=max&limit={limit}")).expect(200);
        assert_eq!((names(&found), &found["complete"]), (players.to_vec(), &json!(complete)), "{limit}");
    }
}

#[test]
fn members_are_found_by_callers_that_may_read_them() {
    let mut server = TestTally::start(TALLY);
    let mut local = server.local();
    let member = |login: &str, phone: &str, player: &str| json!({"login_id": login, "name": "A Name", "phone_number": phone, "player": player});
    let ann = local.post("/v1/members", &member("Ann.Smith", "010-1234-5678", "p1")).expect(201);
    local.post("/v1/members", &member("bob", "010-1299-0000", "p2")).expect(201);
    let closed = local.post("/v1/members", &member("annie", "010-7777-0000", "p3")).expect(201);
    local
        .post(&format!("/v1/members/{}/close", closed["id"].as_str().expect("an id")), &json!({}))
        .expect(200);
    create(&mut local, "goals", &json!({}));
    submit(&mut local, "goals", "p1", 1);
    for _ in 0..2 {
        for (prefix, players) in [
            ("ann.s", &["p1"][..]),
            ("Ann", &["p1"]),
            ("010-12", &["p1", "p2"]),
            ("0101234 5678", &["p1"]),
            ("bob", &["p2"]),
            ("p", &["p1", "p2"]),
            (ann["id"].as_str().expect("an id"), &["p1"]),
            ("a  NAM", &["p1", "p2"]),
            ("name", &[]),
        ] {
            assert_eq!(names(&find(&mut local, prefix)), players, "{prefix}");
        }
        let found = find(&mut local, "Ann.Smith");
        assert_eq!(found["items"][0]["member"]["id"], ann["id"]);
        assert_eq!(found["items"][0]["member"]["phone_number"], ann["phone_number"]);
        server.terminate();
        server.restart();
        local = server.local();
    }
    let reader = local.post("/v1/keys", &json!({"role": "reader"})).expect(201);
    let mut reader = server.client().with_key(reader["key"].as_str().expect("a key"));
    assert_eq!(names(&find(&mut reader, "bob")), Vec::<&str>::new());
    assert_eq!(find(&mut reader, "p1")["items"], json!([{"player": "p1", "boards": ["goals"]}]));
    assert_eq!(names(&find(&mut reader, "a name")), Vec::<&str>::new());
    // What a page needs to know to leave out the rest.
    assert_eq!(reader.get("/v1/status").expect(200)["caller"], json!({"role": "reader", "scopes": []}));
    assert_eq!(local.get("/v1/status").expect(200)["caller"]["role"], "admin");
}

/// In letters of any case, until another name takes its place or the member is closed or erased.
#[test]
fn a_member_is_found_by_the_beginning_of_its_name() {
    let mut server = TestTally::start(TALLY);
    let mut local = server.local();
    let [first, second, third] =
        [("p1", "Élodie Straße"), ("p2", "ÉLODIE"), ("p3", "김민준")].map(|(player, name)| {
            let body = json!({"login_id": format!("login-{player}"), "name": name, "player": player});
            local.post("/v1/members", &body).expect(201)["id"].as_str().expect("an id").to_owned()
        });
    for (prefix, players) in [
        ("élo", &["p1", "p2"][..]),
        ("éLODIE  strass", &["p1"]),
        ("김민", &["p3"]),
        ("lodie", &[]),
        ("strass", &[]),
    ] {
        let found = find(&mut local, prefix);
        assert_eq!((names(&found), &found["complete"]), (players.to_vec(), &json!(true)), "{prefix}");
    }
    assert_eq!(find(&mut local, "ÉLODIE s")["items"][0]["member"]["name"], "Élodie Straße");
    local
        .send(&Request::new("PATCH", format!("/v1/members/{second}")).json(&json!({"name": "Zoë"})))
        .expect(200);
    local.post(&format!("/v1/members/{third}/close"), &json!({})).expect(200);
    for (prefix, players) in [("élo", &["p1"][..]), ("ZOË", &["p2"]), ("김민", &[])] {
        assert_eq!(names(&find(&mut local, prefix)), players, "{prefix}");
    }
    local.post(&format!("/v1/members/{first}/erase"), &json!({})).expect(200);
    for _ in 0..2 {
        for (prefix, players) in [("élo", &[][..]), ("zoë", &["p2"]), ("김민", &[])] {
            assert_eq!(names(&find(&mut local, prefix)), players, "{prefix}");
        }
        server.terminate();
        server.restart();
        local = server.local();
    }
}
