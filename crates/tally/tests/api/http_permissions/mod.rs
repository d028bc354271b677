//! Permissions: every kind of caller at every route, keys that come and go, protected mode, browsers.
//!
//! The expectation is written from the contract's table, the routes come from the server's list. A refused caller must
//! leave no trace. Not here: the reply to an allowed request, and the life of a member's token (`tokens`).

mod headers;
mod scopes;
mod tokens;

use crate::TALLY;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use tally_testkit::routes::{Route, all};
use tally_testkit::{Client, Request, Response, TestTally};

/// A request to this route that would be allowed to one caller, on a board of its own.
fn request(route: &Route, number: usize) -> Request {
    let board = format!("b{number}");
    let nobody = "0190f8a0-0000-7000-8000-000000000000";
    let path = route.path_with(&[
        ("board", &board),
        ("player", "p"),
        ("digest", &"a".repeat(64)),
        ("key", "nosuchkey"),
        ("member", nobody),
        ("hold", nobody),
        ("transaction", nobody),
        ("contest", &format!("c{number}")),
        ("series", &format!("s{number}")),
        ("webhook", nobody),
        ("delivery", "b1.1.1"),
    ]);
    let request = Request::new(&route.method, &path);
    match (route.method.as_str(), route.path.as_str()) {
        ("POST", "/v1/imports") => {
            let head = json!({"board": board, "digest": "b".repeat(64), "lines_before": 0, "lines_after": 2});
            let row = json!({"line": 2, "player": "imported", "score": 1});
            request.body("application/x-ndjson", format!("{head}\n{row}"))
        }
        ("POST", path @ ("/v1/imports/members" | "/v1/imports/transfers")) => {
            let head = json!({"digest": "c".repeat(64), "lines_before": 0, "lines_after": 2});
            let row = if path.ends_with("/members") {
                json!({"line": 2, "login_id": "imported"})
            } else {
                json!({"line": 2, "from": "nobody", "to": "imported", "amount": 1})
            };
            request.body("application/x-ndjson", format!("{head}\n{row}"))
        }
        ("POST", "/v1/keys") => request.json(&json!({"role": "reader"})),
        ("POST", "/v1/ledger/archives") => request.json(&json!({"before": "1970-02"})),
        ("POST", "/v1/webhooks") => {
            request.json(&json!({"url": "https://localhost:9/", "events": ["contest"]}))
        }
        ("PATCH", "/v1/webhooks/{webhook}") => request.json(&json!({"enabled": false})),
        ("POST", path) if path.starts_with("/v1/webhooks/") => request,
        ("POST", "/auth/signin") => request.json(&json!({"loginId": "signer", "password": "open sesame"})),
        ("POST", "/transfer/phone-num") => {
            let body = json!({"phoneNumber": "010-0000", "amount": 1, "password": 42});
            request.json(&body).idempotent(&format!("k{number}"))
        }
        ("POST", path)
            if ["/close", "/erase", "/repay", "/unlock-pin", "/sign-out"]
                .iter()
                .any(|end| path.ends_with(end)) =>
        {
            request
        }
        ("POST", "/v1/contest-series") => request.json(&series(&format!("n{number}"))),
        ("PATCH", "/v1/contest-series/{series}") => request.json(&json!({"ahead": 2})),
        ("POST", "/v1/contests") => request.json(&json!({"id": format!("n{number}"), "title": "N"})),
        ("POST", path) if path.ends_with("/applications") => request.json(&json!({"player": "p"})),
        ("POST", path) if path.contains("/applications/") => request.json(&json!({"players": ["p"]})),
        ("POST", path) if path.ends_with("/correct") => request.json(&json!({"score": 1, "reason": "r"})),
        ("POST", path) if path.starts_with("/v1/contests/") => request,
        ("PATCH", "/v1/contests/{contest}") => request.json(&json!({"title": "New"})),
        ("PATCH", _) => request.json(&json!({"name": "New"})),
        ("GET", "/v1/players") => Request::new("GET", "/v1/players?prefix=p"),
        ("GET", "/v1/members") => Request::new("GET", "/v1/members?login_id=ann"),
        ("POST", "/v1/members") => request
            .json(&json!({"login_id": format!("m{number}"), "name": "M", "player": format!("m{number}")})),
        ("POST", "/v1/deposits") => request.json(&json!({"to": nobody, "amount": 1})),
        ("POST", "/v1/withdrawals") => request.json(&json!({"from": nobody, "amount": 1})),
        ("POST", "/v1/transfers") => request.json(&json!({"from": nobody, "to": nobody, "amount": 1})),
        ("POST", "/v1/transfers/batch") => request.json(&json!({"transfers": [{}]})),
        ("POST", "/v1/holds") => request.json(&json!({"member": nobody, "amount": 1})),
        ("POST", path) if path.starts_with("/v1/holds/") || path.ends_with("/reverse") => request,
        ("POST", "/v1/scores/batch") => {
            request.json(&json!({"scores": [{"board": board, "player": "p", "score": 2}]}))
        }
        ("POST", "/v1/ranks") => request.json(&json!({"ranks": [{"board": board, "player": "p"}]})),
        ("POST", path) if path.ends_with("/among") => request.json(&json!({"players": ["p"]})),
        ("POST", _) => request.json(&json!({"player": "p", "score": 2})),
        ("PUT", _) => request.json(&json!({})),
        _ => request,
    }
}

