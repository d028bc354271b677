//! Contests: bodies field by field, acting players, and parameters of lists.

use super::world::{World, series};
use serde_json::{Value, json};
use tally_testkit::{Request, http::segment};

/// (field, its value, where it is wrong) of a new contest and of a patch.
fn wrong_fields() -> Vec<(&'static str, Value, String)> {
    let mut all = Vec::new();
    let mut of = |name: &'static str, values: &[Value], pointer: &str| {
        all.extend(values.iter().map(|value| (name, value.clone(), pointer.to_owned())));
    };
    let texts = [json!(null), json!(1), json!([]), json!("")];
    of(
        "title",
        &[json!(null), json!(1), json!(""), json!("  "), json!("x".repeat(201)), json!("a\nb")],
        "/title",
    );
    of("staff", &[json!(null), json!("p"), json!({}), json!(vec!["p"; 101])], "/staff");
    of("staff", &[json!(["."]), json!([1]), json!([""])], "/staff/0");
    of("staff", &[json!(["p", "p"]), json!(["p", null])], "/staff/1");
    let counts = [json!(0), json!(-1), json!(1.5), json!("5"), json!(true), json!(4_294_967_296_u64)];
    of("capacity", &counts, "/capacity");
    of("capacity", &[json!(null)], "/capacity");
    of("division_size", &counts, "/division_size");
    of("review_s", &[json!(-1), json!(1.5), json!("5"), json!(true), json!(31_622_401)], "/review_s");
    for name in ["players_min", "join_s", "attempts_max"] {
        of(name, &counts, &format!("/{name}"));
    }
    of("join_s", &[json!(31_622_401)], "/join_s");
    of("players_min", &[json!(4_294_967_295_u64)], "/players_min");
    of("auto_accept", &[json!(null), json!(1), json!("true"), json!([])], "/auto_accept");
    of("below_min", &texts, "/below_min");
    of("below_min", &[json!("Cancel"), json!("wait")], "/below_min");
    of("on_invalid", &texts, "/on_invalid");
    of("on_invalid", &[json!("Reject"), json!("stop")], "/on_invalid");
    of("prize_ties", &texts, "/prize_ties");
    for name in ["opens_at", "starts_at", "ends_at"] {
        let times = [json!(1), json!(""), json!("now"), json!("2026-01-01"), json!("2026-01-01T00:00:00")];
        of(name, &times, &format!("/{name}"));
    }
    let fee = |currency: Value, amount: Value| json!({"currency": currency, "amount": amount});
    of("entry_fee", &[json!(1), json!("100"), json!([])], "/entry_fee");
    of(
        "entry_fee",
        &[fee(json!(null), json!(1)), fee(json!("krw"), json!(1)), fee(json!("XAU"), json!(1))],
        "/entry_fee/currency",
    );
    let amounts = [json!(0), json!(-1), json!(1.5), json!("01"), json!(null), json!("9999999999999999")];
    for amount in amounts {
        of("entry_fee", &[fee(json!("KRW"), amount.clone())], "/entry_fee/amount");
        of(
            "prizes",
            &[json!([{"from": 1, "to": 1, "currency": "KRW", "amount": amount}])],
            "/prizes/0/amount",
        );
    }
    of("prizes", &[json!(null), json!({}), json!("x"), json!(vec![json!({}); 201])], "/prizes");
    of("prizes", &[json!([1]), json!([[]])], "/prizes/0");
    let prize = |from: Value, to: Value| json!({"from": from, "to": to, "currency": "KRW", "amount": 1});
    of("prizes", &[json!([prize(json!(0), json!(1))])], "/prizes/0/from");
    of("prizes", &[json!([prize(json!(2), json!(1))]), json!([prize(json!(1), json!("1"))])], "/prizes/0/to");
    of("prizes", &[json!([prize(json!(1), json!(2)), prize(json!(2), json!(3))])], "/prizes/1/from");
    let share = |share: Value| json!({"from": 1, "to": 1, "share": share});
    let pool = |prizes: Value, rake: Value, min: Value| json!({"prizes": prizes, "rake": rake, "min": min});
    of("pool", &[json!(1), json!("all"), json!([])], "/pool");
    // It consists of fees, and there is none.
    of("pool", &[pool(json!([share(json!(1))]), json!(0), json!(null))], "/pool");
    of("pool", &[json!({}), pool(json!([]), json!(0), json!(null))], "/pool/prizes");
    for bad in [json!(0), json!(-1), json!(1.5), json!("5"), json!(null), json!(10_001)] {
        of("pool", &[pool(json!([share(bad.clone())]), json!(0), json!(1))], "/pool/prizes/0/share");
    }
    for bad in [json!(-1), json!(1.5), json!("5"), json!(null), json!(10_001)] {
        of("pool", &[pool(json!([share(json!(1))]), bad, json!(1))], "/pool/rake");
    }
    for bad in [json!(0), json!(-1), json!("01"), json!(true), json!("9999999999999999")] {
        of("pool", &[pool(json!([share(json!(1))]), json!(0), bad)], "/pool/min");
    }
    of("leaderboard", &[json!(null), json!(1), json!([])], "/leaderboard");
    of("leaderboard", &[json!({"order": "up"})], "/leaderboard/order");
    of("leaderboard", &[json!({"all_time": 1})], "/leaderboard/all_time");
    of("leaderboard", &[json!({"update": "sum", "subscore": "ascending"})], "/leaderboard/subscore");
    of("leaderboard", &[json!({"periods": [{"name": "w"}]})], "/leaderboard/periods/0/schedule");
    of(
        "leaderboard",
        &[json!({"periods": [{"name": "w", "schedule": "soon"}]})],
        "/leaderboard/periods/0/schedule",
    );
    all
}

