//! Holds: made, captured in part or whole, voided, expired; each ends once.

use super::world::World;
use serde_json::{Value, json};
use tally_testkit::wait_until;

fn hold(world: &mut World, member: &str, units: u64) -> String {
    let made = world.post("/v1/holds", &json!({"member": member, "amount": units})).expect(201);
    made["id"].as_str().expect("an id").to_owned()
}

fn purse(balance: u64, held: u64) -> (String, String, String) {
    (balance.to_string(), held.to_string(), (balance - held).to_string())
}

#[test]
fn what_is_held_cannot_be_spent_and_is_no_transaction() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let made = world.post("/v1/holds", &json!({"member": ann, "amount": "60"})).expect(201);
    let wanted = json!({
        "id": made["id"], "member": ann, "currency": "KRW", "amount": "60", "state": "open", "status": "open", "captured": null, "to": null,
        "group_id": null, "expires_at": null, "created_at": made["created_at"], "ended_at": null,
        "actor": "local", "reason": null, "metadata": null, "ended_by": null, "end_reason": null,
    });
    assert_eq!(made, wanted);
    let path = format!("/v1/holds/{}", made["id"].as_str().unwrap());
    assert_eq!(world.get(&path), made);
    assert_eq!(world.purse(&ann), purse(100, 60));
    assert_eq!(world.history(&ann, 9).len(), 1);
    world
        .post("/v1/transfers", &json!({"from": ann, "to": bob, "amount": 41}))
        .refused(422, "insufficient_funds");
    world.post("/v1/holds", &json!({"member": ann, "amount": 41})).refused(422, "insufficient_funds");
    world.post("/v1/transfers", &json!({"from": ann, "to": bob, "amount": 40})).expect(201);
    assert_eq!(world.purse(&ann), purse(60, 60));
    // To a member; the rest is free again.
    let taken = world.post(&format!("{path}/capture"), &json!({"amount": 25, "to": bob})).expect(200);
    assert_eq!(
        (&taken["status"], &taken["captured"], &taken["to"]),
        (&json!("captured"), &json!("25"), &json!(bob))
    );
    assert_eq!((world.purse(&ann), world.purse(&bob)), (purse(35, 0), purse(65, 0)));
    let line = &world.history(&ann, 9)[0];
    assert_eq!((&line["type"], &line["group_id"]), (&json!("capture"), &taken["group_id"]));
    assert_eq!(world.history(&bob, 9)[0]["type"], "transfer_in");
    assert_eq!(world.get(&path), taken);
}

#[test]
fn a_hold_ends_once() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let ended = |world: &mut World, path: &str, body: &Value| {
        let first = world.post(path, body).expect(200);
        assert_eq!(world.post(path, body).expect(200), first, "the same ending again");
        first
    };
    let one = format!("/v1/holds/{}", hold(&mut world, &ann, 10));
    world.post(&format!("{one}/capture"), &json!({"amount": 11})).refused(422, "exceeds_hold");
    world.post(&format!("{one}/capture"), &json!({"to": ann})).refused(422, "same_wallet");
    world.post(&format!("{one}/capture"), &json!({"to": "nobody"})).refused(404, "recipient_not_found");
    world.post(&format!("{one}/capture"), &json!({"amount": 0})).refused(422, "invalid_amount");
    assert_eq!(world.purse(&ann), purse(100, 10));
    // To the house, all of it.
    let taken = ended(&mut world, &format!("{one}/capture"), &json!({}));
    assert_eq!((&taken["captured"], &taken["to"]), (&json!("10"), &json!(null)));
    for (path, body) in
        [("capture", json!({"amount": 9})), ("capture", json!({"to": bob})), ("void", json!({}))]
    {
        world.post(&format!("{one}/{path}"), &body).refused(409, "hold_resolved");
    }
    let fees = world.get("/v1/ledger/accounts")["items"][2].clone();
    assert_eq!((&fees["account"], &fees["credits"]), (&json!("FEES"), &json!("10")));
    let two = format!("/v1/holds/{}", hold(&mut world, &ann, 90));
    let voided = ended(&mut world, &format!("{two}/void"), &json!({}));
    assert_eq!((&voided["status"], &voided["captured"]), (&json!("voided"), &json!(null)));
    world.post(&format!("{two}/capture"), &json!({})).refused(409, "hold_resolved");
    assert_eq!(world.purse(&ann), purse(90, 0));
    for path in ["", "/capture", "/void"] {
        let path = format!("/v1/holds/0190f8a0-0000-7000-8000-000000000000{path}");
        let answer =
            if path.ends_with('0') { world.client.get(&path) } else { world.post(&path, &json!({})) };
        answer.refused(404, "hold_not_found");
    }
}

#[test]
fn a_hold_whose_time_runs_out_frees_its_money() {
    let mut world = World::start(&[]);
    let ann = world.member("ann", 100);
    let past = json!({"member": ann, "amount": 1, "expires_at": "2020-01-01T00:00:00Z"});
    world.post("/v1/holds", &past).refused(422, "hold_expiry_in_past");
    let soon = soon_after(&mut world, &ann);
    let made = world.post("/v1/holds", &json!({"member": ann, "amount": 70, "expires_at": soon})).expect(201);
    assert_eq!((&made["status"], &made["expires_at"]), (&json!("open"), &json!(soon)));
    let path = format!("/v1/holds/{}", made["id"].as_str().unwrap());
    // This does not depend on time: the background task that ends it runs every second.
    wait_until("the hold has ended", || world.purse(&ann) == purse(100, 0));
    let expired = world.get(&path);
    assert_eq!((&expired["status"], &expired["ended_at"]), (&json!("expired"), &json!(soon)));
    world.post(&format!("{path}/capture"), &json!({})).refused(409, "hold_expired");
    world.post(&format!("{path}/void"), &json!({})).refused(409, "hold_expired");
}

/// An instant after the server's last one, before which a busy machine has sent a request.
fn soon_after(world: &mut World, member: &str) -> String {
    let line = world.history(member, 1)[0]["at"].as_str().expect("an instant").to_owned();
    let at = tally_wire::time::parse(&line).expect("an instant");
    tally_wire::time::format(at.plus(6_000_000))
}

#[test]
fn a_retry_of_a_hold_is_its_first_answer() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let body = json!({"member": ann, "amount": 10});
    let made = world.post_under("h", "/v1/holds", &body).expect(201);
    let path = format!("/v1/holds/{}", made["id"].as_str().unwrap());
    let again =
        world.post_under("h", "/v1/holds", &json!({"member": ann, "amount": "10", "currency": "KRW"}));
    assert!(again.is_replay());
    assert_eq!(again.expect(201), made);
    let taken = world.post_under("c", &format!("{path}/capture"), &json!({"to": bob})).expect(200);
    let again = world.post_under("c", &format!("{path}/capture"), &json!({"to": bob}));
    assert!(again.is_replay());
    assert_eq!(again.expect(200), taken);
    world.post_under("c", &format!("{path}/void"), &json!({})).refused(422, "idempotency_key_reused");
    world.post_under("c", &format!("{path}/capture"), &json!({})).refused(422, "idempotency_key_reused");
    // Made then, captured since: the answer is that of then.
    let again = world.post_under("h", "/v1/holds", &body);
    assert_eq!((again.is_replay(), again.expect(201)), (true, made));
    assert_eq!(world.purse(&ann), purse(90, 0));
}