/// A series of contests, one a year.
fn series(id: &str) -> Value {
    json!({"id": id, "template": {"title": "S"}, "open": "0 0 1 1 *", "start": "0 1 1 1 *", "end": "0 2 1 1 *"})
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Allowed,
    Refused(u16, &'static str),
}
use Expected::{Allowed, Refused};

const UNAUTHORIZED: Expected = Refused(401, "unauthorized");
const FORBIDDEN: Expected = Refused(403, "forbidden");

/// Signing in needs nothing.
fn unless_open(route: &Route, otherwise: Expected) -> Expected {
    if route.right == "Open" { Allowed } else { otherwise }
}

/// The contract for a member that has signed in, at contests that it does not run and for another player.
fn of_member(route: &Route) -> Expected {
    if ["Open", "Own", "Read"].contains(&route.right.as_str()) { Allowed } else { FORBIDDEN }
}

/// The contract for a caller of this role at this operation. A server's key without a named player is no staff.
fn of_role(role: &str, route: &Route) -> Expected {
    let applies = route.path.ends_with("/applications") || route.path.ends_with("/applications/{player}");
    match (role, route.right.as_str()) {
        ("server", "Play") if applies && route.method != "GET" => Allowed,
        (_, "Own") => FORBIDDEN,
        (_, "Open") => Allowed,
        ("admin", _) | (_, "Observe" | "Read") | ("server", "Write" | "Members") => Allowed,
        _ => FORBIDDEN,
    }
}

#[track_caller]
fn check(answer: &Response, expected: Expected, what: &str) {
    match expected {
        Allowed => assert!(
            ![401, 403, 500, 503].contains(&answer.status),
            "{what} should be allowed: {} {}",
            answer.status,
            answer.text()
        ),
        Refused(status, code) => {
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{what}: {}", answer.text());
            let challenge =
                answer.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer"));
            assert_eq!(challenge, status == 401, "{what}: {answer:?}");
            assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{what}");
        }
    }
}

/// Everything there is, to see that nothing changed.
fn state(local: &mut Client) -> Vec<Value> {
    let mut state =
        vec![local.get("/v1/keys?limit=1000").expect(200), local.get("/v1/ledger/accounts").expect(200)];
    state.push(local.get("/v1/audit?limit=1000").expect(200));
    state.push(local.get("/v1/contests?limit=1000").expect(200));
    state.push(local.get("/v1/webhooks").expect(200));
    state.push(local.get("/v1/contest-series?limit=1000").expect(200));
    for board in tally_testkit::audit::boards(local) {
        let name = board["board"].as_str().expect("a name").to_owned();
        state.push(local.get(&format!("/v1/leaderboards/{name}/scores?limit=1000")).expect(200));
        state.push(board);
    }
    state
}

/// A board for each route, so that a deletion spoils no other case.
fn prepare(local: &mut Client) {
    let signer = json!({"login_id": "signer", "name": "S", "password": "open sesame", "pin": "0042"});
    local.post("/v1/members", &signer).expect(201);
    let mut rows = Vec::new();
    for (number, route) in all().iter().enumerate() {
        if route.path.contains("{series}") {
            local.post("/v1/contest-series", &series(&format!("s{number}"))).expect(201);
        }
        if route.path.contains("{contest}") {
            local.post("/v1/contests", &json!({"id": format!("c{number}"), "title": "C"})).expect(201);
        }
        // Some name the board in their body.
        if route.path.contains("{board}") || route.method == "POST" {
            local.put(&format!("/v1/leaderboards/b{number}"), &json!({})).expect(201);
            rows.push(json!({"board": format!("b{number}"), "player": "p", "score": 1}));
        }
    }
    local.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
}

fn create_key(local: &mut Client, role: &str) -> (String, String) {
    let created = local.post("/v1/keys", &json!({"role": role, "name": role})).expect(201);
    let text = |name: &str| created[name].as_str().expect("a text").to_owned();
    (text("id"), text("key"))
}

/// Tries every route as one caller; refused ones must change nothing. Those come first and together, because comparing
/// everything costs as much as trying all routes. Each route has a board and a contest of its own, so a change names its
/// route.
fn try_all(
    server: &TestTally,
    who: &str,
    caller: impl Fn(Request) -> Request,
    expected: impl Fn(&Route) -> Expected,
) {
    let (mut client, mut local) = (server.client(), server.local());
    let mut try_one = |number: usize, route: &Route, expected: Expected| {
        let answer = client.send(&caller(request(route, number)));
        check(&answer, expected, &format!("{who} at {} {}", route.method, route.path));
    };
    let routes = all();
    let numbered = || routes.iter().enumerate().map(|(number, route)| (number, route, expected(route)));
    let before = state(&mut local);
    for (number, route, expected) in numbered().filter(|(_, _, expected)| *expected != Allowed) {
        try_one(number, route, expected);
    }
    let after = state(&mut local);
    for (was, is) in before.iter().zip(&after) {
        assert_eq!(was, is, "{who} was refused, and yet");
    }
    assert_eq!(before.len(), after.len(), "{who} was refused, and yet there is more, or less");
    for (number, route, expected) in numbered().filter(|(_, _, expected)| *expected == Allowed) {
        try_one(number, route, expected);
    }
}

#[test]
fn a_proxy_makes_no_caller_admin() {
    let mut server = TestTally::start(TALLY);
    server.allow("not in `http.trusted_proxies`");
    prepare(&mut server.local());
    let proxies = [
        ("Forwarded", "for=192.0.2.1"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Forwarded-Host", "tally.example"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("x-forwarded-port", "443"),
        ("Via", "1.1 proxy"),
        ("X-Real-IP", "127.0.0.1"),
    ];
    for (name, value) in proxies {
        try_all(
            &server,
            &format!("a proxy ({name})"),
            |request| request.header(name, value),
            |route| unless_open(route, UNAUTHORIZED),
        );
    }
}

/// Headers of other proxies are known, too; one route is enough to see it.
#[test]
fn no_proxy_is_taken_for_this_machine() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let ask = Request::new("GET", "/v1/leaderboards");
    for name in [
        "CF-Connecting-IP",
        "CF-Ray",
        "CDN-Loop",
        "True-Client-IP",
        "X-Client-IP",
        "X-Cluster-Client-IP",
        "Fastly-Client-IP",
        "X-Azure-ClientIP",
        "X-Original-Forwarded-For",
        "X-Original-Host",
        "X-Envoy-External-Address",
        "X-Forwarded",
        "Proxy-Connection",
    ] {
        check(&client.send(&ask.clone().header(name, "127.0.0.1")), UNAUTHORIZED, name);
    }
    check(&client.send(&ask), Allowed, "no proxy");
    // nginx with nothing but `proxy_pass` adds no header, and speaks HTTP/1.0.
    let old =
        server.client().raw(b"GET /v1/leaderboards HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").expect("an answer");
    assert_eq!(old.status, 401, "{}", old.text());
    // The token of this machine is a credential: how it came does not matter, as long as it came from here.
    check(&server.local().send(&ask.header("Via", "1.1 proxy")), Allowed, "the token");
}

#[test]
fn one_request_has_one_host() {
    let server = TestTally::start(TALLY);
    let ask = |head: &str| {
        let head = format!("GET /v1/leaderboards {head}\r\n\r\n");
        server.client().raw(head.as_bytes()).expect("an answer").status
    };
    assert_eq!(ask("HTTP/1.1\r\nHost: localhost\r\nHost: localhost"), 400);
    assert_eq!(ask("HTTP/1.1\r\nHost: localhost\r\nHost: evil.example"), 400);
    assert_eq!(ask("HTTP/1.1\r\nHost: localhost"), 200);
    let absolute = |path: &str, host: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        server.client().raw(head.as_bytes()).expect("an answer").status
    };
    assert_eq!(absolute("http://localhost/v1/leaderboards", "localhost"), 200);
    assert_eq!(absolute("http://evil.example/v1/leaderboards", "localhost"), 400);
    // Paths that need no credential are no exception.
    assert_eq!(absolute("http://evil.example/healthz", "localhost"), 400);
}