#[test]
fn contests_have_fields_of_their_kinds() {
    let mut world = World::start();
    for (name, value, pointer) in wrong_fields() {
        let mut body = json!({"id": "new", "title": "New"});
        body[name] = value.clone();
        let request = Request::new("POST", "/v1/contests").json(&body);
        world.refuse(&request, 400, "invalid_field", Some(&pointer));
        let request = Request::new("PATCH", "/v1/contests/draft").json(&json!({name: value}));
        world.refuse(&request, 400, "invalid_field", Some(&pointer));
    }
    for id in
        [json!(null), json!(1), json!(""), json!("."), json!("a b"), json!("a:b"), json!("x".repeat(65))]
    {
        let request = Request::new("POST", "/v1/contests").json(&json!({"id": id, "title": "New"}));
        world.refuse(&request, 400, "invalid_field", Some("/id"));
    }
    let request = Request::new("POST", "/v1/contests").json(&json!({"id": "new"}));
    world.refuse(&request, 400, "invalid_field", Some("/title"));
    for name in ["state", "board", "counts", "nope"] {
        let request = Request::new("POST", "/v1/contests").json(&json!({"title": "New", name: 1}));
        world.refuse(&request, 400, "unknown_field", Some(&format!("/{name}")));
    }
    let request = Request::new("PATCH", "/v1/contests/draft").json(&json!({"id": "new"}));
    world.refuse(&request, 400, "unknown_field", Some("/id"));
    let times =
        json!({"title": "New", "starts_at": "2030-01-02T00:00:00Z", "ends_at": "2030-01-01T00:00:00Z"});
    let request = Request::new("POST", "/v1/contests").json(&times);
    world.refuse(&request, 400, "invalid_field", Some("/ends_at"));
    let large = Request::new("POST", "/v1/contests").json(&json!({"title": "New", "capacity": 100_001}));
    world.refuse(&large, 422, "contest_too_large", None);
}

