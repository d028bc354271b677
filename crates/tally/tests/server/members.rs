//! Members over HTTP: signing in, tokens and their ends, own data, guesses that are slowed down. Also transfers as a load script
//! sends them. Not here: the rules of a batch (`service/tests/use_cases/wallets`), bad input and permissions.

use crate::TALLY;
use serde_json::{Value, json};
use std::time::Duration;
use tally_testkit::{Client, Request, Response, TestTally, wait_until};

/// Digests of passwords that cost no time.
const CHEAP: [(&str, &str); 3] = [
    ("TALLY_MEMBERS_PASSWORD_MEMORY_KIB", "8"),
    ("TALLY_MEMBERS_PASSWORD_PASSES", "1"),
    ("TALLY_MEMBERS_PHONE_COUNTRY", "82"),
];

fn start() -> TestTally {
    TestTally::start_set(TALLY, &CHEAP)
}

fn make(server: &TestTally, login: &str, phone: &str) -> String {
    let body = json!({
        "login_id": login, "password": format!("{login}'s password"), "pin": "0042", "phone_number": phone,
        "name": login.to_uppercase(), "player": login,
    });
    let made = server.local().post("/v1/members", &body).expect(201);
    made["id"].as_str().expect("an id").to_owned()
}

fn sign_in(server: &TestTally, login: &str, password: &str) -> Response {
    server.client().post("/auth/signin", &json!({"loginId": login, "password": password}))
}

fn token(server: &TestTally, login: &str) -> String {
    let answer = sign_in(server, login, &format!("{login}'s password")).expect(200);
    assert_eq!(answer["data"]["tokenType"], "Bearer");
    answer["data"]["accessToken"].as_str().expect("a token").to_owned()
}

fn patch(server: &TestTally, id: &str, body: &Value) -> Response {
    server.local().send(&Request::new("PATCH", format!("/v1/members/{id}")).json(body))
}

fn pay(client: &mut Client, key: &str, phone: &str, amount: i64, pin: &Value) -> Response {
    let body = json!({"phoneNumber": phone, "amount": amount, "password": pin});
    client.send(&Request::new("POST", "/transfer/phone-num").json(&body).idempotent(key))
}

#[test]
fn a_member_signs_in_and_sees_what_is_its_own() {
    let server = start();
    let id = make(&server, "ann", "+82 10-1234-5678");
    let mut ann = server.client().with_key(&token(&server, "ann"));
    let me = ann.get("/v1/me").expect(200);
    assert_eq!(
        (&me["id"], &me["login_id"], &me["phone_number"]),
        (&json!(id), &json!("ann"), &json!("01012345678"))
    );
    assert_eq!(server.local().get(&format!("/v1/members/{id}")).expect(200), me);
    for query in ["login_id=ann", "phone_number=010-1234-5678", "phone_number=%2B821012345678", "player=ann"]
    {
        let found = server.local().get(&format!("/v1/members?{query}")).expect(200);
        assert_eq!(found["items"], json!([me]), "{query}");
    }
    assert_eq!(ann.get("/v1/me/ranks").expect(200), json!({"items": []}));
    let mut local = server.local();
    for (board, score) in [("a", 5), ("b", 7), ("c", 1)] {
        local.put(&format!("/v1/leaderboards/{board}"), &json!({})).expect(201);
        let players: &[(&str, i64)] = if board == "c" { &[("x", 6)] } else { &[("ann", score), ("x", 6)] };
        for (player, score) in players {
            let row = json!({"player": player, "score": score});
            local.post(&format!("/v1/leaderboards/{board}/scores"), &row).expect(200);
        }
    }
    let rank = |board: &str, score: i64, rank: u64| json!({"board": board, "score": score, "rank": rank, "total": 2});
    assert_eq!(ann.get("/v1/me/ranks").expect(200), json!({"items": [rank("a", 5, 2), rank("b", 7, 1)]}));
    let (all, pages) = tally_testkit::audit::read_pages(&mut ann, "/v1/me/ranks?limit=1", "items");
    assert_eq!(all, [rank("a", 5, 2), rank("b", 7, 1)]);
    assert!(pages.len() >= 2);
}