/// Other machines reach a listener on all addresses, and so do proxies in the pod of the server.
#[test]
fn a_listener_for_others_needs_a_credential_from_everyone() {
    let mut server = TestTally::stopped(TALLY);
    server.listen_on(Ipv4Addr::UNSPECIFIED.into());
    server.restart();
    check(&server.client().get("/v1/leaderboards"), UNAUTHORIZED, "the loopback interface");
    server.local().get("/v1/leaderboards").expect(200);
    server.run(&["keys", "list"]).expect(0);
}

#[test]
fn keys_can_be_required_from_the_start() {
    let server = TestTally::start_set(TALLY, &[("TALLY_KEYS_REQUIRED", "true")]);
    check(&server.client().get("/v1/leaderboards"), UNAUTHORIZED, "the loopback interface");
    server.run(&["keys", "create", "--role", "admin"]).expect(0);
    let wrong = TestTally::stopped(TALLY);
    let mut command = tally_testkit::command::command(TALLY, &["serve"]);
    command.arg("--data").arg(wrong.data()).env("TALLY_KEYS_REQUIRED", "never");
    assert_eq!(command.output().expect("it runs").status.code(), Some(2));
}

/// The token of this machine is in a file. A copy of it elsewhere is of no use.
#[test]
fn the_token_of_this_machine_works_on_this_machine_only() {
    let elsewhere = tally_testkit::own_address();
    let mut server = TestTally::stopped(TALLY);
    server.listen_on(Ipv4Addr::UNSPECIFIED.into());
    server.restart();
    let mut far = Client::new((elsewhere, server.address().port()).into());
    far = far.with_key(&format!("tally_local_{}", server.token()));
    check(&far.get("/v1/leaderboards"), UNAUTHORIZED, "another address of this machine");
    server.local().get("/v1/leaderboards").expect(200);
    // A server that does not listen on the loopback interface has a listener there for commands.
    let mut distant = TestTally::stopped(TALLY);
    distant.listen_on(elsewhere);
    distant.restart();
    assert!(distant.address().ip().is_loopback() && !distant.resp().ip().is_loopback());
    distant.run(&["keys", "create", "--role", "admin"]).expect(0);
}