#[test]
fn series_have_fields_of_their_kinds() {
    let mut world = World::start();
    let mut tried: Vec<(&str, Value, String)> = Vec::new();
    let times = ["opens_at", "starts_at", "ends_at"];
    for (name, value, pointer) in wrong_fields().into_iter().filter(|one| !times.contains(&one.0)) {
        let mut template = json!({"title": "S"});
        template[name] = value;
        tried.push(("template", template, format!("/template{pointer}")));
    }
    for value in [json!(null), json!(1), json!([])] {
        tried.push(("template", value, "/template".into()));
    }
    for name in ["open", "start", "end"] {
        for value in
            [json!(null), json!(5), json!(""), json!("@daily"), json!("0 0 30 2 *"), json!("0 0 * *")]
        {
            tried.push((name, value, format!("/{name}")));
        }
    }
    for value in [json!(null), json!(9), json!(""), json!("Mars/Base"), json!("GMT+99")] {
        tried.push(("time_zone", value, "/time_zone".into()));
    }
    for value in [json!(null), json!(0), json!(51), json!(-1), json!(1.5), json!("1")] {
        tried.push(("ahead", value, "/ahead".into()));
    }
    // A start every minute, and an end once a year.
    tried.push(("start", json!("* * * * *"), "/end".into()));
    for (name, value, pointer) in tried {
        let mut body = series("new");
        body[name] = value.clone();
        let request = Request::new("POST", "/v1/contest-series").json(&body);
        world.refuse(&request, 400, "invalid_field", Some(&pointer));
        let request = Request::new("PATCH", "/v1/contest-series/yearly").json(&json!({name: value}));
        world.refuse(&request, 400, "invalid_field", Some(&pointer));
    }
    for id in [json!(null), json!(1), json!(""), json!("a b"), json!("x".repeat(52))] {
        let mut body = series("new");
        body["id"] = id;
        let request = Request::new("POST", "/v1/contest-series").json(&body);
        world.refuse(&request, 400, "invalid_field", Some("/id"));
    }
    for name in ["template", "open", "start", "end"] {
        let mut body = series("new");
        body.as_object_mut().expect("an object").remove(name);
        let request = Request::new("POST", "/v1/contest-series").json(&body);
        world.refuse(&request, 400, "invalid_field", Some(&format!("/{name}")));
    }
    for (more, pointer) in [
        (json!({"last": 1}), "/last"),
        (json!({"template": {"title": "S", "starts_at": null}}), "/template/starts_at"),
        (json!({"template": {"title": "S", "id": "x"}}), "/template/id"),
    ] {
        let mut body = series("new");
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let request = Request::new("POST", "/v1/contest-series").json(&body);
        world.refuse(&request, 400, "unknown_field", Some(pointer));
    }
    let request = Request::new("PATCH", "/v1/contest-series/yearly").json(&json!({"id": "new"}));
    world.refuse(&request, 400, "unknown_field", Some("/id"));
}

#[test]
fn applications_name_players() {
    let mut world = World::start();
    let path = "/v1/contests/open/applications";
    for player in [json!(null), json!(1), json!(""), json!("."), json!("x".repeat(129)), json!([])] {
        let request = Request::new("POST", path).json(&json!({"player": player}));
        world.refuse(&request, 400, "invalid_field", Some("/player"));
        for act in ["accept", "reject"] {
            let path = format!("{path}/{act}");
            let request = Request::new("POST", &path).json(&json!({"players": ["p", player]}));
            world.refuse(&request, 400, "invalid_field", Some("/players/1"));
        }
    }
    // A key without a player.
    world.refuse(&Request::new("POST", path).json(&json!({})), 400, "invalid_field", Some("/player"));
    world.refuse(&Request::new("POST", path), 400, "invalid_field", Some("/player"));
    for act in ["accept", "reject"] {
        let path = format!("{path}/{act}");
        for players in [json!(null), json!("p"), json!([]), json!({}), json!(vec!["p"; 1_001])] {
            let request = Request::new("POST", &path).json(&json!({"players": players}));
            world.refuse(&request, 400, "invalid_field", Some("/players"));
        }
        world.refuse(&Request::new("POST", &path).json(&json!({})), 400, "invalid_field", Some("/players"));
        let more = Request::new("POST", &path).json(&json!({"players": ["p"], "nope": 1}));
        world.refuse(&more, 400, "unknown_field", Some("/nope"));
    }
}

