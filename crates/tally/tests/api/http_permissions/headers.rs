//! What every answer says of caches and of its type, for each kind of caller and each outcome.
//!
//! Caches may keep leaderboards, ranks and contests, from which the command writes exports. Everything else and every error
//! is `no-store`. Not here: files of the console and of the description.

use super::{create_key, prepare, request, sign_in};
use crate::TALLY;
use serde_json::json;
use std::collections::BTreeSet;
use tally_testkit::routes::{Route, all};
use tally_testkit::{Client, Request, Response, TestTally};

/// Whether the answer is a page that caches may keep.
fn is_public(route: &Route, answer: &Response) -> bool {
    route.right == "Read" && answer.status < 300 && !route.path.ends_with("/events")
}

#[track_caller]
fn check(answer: &Response, public: bool, what: &str) {
    let what = format!("{what}: {}", answer.status);
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{what}");
    assert_eq!(answer.header("cache-control"), (!public).then_some("no-store"), "{what}");
}

/// Tries every route as one caller; the statuses that came.
fn try_all(server: &TestTally, caller: &str, key: Option<&str>) -> BTreeSet<u16> {
    let mut client = server.client();
    if let Some(key) = key {
        client = client.with_key(key);
    }
    let mut statuses = BTreeSet::new();
    for (number, route) in all().iter().enumerate() {
        let answer = client.send(&request(route, number));
        check(&answer, is_public(route, &answer), &format!("{caller} at {} {}", route.method, route.path));
        statuses.insert(answer.status);
    }
    statuses
}

#[test]
fn every_answer_has_nosniff_and_no_store_unless_it_is_public() {
    let server = TestTally::start(TALLY);
    prepare(&mut server.local());
    let (_, reader) = create_key(&mut server.local(), "reader");
    let member = sign_in(&server).expect("the password is right");
    let none = try_all(&server, "no credential", None);
    assert!(none.contains(&401) && none.contains(&200), "signing in needs no credential: {none:?}");
    let read = try_all(&server, "a reader", Some(&reader));
    assert!(read.contains(&200) && read.contains(&403), "{read:?}");
    let own = try_all(&server, "a member", Some(&member));
    assert!(own.contains(&200) && own.contains(&403), "{own:?}");
    let local = format!("tally_local_{}", server.token());
    let done = try_all(&server, "this machine", Some(&local));
    assert!([200, 201, 204, 404].iter().all(|status| done.contains(status)), "{done:?}");
}

#[test]
fn what_no_operation_answers_has_both_headers_too() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    let page = "/v1/leaderboards/b/scores";
    let long = " ".repeat(3 << 20);
    for (request, status) in [
        (Request::new("GET", "/v1/nothing"), 404),
        (Request::new("GET", "/nothing"), 404),
        (Request::new("PATCH", "/v1/keys"), 405),
        (Request::new("GET", "/v1/leaderboards/none"), 404),
        (Request::new("GET", format!("{page}?limit=none")), 400),
        (Request::new("GET", page).header("Host", "evil.example").header("Host", "localhost"), 400),
        (Request::new("POST", page).body("application/json", "{"), 400),
        (Request::new("POST", page).body("application/json", long), 413),
        (Request::new("POST", page).body("text/plain", "{}"), 415),
        (Request::new("HEAD", "/v1/keys"), 200),
    ] {
        let answer = local.send(&request);
        assert_eq!(answer.status, status, "{request:?}");
        check(&answer, false, &format!("{} {}", request.method, String::from_utf8_lossy(&request.target)));
    }
    let refused = |request: Request, status: u16| {
        let answer = Client::new(server.address()).send(&request);
        assert_eq!(answer.status, status, "{}", answer.text());
        check(&answer, false, &format!("{request:?}"));
    };
    refused(Request::new("GET", page).header("Host", "evil.example"), 403);
    refused(Request::new("GET", page).header("Origin", "http://evil.example"), 403);
    check(&local.send(&Request::new("HEAD", page)), true, "the head of a page");
}