/// Also one that is closed, whose handles are free.
#[test]
fn all_members_are_listed_the_newest_first() {
    let mut server = start();
    let ids: Vec<String> =
        (0..5).map(|at| make(&server, &format!("m{at}"), &format!("010-123{at}"))).collect();
    let close = format!("/v1/members/{}/close", ids[2]);
    server.local().post(&close, &json!({})).expect(200);
    for _ in 0..2 {
        let mut local = server.local();
        for path in ["/v1/members?limit=2", "/v1/members?limit=1000"] {
            let (all, _) = tally_testkit::audit::read_pages(&mut local, path, "items");
            let found: Vec<&str> = all.iter().filter_map(|one| one["id"].as_str()).collect();
            let newest: Vec<&str> = ids.iter().rev().map(String::as_str).collect();
            assert_eq!(found, newest, "{path}");
            assert!(all[2]["closed_at"].is_string(), "{}", all[2]);
            assert_eq!(all[0], local.get(&format!("/v1/members/{}", ids[4])).expect(200));
        }
        // From the tables as well as from memory.
        server.terminate();
        server.restart();
    }
    let two = server.local().get("/v1/members?login_id=m1&player=m1");
    two.refused(400, "invalid_parameter");
}

#[test]
fn a_retry_makes_one_member_and_names_are_taken_once() {
    let server = start();
    let body = json!({"login_id": "ann", "name": "Ann", "phone_number": "010-1", "password": "a password"});
    let body = json!({"phone_number": "010-1111", "login_id": body["login_id"], "name": "Ann", "password": "a password"});
    let request = Request::new("POST", "/v1/members").json(&body).idempotent("k");
    let mut local = server.local();
    let first = local.send(&request).expect(201);
    assert_eq!(first["player"], first["id"]);
    let again = local.send(&request);
    assert!(again.is_replay() && again.json() == first, "{}", again.text());
    for (body, code) in [
        (json!({"login_id": "ann", "name": "B"}), "login_taken"),
        (json!({"login_id": "b", "name": "B", "phone_number": "+82101111"}), "phone_taken"),
        (json!({"login_id": "b", "name": "B", "player": first["id"]}), "player_taken"),
    ] {
        local.post("/v1/members", &body).refused(409, code);
    }
    assert_eq!(local.get("/v1/members?login_id=b").expect(200), json!({"items": []}));
}

/// A value that a request sets is part of the meaning of its key. A value that only proves something is not, and is checked
/// every time.
#[test]
fn a_key_stands_for_the_secrets_that_are_set_and_not_for_those_that_are_checked() {
    let server = start();
    let member = |password: &str, pin: &str| {
        let body = json!({"login_id": "ann", "name": "Ann", "phone_number": "010-1111", "password": password, "pin": pin});
        server.local().send(&Request::new("POST", "/v1/members").json(&body).idempotent("make"))
    };
    let made = member("first password", "1234").expect(201);
    assert!(member("first password", "1234").is_replay());
    member("other password", "1234").refused(422, "idempotency_key_reused");
    member("first password", "4321").refused(422, "idempotency_key_reused");
    let path = format!("/v1/members/{}", made["id"].as_str().expect("an id"));
    let set = |body: Value| server.local().send(&Request::new("PATCH", &path).json(&body).idempotent("set"));
    set(json!({"password": "second password", "pin": "2345"})).expect(200);
    for body in [
        json!({"password": "third password", "pin": "2345"}),
        json!({"password": "second password", "pin": "3456"}),
        json!({"password": "second password"}),
        json!({"pin": "2345"}),
        json!({}),
    ] {
        set(body).refused(422, "idempotency_key_reused");
    }
    assert!(set(json!({"password": "second password", "pin": "2345"})).is_replay());
    sign_in(&server, "ann", "third password").refused(401, "invalid_credentials");
    let token = sign_in(&server, "ann", "second password").expect(200)["data"]["accessToken"].clone();

    make(&server, "bob", "010-2222");
    server.local().post("/v1/deposits", &json!({"to": made["id"], "amount": 10})).expect(201);
    let mut client = server.client().with_key(token.as_str().expect("a token"));
    pay(&mut client, "pay", "010-2222", 1, &json!("2345")).expect(201);
    pay(&mut client, "pay", "010-2222", 1, &json!("9999")).refused(403, "invalid_pin");
    set(json!({"password": "second password", "pin": "2345"})).expect(200);
    let again = Request::new("PATCH", &path).json(&json!({"pin": "3456"})).idempotent("again");
    server.local().send(&again).expect(200);
    pay(&mut client, "pay", "010-2222", 1, &json!("2345")).refused(403, "invalid_pin");
    assert!(pay(&mut client, "pay", "010-2222", 1, &json!("3456")).is_replay());
}

