//! Wrong requests at every endpoint: each gets its error, in one shape, and nothing changes.
//!
//! `mod.rs` has the cases of every route of the server's list. `fields`, `player_fields`, `contests` and `money` have the bodies
//! field by field, and `parameters` the queries. `world` has the server and the shape of a problem. Not here: callers without the
//! permission (`http_permissions`).

mod contests;
mod fields;
mod ledger_imports;
mod members;
mod money;
mod parameters;
mod periods;
mod player_fields;
mod world;

use serde_json::json;
use std::collections::BTreeSet;
use tally_testkit::Request;
use tally_testkit::routes::{Route, all};
use world::{World, valid};

/// A list of (text in the path, position of the error).
const BAD_SEGMENTS: [(&str, &[&str]); 11] = [
    (
        "board",
        &[
            "a%40b", "%00", "a%0Ab", "%7F", "%C2%85", ".", "..", "%2E", "%2e%2E", "%FF", "%C3", "%zz", "%2",
            "%",
        ],
    ),
    ("contest", &["a%40b", "a%3Ab", "a%2Fb", "%20", "%C3%A4", ".", "..", "%2E", "%FF", "%C3", "%zz", "%"]),
    ("series", &["a%40b", "a%3Ab", "%20", "%C3%A4", ".", "..", "%2E", "%FF", "%zz", "%"]),
    ("player", &[".", "..", "%2E%2e", "%FF", "a%C3", "%zz", "%"]),
    ("digest", &["a", "zz", "%FF", "%zz"]),
    ("key", &["a-b", "%20", "%FF", "%zz", "a_b"]),
    // An id of the server may have any form: an unknown one is 404.
    ("member", &["%FF", "a%C3", "%zz", "%"]),
    ("hold", &["%FF", "a%C3", "%zz", "%"]),
    ("transaction", &["%FF", "a%C3", "%zz", "%"]),
    ("webhook", &["%FF", "a%C3", "%zz", "%"]),
    ("delivery", &["%FF", "a%C3", "%zz", "%"]),
];

fn routes_with(name: &str) -> Vec<Route> {
    let wanted = format!("{{{name}}}");
    let found: Vec<Route> = all().into_iter().filter(|route| route.path.contains(&wanted)).collect();
    assert!(!found.is_empty(), "no route has {wanted}");
    found
}

/// Reads may come as a POST, for parameters that are too long for a query.
fn changes(route: &Route) -> bool {
    route.method != "GET" && !["Read", "Open"].contains(&route.right.as_str())
}

fn may_have_body(route: &Route) -> bool {
    route.method != "GET"
}

/// A change of state alone is a POST without a body.
fn has_body(route: &Route) -> bool {
    ["PATCH", "POST", "PUT"].contains(&route.method.as_str()) && world::valid(route).body.is_some()
}

fn is_import(route: &Route) -> bool {
    route.method == "POST" && route.path.starts_with("/v1/imports")
}

#[test]
fn every_route_is_tried_and_its_valid_request_is_valid() {
    let (reads, changes): (Vec<Route>, Vec<Route>) =
        all().into_iter().partition(|route| route.method == "GET");
    let mut world = World::start();
    world.client().put("/v1/players/p", &json!({"name": "P"})).expect(201);
    reads.iter().for_each(|route| send_valid(&mut world, route));
    for route in changes {
        // A world each: the valid request may delete the data of the next one.
        let mut world = World::start();
        if route.path == "/v1/players/{player}" {
            world.client().put("/v1/players/p", &json!({"name": "P"})).expect(201);
        }
        send_valid(&mut world, &route);
    }
}

fn send_valid(world: &mut World, route: &Route) {
    // A connection each: a stream of events does not end.
    let answer = world.server.client().send(&valid(route));
    match route.path.as_str() {
        // There is no key in this world: with one, it would need a credential.
        "/v1/keys/{key}" => answer.refused(404, "key_not_found"),
        // There is no money, which is reported whether the number has an owner or not.
        "/transfer/phone-num" => answer.refused(422, "insufficient_funds"),
        // There is money, and `force` is not set.
        path if ["/close", "/erase"].iter().any(|end| path.ends_with(end)) => {
            answer.refused(409, "wallet_not_empty");
        }
        _ => assert!((200..300).contains(&answer.status), "{route:?}: {} {}", answer.status, answer.text()),
    }
}

