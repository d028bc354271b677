//! Security events: rejections, and changes of permissions, in the log, the audit file and the metrics.
//!
//! Not here: their bounds, which are tested beside their code.

use crate::TALLY;
use serde_json::{Value, json};
use std::path::PathBuf;
use tally_testkit::audit::metric;
use tally_testkit::{RespClient, TestTally, wait_until};

struct World {
    server: TestTally,
    file: PathBuf,
}

impl World {
    fn new() -> Self {
        let mut server = TestTally::stopped(TALLY);
        let file = server.data().join("audit.jsonl");
        server.set("TALLY_LOG_AUDIT_FILE", file.to_str().expect("UTF-8"));
        server.restart();
        Self { server, file }
    }

    /// Every event in the file, oldest first.
    fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.file).expect("it is there");
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// The events of one name.
    fn named(&self, name: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == name).collect()
    }

    #[track_caller]
    fn one(&self, name: &str) -> Value {
        let all = self.named(name);
        assert_eq!(all.len(), 1, "{name}: {:?}", self.events());
        let event = all[0].clone();
        assert_eq!((&event["address"], &event["count"]), (&json!("127.0.0.1"), &json!(1)), "{event}");
        let id = event["request_id"].as_str().expect("an id").to_owned();
        let in_log =
            |line: &String| line.contains(name) && line.contains(&id) && line.contains("tally::security");
        // The reader of the log has a thread of its own.
        wait_until(&format!("{event} is in the log"), || self.server.log().iter().any(in_log));
        event
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn keys_that_are_made_revoked_and_refused() {
    let world = World::new();
    let mut local = world.server.local();
    let make = tally_testkit::Request::new("POST", "/v1/keys").json(&json!({"role": "reader", "name": "n"}));
    let made = local.send(&make.clone().idempotent("once")).expect(201);
    assert!(local.send(&make.idempotent("once")).is_replay());
    let (id, key) = (text(&made["id"]), text(&made["key"]));
    let event = world.one("key_created");
    assert_eq!(
        (&event["actor"], &event["subject"]),
        (&json!("this machine"), &json!(format!("POST /v1/keys key {id} (reader)")))
    );
    let mut reader = world.server.client().with_key(&key);
    let denied = reader.get("/v1/keys");
    denied.refused(403, "forbidden");
    let event = world.one("permission_denied");
    assert_eq!(event["request_id"].as_str(), denied.header("x-request-id"));
    assert_eq!(event["actor"], json!(format!("claims key {id}")));
    local.delete(&format!("/v1/keys/{id}")).expect(204);
    assert!(text(&world.one("key_revoked")["subject"]).ends_with(&id));
    reader.get("/v1/leaderboards").refused(401, "unauthorized");
    assert_eq!(world.one("credential_refused")["actor"], json!(format!("claims key {id}")));
    let file = std::fs::read_to_string(&world.file).expect("it is there");
    let secret = key.rsplit('_').next().expect("a secret");
    assert!(!file.contains(secret) && !world.server.log().iter().any(|line| line.contains(secret)));
    // Over the Redis protocol as well.
    let mut resp = RespClient::connect(world.server.resp());
    drop(resp.call(&["AUTH", &key]));
    let refused = world.named("credential_refused");
    assert_eq!((refused.len(), &refused[1]["subject"]), (2, &json!("AUTH")));
}

#[test]
fn members_that_fail_and_staff_that_acts() {
    let world = World::new();
    let mut local = world.server.local();
    let made = json!({"login_id": "ann", "name": "A", "password": "open sesame", "pin": "1234"});
    let id = text(&local.post("/v1/members", &made).expect(201)["id"]);
    local
        .post("/v1/members", &json!({"login_id": "ben", "name": "B", "phone_number": "01011112222"}))
        .expect(201);
    local.post("/v1/deposits", &json!({"to": id, "amount": 100})).expect(201);
    let mut anyone = world.server.client();
    anyone.post("/auth/signin", &json!({"loginId": "ann", "password": "wrong"})).expect(401);
    world.one("sign_in_failed");
    let signed_in =
        anyone.post("/auth/signin", &json!({"loginId": "ann", "password": "open sesame"})).expect(200);
    let mut ann = world.server.client().with_key(&text(&signed_in["data"]["accessToken"]));
    let pay = json!({"phoneNumber": "01011112222", "amount": 1, "password": 9});
    for attempt in 0..6 {
        let request = tally_testkit::Request::new("POST", "/transfer/phone-num").json(&pay);
        ann.send(&request.idempotent(&format!("k{attempt}")));
    }
    assert_eq!(world.named("pin_refused").len(), 5, "{:?}", world.events());
    assert_eq!(world.one("pin_locked")["actor"], json!(format!("member {id}")));
    local.send(&tally_testkit::Request::new("POST", format!("/v1/members/{id}/unlock-pin"))).expect(200);
    world.one("pin_unlocked");
    let change = tally_testkit::Request::new("PATCH", format!("/v1/members/{id}"));
    local.send(&change.json(&json!({"password": "another one"}))).expect(200);
    assert!(text(&world.one("member_changed")["subject"]).contains(&id));
    local.send(&tally_testkit::Request::new("POST", format!("/v1/members/{id}/sign-out"))).expect(200);
    world.one("member_signed_out");
}

#[test]
fn a_member_that_tries_phone_numbers() {
    let world = World::new();
    let mut local = world.server.local();
    let made = json!({"login_id": "ann", "name": "A", "password": "open sesame", "pin": "1234"});
    let id = text(&local.post("/v1/members", &made).expect(201)["id"]);
    local.post("/v1/deposits", &json!({"to": id, "amount": 100})).expect(201);
    let sign_in = json!({"loginId": "ann", "password": "open sesame"});
    let signed_in = world.server.client().post("/auth/signin", &sign_in).expect(200);
    let mut ann = world.server.client().with_key(&text(&signed_in["data"]["accessToken"]));
    let mut pay = |number: usize| {
        let pay = json!({"phoneNumber": format!("0102222{number:04}"), "amount": 1, "password": 1234});
        let request = tally_testkit::Request::new("POST", "/transfer/phone-num").json(&pay);
        ann.send(&request.idempotent(&format!("k{number}")))
    };
    let delayed = (0..1_000).map(&mut pay).find(|answer| answer.status != 404).expect("it has a bound");
    delayed.refused(429, "too_many_attempts");
    let event = world.one("transfer_delayed");
    assert_eq!(event["actor"], json!(format!("member {id}")));
    assert_eq!(event["subject"], json!("POST /transfer/phone-num"));
    assert_eq!(world.named("sign_in_failed"), Vec::<serde_json::Value>::new(), "it is signed in");
}

#[test]
fn an_attack_is_a_few_lines_and_a_count() {
    let mut world = World::new();
    world.server.local().post("/v1/keys", &json!({"role": "admin"})).expect(201);
    let mut client = world.server.client();
    for _ in 0..500 {
        client.get("/v1/leaderboards").refused(401, "unauthorized");
    }
    let metrics = world.server.local().get("/metrics");
    assert_eq!(metric(&metrics, "tally_security_events_total{event=\"credential_refused\"}"), 500.0);
    assert!(world.named("credential_refused").len() <= 5);
    world.server.terminate();
    let counts: u64 =
        world.named("credential_refused").iter().map(|one| one["count"].as_u64().unwrap_or(0)).sum();
    assert_eq!(counts, 500, "the end of the server writes what was counted");
    assert!(world.named("credential_refused").len() <= 6);
}

#[test]
fn sighup_goes_on_in_a_new_file() {
    let world = World::new();
    let old = world.file.with_extension("1");
    let mut local = world.server.local();
    local.post("/v1/keys", &json!({"role": "reader"})).expect(201);
    std::fs::rename(&world.file, &old).expect("it is there");
    world.server.signal("HUP");
    wait_until("there is a new file", || world.file.exists());
    local.post("/v1/keys", &json!({"role": "server"})).expect(201);
    assert_eq!(world.named("key_created").len(), 1);
    assert_eq!(std::fs::read_to_string(&old).expect("it is there").lines().count(), 1);
}