#[test]
fn a_token_ends_with_its_time_its_password_and_its_secret_and_not_with_the_server() {
    let mut server = start();
    let id = make(&server, "ann", "010-1111");
    let first = token(&server, "ann");
    server.terminate();
    server.restart();
    let mut ann = server.client().with_key(&first);
    ann.get("/v1/me").expect(200);
    patch(&server, &id, &json!({"name": "Ann"})).expect(200);
    assert_eq!(ann.get("/v1/me").expect(200)["name"], "Ann");
    patch(&server, &id, &json!({"password": "new password"})).expect(200);
    ann.get("/v1/me").refused(401, "unauthorized");
    pay(&mut ann, "k", "010-1111", 1, &json!(42)).refused(401, "unauthorized");
    sign_in(&server, "ann", "ann's password").refused(401, "invalid_credentials");
    let second = sign_in(&server, "ann", "new password").expect(200)["data"]["accessToken"].clone();
    let second = second.as_str().expect("a token");
    server.client().with_key(second).get("/v1/me").expect(200);
    // alg none, another algorithm, another signature
    let parts: Vec<&str> = second.split('.').collect();
    for (head, signature) in [
        ("eyJhbGciOiJub25lIn0", ""),
        ("eyJhbGciOiJub25lIn0", parts[2]),
        ("eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9", parts[2]),
        (parts[0], "AAAA"),
    ] {
        let forged = format!("{head}.{}.{signature}", parts[1]);
        server.client().with_key(&forged).get("/v1/me").refused(401, "unauthorized");
        server.client().with_key(&forged).get("/v1/leaderboards").refused(401, "unauthorized");
    }
    server.set("TALLY_AUTH_TOKEN_TTL", "1s");
    server.terminate();
    server.restart();
    let short = sign_in(&server, "ann", "new password").expect(200);
    assert_eq!(short["data"]["expiresIn"], 1);
    let mut ann = server.client().with_key(short["data"]["accessToken"].as_str().expect("a token"));
    wait_until("it ends", || ann.get("/v1/me").status != 200);
    ann.get("/v1/me").refused(401, "unauthorized");
}

#[test]
fn guessing_a_password_waits_and_an_unknown_login_gets_the_same_response() {
    let server = start();
    make(&server, "ann", "010-1111");
    make(&server, "bob", "010-2222");
    let nameless = json!({"login_id": "eve", "name": "Eve"});
    server.local().post("/v1/members", &nameless).expect(201);
    let told = |login: &str| {
        let mut problem = sign_in(&server, login, "wrong").json();
        problem.as_object_mut().expect("an object").remove("request_id");
        problem
    };
    assert_eq!(told("ann"), told("nobody"));
    assert_eq!(told("ann"), told("eve"));
    for _ in 0..3 {
        sign_in(&server, "ann", "wrong").refused(401, "invalid_credentials");
    }
    let mut last = 0;
    for (login, password) in [("ann", "ann's password"), ("ann", "wrong")] {
        let answer = sign_in(&server, login, password);
        answer.refused(429, "too_many_attempts");
        last = answer.header("retry-after").and_then(|text| text.parse().ok()).expect("seconds");
    }
    assert!((1..=900).contains(&last), "{last}");
    sign_in(&server, "bob", "bob's password").expect(200);
    std::thread::sleep(Duration::from_secs(last));
    sign_in(&server, "ann", "ann's password").expect(200);
    sign_in(&server, "ann", "wrong").refused(401, "invalid_credentials");
}