#[test]
fn paths_are_checked_segment_by_segment() {
    let mut world = World::start();
    let long = "x".repeat(129);
    let long_bytes = "%C3%A4".repeat(65);
    let plus = "+a".repeat(32);
    for (name, segments) in BAD_SEGMENTS {
        let more: &[&str] = match name {
            "digest" => &[&long, &plus],
            "key" => &[&long],
            "member" | "hold" | "transaction" | "webhook" | "delivery" => &[],
            _ => &[&long, &long_bytes],
        };
        for route in routes_with(name) {
            for segment in segments.iter().chain(more) {
                let mut request = valid(&route);
                request.target = world::path(&route, &[(name, segment)]).into_bytes();
                world.refuse(&request, 400, "invalid_parameter", Some(name));
            }
        }
    }
}

#[test]
fn queries_are_known_and_encoded() {
    let mut world = World::start();
    for route in all() {
        for (query, code, pointer) in [
            ("nope=1", "unknown_parameter", "nope"),
            ("nope", "unknown_parameter", "nope"),
            ("Limit=5", "unknown_parameter", "Limit"),
            ("%6Eope=1", "unknown_parameter", "nope"),
            ("x=%FF", "invalid_parameter", "x"),
            ("x=%zz", "invalid_parameter", "x"),
            ("x=%", "invalid_parameter", "x"),
        ] {
            let mut request = valid(&route);
            let mark = if request.target.contains(&b'?') { '&' } else { '?' };
            request.target.extend_from_slice(format!("{mark}{query}").as_bytes());
            world.refuse(&request, 400, code, Some(pointer));
        }
    }
}

#[test]
fn methods_are_told() {
    let mut world = World::start();
    let paths: BTreeSet<String> = all().into_iter().map(|route| route.path).collect();
    for path in paths {
        let here: Vec<Route> = all().into_iter().filter(|route| route.path == path).collect();
        let has: BTreeSet<&str> = here.iter().map(|route| route.method.as_str()).collect();
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            if has.contains(method) {
                continue;
            }
            let request = Request::new(method, world::path(&here[0], &[]));
            let answer = world.refuse(&request, 405, "method_not_allowed", None);
            let allow = answer.header("allow").expect("it says what is allowed").to_owned();
            let told: BTreeSet<&str> = allow.split(", ").filter(|told| *told != "HEAD").collect();
            assert_eq!(told, has, "{method} {path}");
        }
    }
}

#[test]
fn paths_that_are_nowhere() {
    let mut world = World::start();
    for path in [
        "/console",
        "/console/",
        "/console/nothing.js",
        "/v1",
        "/v2/leaderboards",
        "/v1/leaderboards/",
        "/v1/leaderboards/b/",
        "/v1/leaderboards/b/nope",
        "/v1/leaderboards/b/players/",
        "/v1/leaderboards//scores",
        "/v1/keys/",
        "/metrics/",
        "/healthz/",
        "//",
        "/v1/%2F",
    ] {
        world.refuse(&Request::new("GET", path), 404, "not_found", None);
    }
}

#[test]
fn bodies_have_a_type() {
    let mut world = World::start();
    for route in all().iter().filter(|route| may_have_body(route)) {
        let given = valid(route).body.unwrap_or_else(|| b"{}".to_vec());
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonx",
            "",
            "multipart/form-data; boundary=x",
        ] {
            let request = world::bare(route).body(kind, given.clone());
            world.refuse(&request, 415, "unsupported_media_type", None);
        }
        let mut without = world::bare(route);
        without.body = Some(given);
        world.refuse(&without, 415, "unsupported_media_type", None);
    }
}

#[test]
fn a_type_may_have_parameters_and_any_case() {
    let mut world = World::start();
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"] {
        let request =
            Request::new("POST", "/v1/leaderboards/b/scores").body(kind, "{\"player\":\"t\",\"score\":1}");
        world.client().send(&request).expect(200);
    }
}

#[test]
fn bodies_have_a_bound() {
    let mut world = World::start();
    for route in all().iter().filter(|route| may_have_body(route)) {
        let kind = if is_import(route) { "application/x-ndjson" } else { "application/json" };
        for length in [(2 << 20) + 1, 9 << 20] {
            let request = world::bare(route).body(kind, vec![b' '; length]);
            world.refuse(&request, 413, "payload_too_large", None);
        }
    }
    // At the bound it is read.
    let mut body = b"{\"player\":\"t\",\"score\":1}".to_vec();
    body.resize(2 << 20, b' ');
    let request = Request::new("POST", "/v1/leaderboards/b/scores").body("application/json", body);
    world.client().send(&request).expect(200);
}