#[test]
fn corrections_have_a_score_and_a_reason() {
    let mut world = World::start();
    let path = "/v1/contests/finished/members/p/correct";
    let mut refuse = |body: Value, code: &str, pointer: &str| {
        world.refuse(&Request::new("POST", path).json(&body), 400, code, Some(pointer));
    };
    for score in [json!(null), json!("x"), json!([]), json!(true)] {
        refuse(json!({"score": score, "reason": "r"}), "invalid_field", "/score");
    }
    refuse(json!({"reason": "r"}), "invalid_field", "/score");
    refuse(json!({"score": 1}), "invalid_field", "/reason");
    for reason in [json!(null), json!(1), json!("x".repeat(256))] {
        refuse(json!({"score": 1, "reason": reason}), "invalid_field", "/reason");
    }
    refuse(json!({"score": 1, "subscore": "x", "reason": "r"}), "invalid_field", "/subscore");
    refuse(json!({"score": 1, "reason": "r", "player": "p"}), "unknown_field", "/player");
}

#[test]
fn the_acting_player_is_named_once() {
    let mut world = World::start();
    let name = "Tally-Acting-Player";
    for (method, path) in [
        ("POST", "/v1/contests/draft/open"),
        ("POST", "/v1/contests/open/start"),
        ("POST", "/v1/contests/running/members/p/ban"),
        ("GET", "/v1/contests/open/applications"),
        ("DELETE", "/v1/contests/open/applications/p"),
    ] {
        let request = Request::new(method, path);
        for value in ["", ".", "..", "%FF", "%zz", "%", "ä", &"x".repeat(129)] {
            world.refuse(&request.clone().header(name, value), 400, "invalid_parameter", Some(name));
        }
        let twice = request.clone().header(name, "boss").header(name, "boss");
        world.refuse(&twice, 400, "invalid_parameter", Some(name));
        if method != "DELETE" {
            // A request that names a player acts for it, and this one is not of the staff.
            world.refuse(&request.header(name, "p"), 403, "forbidden", None);
        }
    }
}

#[test]
fn lists_of_contests_have_their_parameters() {
    let mut world = World::start();
    let lists = ["", "/open/applications", "/running/members", "/settled/prizes", "/cancelled/refunds"];
    let series = "/v1/contest-series".to_owned();
    for prefix in ["", "%20", &"x".repeat(129)] {
        let request = Request::new("GET", format!("/v1/contests?prefix={prefix}"));
        world.refuse(&request, 400, "invalid_parameter", Some("prefix"));
    }
    for path in lists.map(|path| format!("/v1/contests{path}")).into_iter().chain([series]) {
        for limit in ["0", "1001", "x", "-1", ""] {
            let request = Request::new("GET", format!("{path}?limit={limit}"));
            world.refuse(&request, 400, "invalid_parameter", Some("limit"));
        }
        for text in ["zz", "", "bm9uZQ", "%25"] {
            let request = Request::new("GET", format!("{path}?cursor={text}"));
            world.refuse(&request, 400, "invalid_cursor", None);
        }
    }
    for (path, name) in [("", "state"), ("/open/applications", "state"), ("/open/applications", "status")] {
        for value in ["", "Open", "nope", "open,running"] {
            let request = Request::new("GET", format!("/v1/contests{path}?{name}={}", segment(value)));
            world.refuse(&request, 400, "invalid_parameter", Some(name));
        }
    }
    for value in ["", "a b", "a:b", "..", &"s".repeat(52)] {
        let request = Request::new("GET", format!("/v1/contests?series={}", segment(value)));
        world.refuse(&request, 400, "invalid_parameter", Some("series"));
    }
}