/// Signs in through a proxy on this machine that says where the client is.
fn sign_in_from(server: &TestTally, client: &str, login: &str, password: &str) -> Response {
    let body = json!({"loginId": login, "password": password});
    let request = Request::new("POST", "/auth/signin").json(&body);
    server.client().send(&request.header("X-Forwarded-For", client))
}

fn start_behind_proxies() -> TestTally {
    TestTally::start_set(
        TALLY,
        &[&CHEAP[..], &[("TALLY_HTTP_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")]].concat(),
    )
}

#[test]
fn guesses_from_elsewhere_lock_no_member_out_of_where_it_signed_in() {
    let server = start_behind_proxies();
    make(&server, "ann", "010-1111");
    let home = "192.0.2.1";
    sign_in_from(&server, home, "ann", "ann's password").expect(200);
    for host in 0..50 {
        let client = format!("198.51.100.{host}");
        sign_in_from(&server, &client, "ann", "wrong").refused(401, "invalid_credentials");
    }
    // Each further failure doubles the wait of a second: then a busy machine does the rest within it.
    for seconds in [1, 2] {
        std::thread::sleep(Duration::from_secs(seconds));
        sign_in_from(&server, "198.51.100.98", "ann", "wrong").refused(401, "invalid_credentials");
    }
    let guess = || sign_in_from(&server, "198.51.100.99", "ann", "ann's password");
    guess().refused(429, "too_many_attempts");
    sign_in_from(&server, home, "ann", "ann's password").expect(200);
    // The client's own text in front of what the proxies append is not its address.
    let forged = format!("{home}, 203.0.113.7, 10.1.1.1");
    sign_in_from(&server, &forged, "ann", "ann's password").refused(429, "too_many_attempts");
    guess().refused(429, "too_many_attempts");
}

#[test]
fn an_address_that_tries_many_logins_waits_and_no_other_does() {
    let server = start_behind_proxies();
    make(&server, "ann", "010-1111");
    make(&server, "bob", "010-2222");
    // A host has all addresses of its network.
    let host = |nth: usize| format!("2001:db8::{nth:x}");
    sign_in_from(&server, &host(0), "ann", "ann's password").expect(200);
    let (mut refused, mut nth) = (0, 0);
    while refused == 0 {
        let answer = sign_in_from(&server, &host(nth), &format!("unknown {nth}"), "wrong");
        refused += usize::from(answer.status == 429);
        nth += 1;
        assert!(nth < 1_000, "it never waits");
    }
    assert!(nth > 100, "{nth}");
    // The member that signed in there may again, and every other address is as it was.
    sign_in_from(&server, &host(7), "ann", "ann's password").expect(200);
    sign_in_from(&server, "2001:db8:1::1", "bob", "bob's password").expect(200);
}

#[test]
fn a_header_of_no_trusted_proxy_says_nothing() {
    const WARNING: &str = "not in `http.trusted_proxies`";
    let mut server = start();
    server.allow(WARNING);
    make(&server, "ann", "010-1111");
    for host in 0..5 {
        let client = format!("198.51.100.{host}");
        sign_in_from(&server, &client, "ann", "wrong").refused(401, "invalid_credentials");
    }
    sign_in_from(&server, "198.51.100.5", "ann", "wrong").refused(429, "too_many_attempts");
    server.terminate();
    assert_eq!(server.log().iter().filter(|line| line.contains(WARNING)).count(), 1, "it is logged once");
}