#[test]
fn bodies_are_json() {
    let mut world = World::start();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let texts: [&[u8]; 9] = [
        b"{",
        b"{\"player\"}",
        b"{} x",
        b"nul",
        b"{\"player\":\"\xFF\",\"score\":1}",
        b"\xEF\xBB\xBF{}",
        b"{'player':1}",
        b"{\"player\":\"\\ud800\",\"score\":1}",
        deep.as_bytes(),
    ];
    for route in all().iter().filter(|route| may_have_body(route)) {
        let kind = if is_import(route) { "application/x-ndjson" } else { "application/json" };
        for text in texts {
            let request = world::bare(route).body(kind, text);
            // The sign-in has a bound of its own.
            let too_large = route.path == "/auth/signin" && text.len() > 4_096;
            let (status, code) = if too_large { (413, "payload_too_large") } else { (400, "malformed_json") };
            world.refuse(&request, status, code, None);
        }
    }
    for route in all().iter().filter(|route| has_body(route) && !is_import(route)) {
        for body in [json!([]), json!(1), json!("x"), json!(null), json!([{}])] {
            let request = world::bare(route).json(&body);
            world.refuse(&request, 400, "invalid_field", Some(""));
        }
        // A member applies for itself with an empty body.
        if route.method == "POST" && !route.path.ends_with("/applications") {
            let request = world::bare(route).body("application/json", "");
            world.refuse(&request, 400, "malformed_json", None);
        }
    }
}

#[test]
fn what_has_no_body_takes_none() {
    let mut world = World::start();
    let optional =
        |route: &Route| ["/capture", "/reverse", "/void"].iter().any(|end| route.path.ends_with(end));
    for route in all().iter().filter(|route| may_have_body(route) && !has_body(route) && !optional(route)) {
        for body in [json!({"x": 1}), json!([]), json!(1), json!(null)] {
            let request = world::bare(route).json(&body);
            let answer = world.client().send(&request);
            assert_eq!(answer.status, 400, "{route:?} {body}: {}", answer.text());
            world.unchanged(&request);
        }
    }
}

#[test]
fn idempotency_keys_have_a_form_everywhere() {
    let mut world = World::start();
    let long = "x".repeat(256);
    for route in all().iter().filter(|route| changes(route)) {
        for key in ["", "a b", &long, "ä", "a\tb"] {
            let request = valid(route).idempotent(key);
            world.refuse(&request, 400, "invalid_parameter", Some("Idempotency-Key"));
        }
        let twice = valid(route).idempotent("a").idempotent("b");
        world.refuse(&twice, 400, "invalid_parameter", Some("Idempotency-Key"));
    }
}

#[test]
fn the_form_of_integers_has_two_words() {
    let mut world = World::start();
    let shows_scores = [
        "/v1/leaderboards/{board}/scores",
        "/v1/leaderboards/{board}/players/{player}",
        "/v1/leaderboards/{board}/players/{player}/around",
        "/v1/leaderboards/{board}/among",
        "/v1/contests/{contest}/players/{player}/correct",
        "/v1/leaderboards/{board}/players/{player}/correct",
        "/v1/players/{player}/ranks",
        "/v1/ranks",
        "/v1/scores/batch",
    ];
    for route in
        all().iter().filter(|route| shows_scores.contains(&route.path.as_str()) && route.method != "DELETE")
    {
        for word in ["", "String", "int", "true"] {
            let request = valid(route).header("Tally-Int64", word);
            world.refuse(&request, 400, "invalid_parameter", Some("Tally-Int64"));
        }
    }
}

#[test]
fn bytes_that_are_no_http_end_the_connection_and_nothing_else() {
    let mut world = World::start();
    for bytes in [
        b"GET /v1/leaderboards HTTP/1.1\r\nbad header\r\n\r\n".as_slice(),
        b"GET /v1/leaderboards\x00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 tls \r\n\r\n",
        b"GET /v1/leaderboards HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /v1/leaderboards/b/scores HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n",
    ] {
        // It may get an answer, or just be closed.
        if let Ok(answer) = world.server.client().raw(bytes) {
            assert!((400..600).contains(&answer.status), "{}: {answer:?}", String::from_utf8_lossy(bytes));
        }
    }
    let request = Request::new("GET", "/v1/leaderboards");
    world.unchanged(&request);
}

/// Bounds of a head are written down: 64 KiB and 100 fields, past them 431.
#[test]
fn heads_have_bounds() {
    let world = World::start();
    let fields = |count: usize, length: usize| {
        let value = "y".repeat(length);
        (0..count).fold(String::new(), |fields, at| format!("{fields}X-{at}: {value}\r\n"))
    };
    let wanted = [(90, 1, 200), (1, 50_000, 200), (200, 1, 431), (1, 1_000_000, 431)];
    let told = wanted.map(|(count, length, _)| {
        let request = format!("GET /healthz HTTP/1.1\r\nHost: h\r\n{}\r\n", fields(count, length));
        // 0 where there is no reply.
        let status = world.server.client().raw(request.as_bytes()).map_or(0, |answer| answer.status);
        (count, length, status)
    });
    assert_eq!(told, wanted, "(fields, bytes each, status)");
}