#[test]
fn browsers_sent_by_others_are_refused() {
    let server = TestTally::start(TALLY);
    prepare(&mut server.local());
    for host in [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "[::1].evil.example",
        "[::1]evil",
        "127.0.0.1:evil",
        "[::1",
        "localhost:80:80",
        "user@localhost",
        "localhost:",
        "localhost:99999",
    ] {
        let excepted = |route: &Route| route.path == "/metrics";
        let refused = |route: &Route| if excepted(route) { Allowed } else { Refused(403, "host_refused") };
        try_all(&server, &format!("host {host:?}"), |request| request.header("Host", host), refused);
    }
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "file://"] {
        let refused = |_: &Route| Refused(403, "origin_refused");
        try_all(&server, &format!("origin {origin}"), |request| request.header("Origin", origin), refused);
    }
}

#[test]
fn a_bad_credential_never_falls_back() {
    let server = TestTally::start(TALLY);
    prepare(&mut server.local());
    let bad = [
        "Bearer tally_abc_def",
        "Bearer tally_local_0000000000000000000000000000000000000000000000000000000000000000",
        "Bearer tally_local_",
        "Bearer ",
        "Bearer",
        "Basic dXNlcjpwYXNz",
        "tally_abc_def",
        "",
    ];
    // In protected mode the same request without the credential would be allowed.
    for value in bad {
        try_all(
            &server,
            &format!("credential {value:?}"),
            |request| request.header("Authorization", value),
            |_| UNAUTHORIZED,
        );
    }
    let (_, admin) = create_key(&mut server.local(), "admin");
    let broken = [
        format!("{admin}x"),
        admin[..admin.len() - 1].to_owned(),
        admin.to_uppercase(),
        format!("{admin} {admin}"),
    ];
    for key in &broken {
        let answer = server.client().send(&Request::new("GET", "/v1/leaderboards").key(key));
        check(&answer, UNAUTHORIZED, key);
    }
    let twice = Request::new("GET", "/v1/leaderboards").key(&admin).key(&admin);
    check(&server.client().send(&twice), UNAUTHORIZED, "two credentials");
}