#[test]
fn a_body_that_signs_in_is_small() {
    let server = start();
    make(&server, "ann", "010-1111");
    let body = |spaces: usize| {
        let body = r#"{"loginId":"ann","password":"ann's password"}"#;
        format!("{body}{}", " ".repeat(spaces - body.len()))
    };
    let sign_in = |bytes| {
        let request = Request::new("POST", "/auth/signin").body("application/json", body(bytes));
        server.client().send(&request)
    };
    sign_in(4_096).expect(200);
    sign_in(4_097).refused(413, "payload_too_large");
}

#[test]
fn a_closed_member_is_closed_everywhere_and_keeps_its_history() {
    let server = start();
    let (ann, bob) = (make(&server, "ann", "010-1111"), make(&server, "bob", "010-2222"));
    let mut client = server.client().with_key(&token(&server, "bob"));
    let mut closed_client = server.client().with_key(&token(&server, "ann"));
    let close = Request::new("POST", format!("/v1/members/{ann}/close")).idempotent("c");
    let closed = server.local().send(&close).expect(200);
    assert!(closed["closed_at"].is_string(), "{closed}");
    assert!(server.local().send(&close).is_replay());
    sign_in(&server, "ann", "ann's password").refused(401, "invalid_credentials");
    for path in ["/v1/me", "/v1/me/wallet", "/v1/leaderboards"] {
        closed_client.get(path).refused(401, "unauthorized");
    }
    pay(&mut closed_client, "k", "010-2222", 1, &json!("0042")).refused(401, "unauthorized");
    server.local().post("/v1/deposits", &json!({"to": bob, "amount": 1})).expect(201);
    pay(&mut client, "k", "010-1111", 1, &json!("0042")).refused(404, "recipient_not_found");
    patch(&server, &ann, &json!({"name": "X"})).refused(409, "member_closed");
    server.local().get(&format!("/v1/members/{ann}")).expect(200);
    // The handle finds another member now, and the first token is invalid.
    patch(&server, &bob, &json!({"phone_number": "010-1111"})).expect(200);
    let again = make(&server, "ann", "010-3333");
    assert_ne!(again, ann);
    let new = token(&server, "ann");
    assert_eq!(server.client().with_key(&new).get("/v1/me").expect(200)["id"], json!(again));
    closed_client.get("/v1/me").refused(401, "unauthorized");
}

#[test]
fn a_member_that_is_signed_out_signs_in_again() {
    let mut server = start();
    let ann = make(&server, "ann", "010-1111");
    let first = token(&server, "ann");
    let mut client = server.client().with_key(&first);
    client.get("/v1/me").expect(200);
    let out = Request::new("POST", format!("/v1/members/{ann}/sign-out")).idempotent("o");
    let shown = server.local().send(&out).expect(200);
    assert_eq!(shown["id"], json!(ann));
    client.get("/v1/me").refused(401, "unauthorized");
    pay(&mut client, "k", "010-1111", 1, &json!(42)).refused(401, "unauthorized");
    let second = token(&server, "ann");
    // A retry is the same request, and ends no later token.
    assert!(server.local().send(&out).is_replay());
    server.kill9();
    server.restart();
    server.client().with_key(&first).get("/v1/me").refused(401, "unauthorized");
    server.client().with_key(&second).get("/v1/me").expect(200);
    server
        .local()
        .send(&Request::new("POST", "/v1/members/nobody/sign-out"))
        .refused(404, "member_not_found");
}

#[test]
fn a_pin_is_locked_and_unlocked_and_its_change_forgets_attempts() {
    let server = start();
    let (ann, _) = (make(&server, "ann", "010-1111"), make(&server, "bob", "010-2222"));
    let mut client = server.client().with_key(&token(&server, "ann"));
    for pin in [json!(43), json!("43434343"), json!("0043"), json!(430), json!("9999")] {
        pay(&mut client, "k", "010-2222", 1, &pin).refused(403, "invalid_pin");
    }
    let locked = pay(&mut client, "k", "010-9999", 1, &json!(42));
    locked.refused(423, "pin_locked");
    let seconds: u64 = locked.header("retry-after").and_then(|text| text.parse().ok()).expect("seconds");
    assert!((1..=900).contains(&seconds), "{seconds}");
    assert!(server.local().get(&format!("/v1/members/{ann}")).expect(200)["pin_locked_until"].is_string());
    server.local().send(&Request::new("POST", format!("/v1/members/{ann}/unlock-pin"))).expect(200);
    pay(&mut client, "k", "010-2222", 1, &json!(42)).refused(422, "insufficient_funds");
    patch(&server, &ann, &json!({"pin": 987_654})).expect(200);
    pay(&mut client, "k", "010-2222", 1, &json!(42)).refused(403, "invalid_pin");
    pay(&mut client, "k", "010-2222", 1, &json!(987_654)).refused(422, "insufficient_funds");
    patch(&server, &ann, &json!({"pin": null})).expect(200);
    pay(&mut client, "k", "010-2222", 1, &json!(987_654)).refused(403, "invalid_pin");
}

