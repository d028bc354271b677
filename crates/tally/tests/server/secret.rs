//! `tally secret`: a rotation of the secret of one server, and a lost secret.

use crate::TALLY;
use serde_json::{Value, json};
use std::path::PathBuf;
use tally_testkit::{Client, Request, Response, TestTally};

/// A server with digests of passwords that cost no time. It keeps its secret in its data directory.
fn start() -> TestTally {
    TestTally::start_set(
        TALLY,
        &[("TALLY_MEMBERS_PASSWORD_MEMORY_KIB", "8"), ("TALLY_MEMBERS_PASSWORD_PASSES", "1")],
    )
}

fn path(server: &TestTally) -> PathBuf {
    server.data().join("secret")
}

fn secrets(server: &TestTally) -> Vec<String> {
    let text = std::fs::read_to_string(path(server)).expect("it is there");
    text.lines().map(str::to_owned).collect()
}

fn member(server: &TestTally, login: &str, phone: &str) -> String {
    let body = json!({"login_id": login, "password": "correct horse", "pin": "0042", "phone_number": phone, "name": login});
    let made = server.local().post("/v1/members", &body).expect(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    server.local().post("/v1/deposits", &json!({"to": id, "amount": 9})).expect(201);
    id
}

fn sign_in(server: &TestTally, login: &str) -> String {
    let body = json!({"loginId": login, "password": "correct horse"});
    let answer = server.client().post("/auth/signin", &body).expect(200);
    answer["data"]["accessToken"].as_str().expect("a token").to_owned()
}

fn pay(server: &TestTally, token: &str, phone: &str, key: &str) -> Response {
    let body = json!({"phoneNumber": phone, "amount": 1, "password": "0042"});
    let request = Request::new("POST", "/transfer/phone-num").json(&body).idempotent(key);
    server.client().with_key(token).send(&request)
}

fn make(server: &TestTally, path: &str, key: &str, body: &Value) -> Response {
    server.local().send(&Request::new("POST", path).json(body).idempotent(key))
}

fn has_pin(client: &mut Client, id: &str) -> Value {
    client.get(&format!("/v1/members/{id}")).expect(200)["has_pin"].clone()
}

fn acts(server: &TestTally) -> Vec<Value> {
    let page = server.local().get("/v1/audit").expect(200);
    let rows = page["items"].as_array().expect("a list");
    let of_secret =
        rows.iter().filter(|row| row["action"].as_str().is_some_and(|act| act.starts_with("secret.")));
    of_secret.map(|row| json!([row["action"], row["actor"], row["subject"], row["reason"]])).collect()
}

#[test]
fn a_secret_is_replaced_and_dropped() {
    let mut server = start();
    let (ann, bob) = (member(&server, "ann", "010-1111"), member(&server, "bob", "010-2222"));
    let token = sign_in(&server, "ann");
    let webhook = json!({"url": "https://receiver.example/", "events": ["period_closed"]});
    let made = make(&server, "/v1/webhooks", "w", &webhook).expect(201);
    let key = make(&server, "/v1/keys", "k", &json!({"role": "reader", "name": "r"})).expect(201);
    let contest = json!({"starts_at": "2100-01-01T00:00:00Z"});
    let contest_made = make(&server, "/v1/contests", "c", &contest);
    pay(&server, &token, "010-2222", "p1").expect(201);
    let refused = server.run(&["secret", "rotate"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("stop the server"), "{}", refused.stderr);
    let shown = server.run(&["secret", "status"]).expect(0).to_owned();
    assert!(shown.contains("from the first start on; given by"), "beside a server: {shown}");
    server.terminate();
    let old = secrets(&server);
    let said = server.run(&["secret", "rotate", "--reason", "yearly"]).expect(0).to_owned();
    assert!(said.starts_with("rotate: nothing is lost."), "{said}");
    let both = secrets(&server);
    assert_eq!((both.len(), &both[0]), (2, &old[0]));
    assert!(!said.contains(&both[0][..16]) && !said.contains(&both[1][..16]), "a secret is never shown");
    server.run(&["secret", "rotate"]).expect(1);
    server.restart();
    // All that the old one made is accepted, and a retry gets what the first request got.
    server.client().with_key(&token).get("/v1/me").expect(200);
    assert!(pay(&server, &token, "010-2222", "p1").is_replay());
    for (path, name, body, first) in [
        ("/v1/webhooks", "w", &webhook, &made),
        ("/v1/keys", "k", &json!({"role": "reader", "name": "r"}), &key),
    ] {
        let again = make(&server, path, name, body);
        assert!(again.is_replay(), "{path}");
        assert_eq!(&again.json(), first, "{path}");
    }
    let again = make(&server, "/v1/contests", "c", &contest);
    assert_eq!(
        (again.status, again.json()["contest"].clone()),
        (contest_made.status, contest_made.json()["contest"].clone())
    );
    // The PIN of ann is used, and that of bob is not.
    pay(&server, &token, "010-2222", "p2").expect(201);
    server.terminate();
    let said = server.run(&["secret", "drop"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    for lost in
        ["the PINs of 1 members", "the secrets of 1 webhooks", "tokens from before", "retries of requests"]
    {
        assert!(said.stdout.contains(&format!("lost: {lost}")), "{lost}: {}", said.stdout);
    }
    assert_eq!(secrets(&server), both, "nothing was changed");
    server.run(&["secret", "drop", "--yes"]).expect(0);
    assert_eq!(secrets(&server), both[1..]);
    server.restart();
    server.client().with_key(&token).get("/v1/me").refused(401, "unauthorized");
    let (ann_token, bob_token) = (sign_in(&server, "ann"), sign_in(&server, "bob"));
    pay(&server, &ann_token, "010-2222", "p3").expect(201);
    pay(&server, &bob_token, "010-1111", "p4").refused(403, "invalid_pin");
    let mut client = server.local();
    assert_eq!((has_pin(&mut client, &ann), has_pin(&mut client, &bob)), (json!(true), json!(false)));
    client
        .send(&Request::new("PATCH", format!("/v1/members/{bob}")).json(&json!({"pin": "0042"})))
        .expect(200);
    pay(&server, &bob_token, "010-1111", "p5").expect(201);
    let id = made["id"].as_str().expect("an id");
    let fresh = client.send(&Request::new("POST", format!("/v1/webhooks/{id}/secret"))).expect(200);
    assert_ne!(fresh["secret"], made["secret"]);
    // The secret that was dropped does not come back.
    server.terminate();
    std::fs::write(path(&server), format!("{}\n{}\n", both[0], both[1])).expect("it is written");
    let refused = server.run(&["secret", "rotate"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("was dropped"), "{}", refused.stderr);
    server.allow("a secret that was dropped");
    server.restart();
    server.client().with_key(&token).get("/v1/me").refused(401, "unauthorized");
    assert_eq!(
        acts(&server),
        [
            json!(["secret.dropped", "command_line", "store", null]),
            json!(["secret.rotated", "command_line", "store", "yearly"])
        ]
    );
}

#[test]
fn a_lost_secret_is_replaced_and_what_is_lost_is_said_first() {
    let mut server = start();
    let ann = member(&server, "ann", "010-1111");
    let key = make(&server, "/v1/keys", "k", &json!({"role": "admin", "name": "r"})).expect(201);
    let key = key["key"].as_str().expect("a key").to_owned();
    let token = sign_in(&server, "ann");
    server.terminate();
    let refused = server.run(&["secret", "reset", "--yes"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("is not lost"), "{}", refused.stderr);
    let old = secrets(&server);
    std::fs::remove_file(path(&server)).expect("it was there");
    let refused = server.run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("tally secret reset"), "{}", refused.stderr);
    let refused = server.run(&["secret", "rotate"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("tally secret reset"), "{}", refused.stderr);
    let said = server.run(&["secret", "reset"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    for lost in ["the PINs of 1 members", "tokens from before", "retries of requests"] {
        assert!(said.stdout.contains(&format!("lost: {lost}")), "{lost}: {}", said.stdout);
    }
    assert!(!path(&server).exists(), "nothing was changed");
    server.run(&["secret", "reset", "--yes", "--reason", "a lost disk"]).expect(0);
    assert!(secrets(&server) != old && secrets(&server).len() == 1);
    server.restart();
    let mut admin = server.client().with_key(&key);
    assert_eq!(has_pin(&mut admin, &ann), json!(false), "keys go on");
    server.client().with_key(&token).get("/v1/me").refused(401, "unauthorized");
    let token = sign_in(&server, "ann");
    pay(&server, &token, "010-1111", "p").refused(403, "invalid_pin");
    // The old one is found again: it is another secret now.
    server.terminate();
    let new = secrets(&server);
    std::fs::write(path(&server), &old[0]).expect("it is written");
    let refused = server.run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("another secret"), "{}", refused.stderr);
    std::fs::write(path(&server), &new[0]).expect("it is written");
    server.restart();
}