#[test]
fn this_machine_is_admin_in_protected_mode() {
    let server = TestTally::start(TALLY);
    prepare(&mut server.local());
    let key_route = |route: &Route| route.path.starts_with("/v1/keys") && route.method == "POST";
    // Creating a key would end protected mode: it has its own test.
    let mut client = server.client();
    for (number, route) in all().iter().enumerate().filter(|(_, route)| !key_route(route)) {
        let what = format!("nobody at {} {}", route.method, route.path);
        check(&client.send(&request(route, number)), of_role("admin", route), &what);
    }
    let port = server.address().port();
    for host in [
        format!("localhost:{port}"),
        "LOCALHOST".into(),
        "[::1]:8420".into(),
        "192.0.2.7".into(),
        "a.localhost".into(),
    ] {
        let answer = client.send(&Request::new("GET", "/v1/leaderboards").header("Host", &host));
        check(&answer, Allowed, &host);
    }
    let own = format!("http://127.0.0.1:{port}");
    check(&client.send(&Request::new("GET", "/v1/leaderboards").header("Origin", &own)), Allowed, &own);
}

#[test]
fn roles_have_their_rights() {
    for role in ["admin", "server", "reader"] {
        let server = TestTally::start(TALLY);
        prepare(&mut server.local());
        let (_, key) = create_key(&mut server.local(), role);
        try_all(&server, role, |request| request.key(&key), |route| of_role(role, route));
        // A key is no browser's: neither host nor origin nor a proxy blocks it.
        let far = Request::new("GET", "/v1/leaderboards").key(&key).header("Host", "tally.example");
        let far = far.header("Origin", "http://evil.example").header("X-Forwarded-For", "192.0.2.1");
        check(&server.client().send(&far), Allowed, role);
        let lower = Request::new("GET", "/v1/leaderboards").header("authorization", &format!("bearer {key}"));
        check(&server.client().send(&lower), Allowed, "the scheme's case");
    }
}

#[test]
fn members_have_what_is_their_own() {
    let server = TestTally::start(TALLY);
    prepare(&mut server.local());
    create_key(&mut server.local(), "admin");
    let token = sign_in(&server).expect("the password is right");
    try_all(&server, "a member", |request| request.key(&token), of_member);
    let acting = Request::new("GET", "/v1/me").key(&token).header("Tally-Acting-Player", "p");
    check(&server.client().send(&acting), FORBIDDEN, "a member for somebody else");
    let mut player = server.client().with_key(&token);
    player.get("/v1/players/p").refused(404, "player_not_found");
}

fn sign_in(server: &TestTally) -> Option<String> {
    let signer = json!({"loginId": "signer", "password": "open sesame"});
    let answer = server.client().post("/auth/signin", &signer);
    (answer.status == 200).then(|| answer.json()["data"]["accessToken"].as_str().expect("a token").to_owned())
}

