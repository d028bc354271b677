//! Bodies, field by field: as single requests and, where there are rows, inside them.

use super::world::{BAD_IDS, DIGEST, World, head, import, replaced, row};
use serde_json::{Value, json};
use tally_testkit::Request;

/// Numbers and texts that no JSON value of a test library holds as they are written.
const NO_INT64: [&str; 16] = [
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"x\"",
    "\"nan\"",
    "\"0x10\"",
    "\" 1\"",
    "\"1_000\"",
    "1.5",
    "\"1.5\"",
    "9223372036854775808",
    "-9223372036854775809",
    "\"9223372036854775808\"",
    "1e400",
];

/// (field, value as it is written) of a submit to a board of int64 scores.
fn bad_scores() -> Vec<(&'static str, String)> {
    let long = format!("\"{}\"", "x".repeat(129));
    let long_bytes = format!("\"{}\"", "ä".repeat(65));
    let mut bad = Vec::new();
    for value in ["null", "1", "true", "[]", "\"\"", "\".\"", "\"..\"", &long, &long_bytes] {
        bad.push(("player", value.to_owned()));
    }
    for value in NO_INT64 {
        bad.push(("score", value.to_owned()));
    }
    for value in ["inf", "-inf", "1e3", "+5"] {
        bad.push(("score", format!("\"{value}\"")));
    }
    bad.push(("subscore", "1".into()));
    for value in NO_INT64 {
        bad.push(("subscore", value.to_owned()));
    }
    for value in [
        "null",
        "1",
        "true",
        "\"\"",
        "\"now\"",
        "\"2026-01-01\"",
        "\"2026-01-01T00:00:00\"",
        "\"2026-13-01T00:00:00Z\"",
        "\"2026-02-30T00:00:00Z\"",
        "\"2026-01-01T25:00:00Z\"",
        "\"99999-01-01T00:00:00Z\"",
    ] {
        bad.push(("at", value.to_owned()));
    }
    bad
}

/// The fields of a submit with one of them replaced, or left out.
fn fields(name: &str, value: Option<&str>) -> String {
    replaced(vec![("player", "\"new\"".to_owned()), ("score", "1".to_owned())], name, value)
}

fn post(target: &str, body: impl Into<Vec<u8>>) -> Request {
    Request::new("POST", target).body("application/json", body)
}

