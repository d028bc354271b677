//! Pages of other origins: those that were configured may read, none may change anything.

use super::{TALLY, key, score, sum_board};
use serde_json::json;
use tally_testkit::{Request, Response, TestTally};

const OURS: &str = "https://game.example";
const SECOND: &str = "http://localhost:3000";
const FOREIGN: [&str; 5] = [
    "https://evil.example",
    "http://game.example",
    "https://game.example:444",
    "https://game.example.evil.example",
    "null",
];
const PAGE: &str = "/v1/leaderboards/b/scores";

fn server() -> TestTally {
    let origins = format!("{OURS}, {SECOND}");
    let server = TestTally::start_set(TALLY, &[("TALLY_HTTP_CORS_ORIGINS", &origins)]);
    sum_board(&server);
    server
}

fn from(origin: &str, request: Request) -> Request {
    request.header("Origin", origin)
}

fn preflight(method: &str, headers: &str) -> Request {
    let request = Request::new("OPTIONS", PAGE).header("Access-Control-Request-Method", method);
    request.header("Access-Control-Request-Headers", headers)
}

fn allowed(answer: &Response) -> Option<&str> {
    answer.header("access-control-allow-origin")
}

fn lists(answer: &Response, header: &str, word: &str) -> bool {
    let list = answer.header(header).unwrap_or_default();
    list.split(',').any(|one| one.trim().eq_ignore_ascii_case(word))
}

#[test]
fn a_configured_origin_reads_with_a_key() {
    let server = server();
    let reader = key(&mut server.local(), "reader");
    let mut client = server.client().with_key(&reader);
    for origin in [OURS, SECOND] {
        let answer = client.send(&from(origin, Request::new("GET", PAGE)));
        answer.expect(200);
        assert_eq!(allowed(&answer), Some(origin));
        assert!(lists(&answer, "vary", "origin"), "{answer:?}");
        // Also rejections: a page must be able to see why.
        let missing = client.send(&from(origin, Request::new("GET", "/v1/leaderboards/none")));
        missing.refused(404, "leaderboard_not_found");
        assert_eq!(allowed(&missing), Some(origin));
    }
    for origin in FOREIGN {
        let answer = client.send(&from(origin, Request::new("GET", PAGE)));
        assert_eq!(allowed(&answer), None, "{origin}");
    }
    assert_eq!(allowed(&client.get(PAGE)), None);
}

#[test]
fn a_preflight_of_a_configured_origin_allows_reads_only() {
    let server = server();
    key(&mut server.local(), "reader");
    // A browser sends no credential with it.
    let mut client = server.client();
    for origin in [OURS, SECOND] {
        let answer = client.send(&from(origin, preflight("GET", "authorization")));
        assert!([200, 204].contains(&answer.status), "{answer:?}");
        assert_eq!(allowed(&answer), Some(origin));
        assert!(lists(&answer, "access-control-allow-methods", "GET"), "{answer:?}");
        for header in ["authorization", "tally-int64"] {
            assert!(lists(&answer, "access-control-allow-headers", header), "{answer:?}");
        }
        for method in ["POST", "PUT", "DELETE", "*"] {
            let answer = client.send(&from(origin, preflight(method, "authorization, content-type")));
            assert!(!lists(&answer, "access-control-allow-methods", method), "{answer:?}");
        }
    }
    for origin in FOREIGN {
        let answer = client.send(&from(origin, preflight("GET", "authorization")));
        assert_eq!(allowed(&answer), None, "{origin}");
    }
}

/// Protected mode: a caller without a key is this machine, but a browser here may be driven by any page.
#[test]
fn without_a_key_a_configured_origin_reads_and_no_origin_writes() {
    let server = server();
    let mut client = server.client();
    for origin in [OURS, SECOND] {
        let answer = client.send(&from(origin, Request::new("GET", PAGE)));
        answer.expect(200);
        assert_eq!(allowed(&answer), Some(origin));
    }
    for origin in FOREIGN {
        let answer = client.send(&from(origin, Request::new("GET", PAGE)));
        answer.refused(403, "origin_refused");
        assert_eq!(allowed(&answer), None);
    }
}

#[test]
fn without_a_key_no_other_origin_changes_anything() {
    let server = server();
    let mut client = server.client();
    let row = json!({"player": "p", "score": 1});
    for origin in [&[OURS, SECOND][..], &FOREIGN[..]].concat() {
        for request in [
            Request::new("POST", PAGE).json(&row),
            Request::new("PUT", "/v1/leaderboards/new").json(&json!({})),
            Request::new("DELETE", "/v1/leaderboards/b"),
            Request::new("PUT", "/v1/players/p").json(&json!({})),
            Request::new("POST", "/v1/leaderboards/b/players/p/ban"),
            Request::new("POST", "/v1/keys").json(&json!({"role": "admin"})),
        ] {
            let answer = client.send(&from(origin, request));
            answer.refused(403, "origin_refused");
            assert_eq!(allowed(&answer), None, "{origin}");
        }
    }
    assert_eq!(score(&mut client, "p"), 0);
    client.get("/v1/leaderboards/new").refused(404, "leaderboard_not_found");
    client.get("/v1/players/p").refused(404, "player_not_found");
    assert_eq!(client.get("/v1/keys").expect(200)["items"], json!([]));
}

#[test]
fn without_configuration_no_other_origin_reads() {
    let server = TestTally::start(TALLY);
    sum_board(&server);
    let mut client = server.client();
    client.send(&from(OURS, Request::new("GET", PAGE))).refused(403, "origin_refused");
    let answer = client.send(&from(OURS, preflight("GET", "authorization")));
    answer.refused(405, "method_not_allowed");
    assert_eq!(allowed(&answer), None);
    let own = format!("http://{}", server.address());
    client.send(&from(&own, Request::new("GET", PAGE))).expect(200);
}