#[test]
fn the_first_key_ends_protected_mode_and_revoking_ends_a_key() {
    let mut server = TestTally::start(TALLY);
    prepare(&mut server.local());
    let mut anonymous = server.client();
    anonymous.get("/v1/leaderboards").expect(200);
    // Made without a key, over the connection that is used on.
    let created = anonymous.post("/v1/keys", &json!({"role": "reader", "name": "first"})).expect(201);
    let reader = created["key"].as_str().expect("it is shown once").to_owned();
    check(&anonymous.get("/v1/leaderboards"), UNAUTHORIZED, "nobody after the first key");
    try_all(
        &server,
        "nobody after the first key",
        |request| request,
        |route| unless_open(route, UNAUTHORIZED),
    );
    let local = format!("tally_local_{}", server.token());
    let (admin_id, admin) = create_key(&mut server.local(), "admin");
    for (who, key, allowed) in [("local", &local, true), ("admin", &admin, true), ("reader", &reader, false)]
    {
        let answer = server.client().with_key(key).get("/v1/keys");
        check(&answer, if allowed { Allowed } else { FORBIDDEN }, who);
    }

    let mut held = server.client().with_key(&admin);
    held.get("/v1/keys").expect(200);
    server.local().delete(&format!("/v1/keys/{admin_id}?force=true")).expect(204);
    check(&held.get("/v1/keys"), UNAUTHORIZED, "a revoked key on its open connection");
    try_all(&server, "a revoked key", |request| request.key(&admin), |_| UNAUTHORIZED);
    server.local().delete(&format!("/v1/keys/{admin_id}")).refused(404, "key_not_found");

    server.terminate();
    server.restart();
    check(&server.client().get("/v1/leaderboards"), UNAUTHORIZED, "nobody after a restart");
    check(&server.client().with_key(&admin).get("/v1/keys"), UNAUTHORIZED, "a revoked key after a restart");
    check(&server.client().with_key(&reader).get("/v1/leaderboards"), Allowed, "a key after a restart");
    check(
        &server.client().with_key(&local).get("/v1/leaderboards"),
        UNAUTHORIZED,
        "the token of the last start",
    );
    server.local().get("/v1/keys").expect(200);
}

#[test]
fn revoking_the_last_key_opens_nothing() {
    let mut server = TestTally::start(TALLY);
    let (id, _) = create_key(&mut server.local(), "admin");
    check(&server.client().get("/v1/leaderboards"), UNAUTHORIZED, "nobody while a key exists");
    server.local().delete(&format!("/v1/keys/{id}?force=true")).expect(204);
    check(&server.client().get("/v1/leaderboards"), UNAUTHORIZED, "nobody after the last key");
    server.terminate();
    server.restart();
    check(&server.client().get("/v1/leaderboards"), UNAUTHORIZED, "nobody after a restart");
    // Commands of this machine have its token, so there is a way back.
    let made = server.run(&["keys", "create", "--role", "reader"]);
    check(&server.client().with_key(made.expect(0).trim()).get("/v1/leaderboards"), Allowed, "a new key");
}

#[test]
fn the_last_admin_key_is_revoked_by_force_only() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    create_key(&mut local, "server");
    let ((first, _), (second, _)) = (create_key(&mut local, "admin"), create_key(&mut local, "admin"));
    local.delete(&format!("/v1/keys/{first}")).expect(204);
    local.delete(&format!("/v1/keys/{second}")).refused(409, "last_admin_key");
    local.delete(&format!("/v1/keys/{second}?force=false")).refused(409, "last_admin_key");
    local.delete(&format!("/v1/keys/{second}?force=yes")).refused(400, "invalid_parameter");
    let refused = server.run(&["keys", "revoke", &second]);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(local.get("/v1/keys").expect(200)["items"].as_array().map(Vec::len), Some(2));
    server.run(&["keys", "revoke", &second, "--force"]).expect(0);
    assert_eq!(local.get("/v1/keys").expect(200)["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn keys_are_listed_without_their_secrets() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    let mut made = Vec::new();
    for role in ["admin", "server", "reader"] {
        made.push(create_key(&mut local, role));
    }
    let listed = local.get("/v1/keys").expect(200);
    let items = listed["items"].as_array().expect("items");
    for ((id, key), (item, role)) in made.iter().zip(items.iter().zip(["admin", "server", "reader"])) {
        let created_at = &item["created_at"];
        assert_eq!(item, &json!({"id": id, "role": role, "name": role, "created_at": created_at}));
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert!(key.starts_with(&format!("tally_{id}_")), "{key}");
        let secret = key.rsplit('_').next().expect("a secret");
        assert!(!listed.to_string().contains(secret));
        for entry in std::fs::read_dir(server.data()).expect("the directory is there") {
            let bytes = std::fs::read(entry.expect("an entry").path()).expect("a file");
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "a secret is stored as it is");
        }
    }
    let (walked, pages) = tally_testkit::audit::read_pages(&mut local, "/v1/keys?limit=1", "items");
    assert_eq!((&walked, pages.len()), (items, 3));
}

#[test]
fn files_of_the_data_directory_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let server = TestTally::start(TALLY);
    for name in ["server.json", "secret"] {
        let mode = std::fs::metadata(server.data().join(name)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