/// The requests of `examples/k6/transfer.js`, byte for byte as k6 sends them: the PIN is a number.
#[test]
fn a_load_scripts_requests_are_taken_as_they_are() {
    let mut server = start();
    let (ann, _) = (make(&server, "ann", "01011111111"), make(&server, "bob", "010-2222-2222"));
    server.local().post("/v1/deposits", &json!({"to": ann, "amount": 100_000})).expect(201);
    let body = r#"{"loginId":"ann","password":"ann's password"}"#;
    let request = Request::new("POST", "/auth/signin").body("application/json", body);
    let token = server.client().send(&request).expect(200)["data"]["accessToken"].clone();
    let mut member = server.client().with_key(token.as_str().expect("a token"));
    for path in ["/v1/me", "/v1/me/wallet", "/v1/me/ranks", "/v1/me/transactions?limit=20"] {
        member.get(path).expect(200);
    }
    let body = r#"{"phoneNumber":"01022222222","amount":100,"password":42}"#;
    let request = Request::new("POST", "/transfer/phone-num").body("application/json", body);
    let request = request.idempotent("5b1f3f0e-9a52-4f2c-8f43-0c6a1f0a1f6e");
    let first = member.send(&request).expect(201);
    let data = &first["data"];
    assert_eq!(
        (&data["amount"], &data["balance"], &data["currency"]),
        (&json!("100"), &json!("99900"), &json!("KRW"))
    );
    assert_eq!(data["counterparty"], json!({"name": "BOB"}));
    server.kill9();
    server.restart();
    let mut member = server.client().with_key(token.as_str().expect("a token"));
    // The same in other words too.
    let key = "5b1f3f0e-9a52-4f2c-8f43-0c6a1f0a1f6e";
    let said = |client: &mut Client, phone: &str, amount: Value, pin: Value| {
        let body = json!({"password": pin, "phoneNumber": phone, "amount": amount});
        client.send(&Request::new("POST", "/transfer/phone-num").json(&body).idempotent(key))
    };
    for again in [
        member.send(&request),
        said(&mut member, "010-2222-2222", json!("100"), json!("0042")),
        said(&mut member, "+82 10 2222 2222", json!(100), json!(42)),
    ] {
        assert!(again.is_replay() && again.json() == first, "{}", again.text());
    }
    let other = r#"{"phoneNumber":"01022222222","amount":101,"password":42}"#;
    let other = Request::new("POST", "/transfer/phone-num").body("application/json", other);
    member
        .send(&other.idempotent("5b1f3f0e-9a52-4f2c-8f43-0c6a1f0a1f6e"))
        .refused(422, "idempotency_key_reused");
    let wallet = member.get("/v1/me/wallet").expect(200);
    assert_eq!((&wallet["balance"], &wallet["available"]), (&json!("99900"), &json!("99900")));
    let history = member.get("/v1/me/transactions").expect(200);
    assert_eq!(history["items"][0]["group_id"], data["transferId"]);
    assert_eq!(history["items"].as_array().map(Vec::len), Some(2));
    let status = server.local().get("/v1/status").expect(200);
    assert!(status["caches"]["members"]["hits"].as_u64().is_some_and(|hits| hits > 0), "{status}");
}