#[test]
fn fields_of_a_submit() {
    let mut world = World::start();
    let target = "/v1/leaderboards/b/scores";
    for (name, value) in bad_scores() {
        let request = post(target, format!("{{{}}}", fields(name, Some(&value))));
        world.refuse(&request, 400, "invalid_field", Some(&format!("/{name}")));
    }
    for name in ["player", "score"] {
        let request = post(target, format!("{{{}}}", fields(name, None)));
        world.refuse(&request, 400, "invalid_field", Some(&format!("/{name}")));
    }
    for (name, pointer) in
        [("extra", "/extra"), ("board", "/board"), ("id", "/id"), ("Score", "/Score"), ("a/b~c", "/a~1b~0c")]
    {
        let request = post(target, format!("{{{}}}", fields(name, Some("\"b\""))));
        world.refuse(&request, 400, "unknown_field", Some(pointer));
    }
    for value in ["null", "true", "\"nan\"", "\"\"", "[]", "1e400", "\"x\""] {
        let request = post("/v1/leaderboards/f/scores", format!("{{{}}}", fields("score", Some(value))));
        world.refuse(&request, 400, "invalid_field", Some("/score"));
    }
    for value in [None, Some("null"), Some("1.5"), Some("9223372036854775808"), Some("\"x\"")] {
        let request = post("/v1/leaderboards/sub/scores", format!("{{{}}}", fields("subscore", value)));
        world.refuse(&request, 400, "invalid_field", Some("/subscore"));
    }
    let both = post(target, "{\"player\":1,\"score\":null,\"x\":2}");
    let answer = world.refuse(&both, 400, "invalid_field", Some("/player"));
    let pointers: Vec<Value> = answer.json()["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|one| one["pointer"].clone())
        .collect();
    assert_eq!(pointers, ["/player", "/score", "/x"], "all are named at once");
    let future = post(target, format!("{{{}}}", fields("at", Some("\"9998-12-31T23:59:59Z\""))));
    world.refuse(&future, 422, "at_in_future", None);
    let nowhere = post("/v1/leaderboards/none/scores", format!("{{{}}}", fields("", None)));
    world.refuse(&nowhere, 404, "leaderboard_not_found", None);
}

#[test]
fn the_last_second_of_rfc_3339_is_an_instant() {
    let mut world = World::start();
    let last = fields("at", Some("\"9999-12-31T23:59:59Z\""));
    world.refuse(&post("/v1/leaderboards/b/scores", format!("{{{last}}}")), 422, "at_in_future", None);
}

/// A batch of one bad row between two good ones: the good ones are taken, and taken back by the test.
#[test]
fn a_bad_row_fails_alone() {
    let mut world = World::start();
    let mut rows: Vec<(String, &str)> = Vec::new();
    for (name, value) in bad_scores() {
        rows.push((format!("{{\"board\":\"b\",{}}}", fields(name, Some(&value))), "invalid_field"));
    }
    for value in ["null", "1", "\"\"", "\"a@b\"", "\"a\\nb\"", "\".\"", "\"..\""] {
        rows.push((format!("{{\"board\":{value},{}}}", fields("", None)), "invalid_field"));
    }
    for value in BAD_IDS {
        rows.push((format!("{{\"board\":\"b\",\"id\":{value},{}}}", fields("", None)), "invalid_field"));
    }
    rows.push((format!("{{{}}}", fields("", None)), "invalid_field"));
    rows.push(("{}".into(), "invalid_field"));
    rows.push((format!("{{\"board\":\"b\",\"extra\":1,{}}}", fields("", None)), "unknown_field"));
    rows.push((format!("{{\"board\":\"none\",{}}}", fields("", None)), "leaderboard_not_found"));
    let future = fields("at", Some("\"9998-12-31T23:59:59Z\""));
    rows.push((format!("{{\"board\":\"b\",{future}}}"), "at_in_future"));
    for (bad, code) in rows {
        let good = |player: &str| format!("{{\"board\":\"b\",\"player\":\"{player}\",\"score\":9}}");
        let body = format!("{{\"scores\":[{},{bad},{}]}}", good("g1"), good("g2"));
        let request = post("/v1/scores/batch", body);
        let answer = world.client().send(&request);
        if answer.status != 200 {
            world.fail(&request, &answer);
            continue;
        }
        let answer = answer.json();
        let results = answer["results"].as_array().expect("results");
        assert_eq!(results.len(), 3, "{bad}");
        assert_eq!(results[1]["error"]["code"], code, "{bad}: {answer}");
        assert!(results[1]["error"]["detail"].is_string(), "{bad}: {answer}");
        for at in [0, 2] {
            assert_eq!(results[at].get("error"), None, "{bad}: {answer}");
            assert_eq!(results[at]["score"], 9);
        }
        for player in ["g1", "g2"] {
            world.client().delete(&format!("/v1/leaderboards/b/players/{player}")).expect(204);
        }
        world.unchanged(&request);
    }
}

#[test]
fn a_bad_row_says_which_it_is() {
    let mut world = World::start();
    let row = |board: &str, score: Value, id: Option<&str>| {
        let mut row = json!({"board": board, "player": "new", "score": score});
        if let Some(id) = id {
            row["id"] = json!(id);
        }
        row
    };
    let rows = json!({"scores": [row("b", json!("x"), Some("k1")), row("none", json!(1), Some("k2")), row("b", json!("x"), None),
        row("none", json!(1), None)]});
    let request = Request::new("POST", "/v1/scores/batch").json(&rows);
    let answer = world.client().send(&request).expect(200);
    for (at, result) in answer["results"].as_array().expect("results").iter().enumerate() {
        for member in ["board", "player", "id"] {
            assert_eq!(result.get(member), rows["scores"][at].get(member), "{member} of row {at}: {result}");
        }
        // `id` is the older name.
        assert_eq!(result.get("idempotency_key"), result.get("id"), "{result}");
        assert_eq!(result.as_object().map(|row| row.len()), Some(if at < 2 { 5 } else { 3 }), "{result}");
    }
    world.unchanged(&request);
}

#[test]
fn the_list_of_a_batch() {
    let mut world = World::start();
    let row = json!({"board": "b", "player": "new", "score": 1});
    world.refuse_lists("/v1/scores/batch", "scores", &row);
}

#[test]
fn fields_of_a_board() {
    let mut world = World::start();
    let target = "/v1/leaderboards/new";
    for (name, _) in tally_testkit::model::CHOICES {
        for value in
            [json!(null), json!(1), json!(""), json!("Best"), json!("up"), json!(["best"]), json!(true)]
        {
            let request = Request::new("PUT", target).json(&json!({name: value}));
            world.refuse(&request, 400, "invalid_field", Some(&format!("/{name}")));
        }
    }
    for value in [json!(null), json!(1), json!("true")] {
        let request = Request::new("PUT", target).json(&json!({"all_time": value}));
        world.refuse(&request, 400, "invalid_field", Some("/all_time"));
    }
    for name in ["counts", "created_at", "board", "Order", "x"] {
        let request = Request::new("PUT", target).json(&json!({name: "x"}));
        world.refuse(&request, 400, "unknown_field", Some(&format!("/{name}")));
    }
}

#[test]
fn fields_of_a_key() {
    let mut world = World::start();
    let mut refuse = |body: Value, code: &str, pointer: &str| {
        world.refuse(&Request::new("POST", "/v1/keys").json(&body), 400, code, Some(pointer));
    };
    refuse(json!({}), "invalid_field", "/role");
    for role in [json!(null), json!(1), json!(""), json!("Admin"), json!("member"), json!("root")] {
        refuse(json!({"role": role}), "invalid_field", "/role");
    }
    for name in [json!(null), json!(1), json!("x".repeat(129)), json!([])] {
        refuse(json!({"role": "reader", "name": name}), "invalid_field", "/name");
    }
    for name in ["id", "key", "x"] {
        refuse(json!({"role": "reader", name: "x"}), "unknown_field", &format!("/{name}"));
    }
}

#[test]
fn fields_of_archives() {
    let mut world = World::start();
    let mut refuse = |body: Value, code: &str, pointer: &str| {
        world.refuse(&Request::new("POST", "/v1/ledger/archives").json(&body), 400, code, Some(pointer));
    };
    refuse(json!({}), "invalid_field", "/before");
    for month in
        [json!(null), json!(2026), json!("2026"), json!("2026-13"), json!("2026-01-01"), json!("9999-12")]
    {
        refuse(json!({"before": month}), "invalid_field", "/before");
    }
    refuse(json!({"before": "2020-01", "until": "2020-02"}), "unknown_field", "/until");
}

#[test]
fn fields_of_a_webhook() {
    let mut world = World::start();
    let good = super::world::hook();
    let change = super::world::path(&super::routes_with("webhook")[0], &[]);
    let mut refuse = |name: &str, value: Option<Value>, code: &str, patched: bool| {
        let body = with(good.clone(), name, value);
        let request =
            if patched { Request::new("PATCH", &change) } else { Request::new("POST", "/v1/webhooks") };
        world.refuse(&request.json(&body), 400, code, Some(&format!("/{name}")));
    };
    refuse("url", None, "invalid_field", false);
    refuse("events", None, "invalid_field", false);
    refuse("enabled", Some(json!(true)), "unknown_field", false);
    for patched in [false, true] {
        let long = format!("https://localhost/{}", "x".repeat(1_024));
        let urls = [
            "",
            "x",
            "localhost",
            "http://localhost/",
            "https://",
            "https://a:0/",
            "https://u:p@a/",
            "ftp://a/",
            &long,
        ];
        let urls = urls.into_iter().chain([
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://10.1.2.3/",
            "https://a/#b",
        ]);
        for url in urls.map(Value::from).chain([json!(null), json!(1), json!([])]) {
            refuse("url", Some(url), "invalid_field", patched);
        }
        for events in
            [json!(null), json!("contest"), json!([]), json!(["score"]), json!(["contest", 1]), json!({})]
        {
            refuse("events", Some(events), "invalid_field", patched);
        }
        let many: Value =
            (0..17).map(|no| (format!("C{no}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
        for marks in
            [json!(null), json!([]), json!({"krw": 1}), json!({"KRW": 0}), json!({"KRW": "1.5"}), many]
        {
            refuse("balance_below", Some(marks), "invalid_field", patched);
        }
        for name in ["id", "secret", "disabled", "x"] {
            refuse(name, Some(json!("x")), "unknown_field", patched);
        }
    }
    for enabled in [json!(null), json!(1), json!("true")] {
        refuse("enabled", Some(enabled), "invalid_field", true);
    }
}

fn with(mut value: Value, name: &str, replaced: Option<Value>) -> Value {
    let object = value.as_object_mut().expect("it is an object");
    object.remove(name);
    object.extend(replaced.map(|replaced| (name.to_owned(), replaced)));
    value
}

#[test]
fn fields_of_an_import() {
    let mut world = World::start();
    let mut refuse = |body: String, code: &str, pointer: Option<&str>| {
        world.refuse(
            &Request::new("POST", "/v1/imports").body("application/x-ndjson", body),
            400,
            code,
            pointer,
        );
    };
    refuse(String::new(), "invalid_field", Some("/0"));
    refuse("\n\n".into(), "invalid_field", Some("/0"));
    refuse("[]".into(), "invalid_field", Some("/0"));
    for (name, values) in [
        ("board", vec![json!(null), json!(1), json!("a@b"), json!("")]),
        (
            "digest",
            vec![
                json!(null),
                json!("a"),
                json!("z".repeat(64)),
                json!("+a".repeat(32)),
                json!("ä".repeat(32)),
            ],
        ),
        ("lines_before", vec![json!(null), json!(-1), json!("0"), json!(0.5), json!(1e300)]),
        ("lines_after", vec![json!(null), json!(-1), json!("0")]),
        ("last", vec![json!(null), json!(1), json!("true")]),
    ] {
        for value in values {
            let body = import(&with(head(), name, Some(value)), &[row()]);
            refuse(body, "invalid_field", Some(&format!("/0/{name}")));
        }
        if name != "last" {
            refuse(import(&with(head(), name, None), &[row()]), "invalid_field", Some(&format!("/0/{name}")));
        }
    }
    refuse(
        import(&with(head(), "lines_before", Some(json!(3))), &[row()]),
        "invalid_field",
        Some("/0/lines_after"),
    );
    refuse(import(&with(head(), "x", Some(json!(3))), &[row()]), "unknown_field", Some("/0/x"));
    for (name, values) in [
        ("line", vec![json!(null), json!(-1), json!("2"), json!(0), json!(3)]),
        ("player", vec![json!(null), json!(1), json!(""), json!("."), json!("x".repeat(129))]),
        ("score", vec![json!(null), json!(true), json!("x"), json!("nan")]),
        ("at", vec![json!(null), json!(1), json!("now"), json!("2026-01-01")]),
    ] {
        for value in values {
            let body = import(&head(), &[with(row(), name, Some(value))]);
            refuse(body, "invalid_field", Some(&format!("/1/{name}")));
        }
        if name != "at" {
            refuse(import(&head(), &[with(row(), name, None)]), "invalid_field", Some(&format!("/1/{name}")));
        }
    }
    refuse(import(&head(), &[with(row(), "x", Some(json!(1)))]), "unknown_field", Some("/1/x"));
    refuse(import(&head(), &[row(), row()]), "invalid_field", Some("/2/line"));
    refuse(format!("{}\n{{", head()), "malformed_json", None);
    let far = with(head(), "lines_after", Some(json!(10_000)));
    let many: Vec<Value> = (1..=5_001).map(|line| with(row(), "line", Some(json!(line)))).collect();
    refuse(import(&far, &many), "invalid_field", Some(""));
}

#[test]
fn imports_that_do_not_fit() {
    let mut world = World::start();
    let send = |body: &str| Request::new("POST", "/v1/imports").body("application/x-ndjson", body);
    let nowhere = import(&with(head(), "board", Some(json!("none"))), &[row()]);
    world.refuse(&send(&nowhere), 404, "leaderboard_not_found", None);
    let gap = with(with(head(), "lines_before", Some(json!(5))), "lines_after", Some(json!(9)));
    world.refuse(&send(&import(&gap, &[])), 409, "import_out_of_order", None);
    let get = Request::new("GET", format!("/v1/imports/none/{DIGEST}"));
    world.refuse(&get, 404, "leaderboard_not_found", None);
}
