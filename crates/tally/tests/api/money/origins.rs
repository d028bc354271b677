//! The actor and the reason of transfers and holds: of each credential, by each request, and after a kill.

use super::world::{World, payment};
use serde_json::{Value, json};
use tally_testkit::{Client, Request};

/// A new key of this role: its actor, and a client that has it.
fn key(world: &World, role: &str) -> (String, Client) {
    let made = world.server.local().post("/v1/keys", &json!({"role": role})).expect(201);
    let (id, token) = (made["id"].as_str().expect("an id"), made["key"].as_str().expect("a key"));
    (format!("key:{id}"), world.server.client().with_key(token))
}

/// The actor and the reason of a row.
fn origin(row: &Value) -> (&str, Option<&str>) {
    (row["actor"].as_str().expect("an actor"), row["reason"].as_str())
}

/// The same of the transfer of a line.
fn of_transfer(world: &mut World, line: &Value) -> (String, Option<String>) {
    let path = format!("/v1/ledger/transactions/{}", line["group_id"].as_str().expect("an id"));
    let transfer = world.get(&path);
    let (actor, reason) = origin(&transfer);
    (actor.to_owned(), reason.map(str::to_owned))
}

#[test]
fn a_transfer_keeps_its_actor_and_its_reason() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.payer("bob", "010-2222", 10).0);
    let (cid, token) = world.payer("cid", "010-3333", 50);
    let gift = json!({"to": ann, "amount": 1, "reason": "gift"});
    world.post("/v1/deposits", &gift).expect(201);
    world.server.local().post("/v1/deposits", &gift).expect(201);
    let (shop, mut by_shop) = key(&world, "server");
    let (desk, mut by_desk) = key(&world, "admin");
    let made = by_shop.post("/v1/transfers", &json!({"from": ann, "to": bob, "amount": 9})).expect(201);
    world.client = world.server.local();
    let rows = json!({"transfers": [
        {"from": ann, "to": bob, "amount": 1, "reason": "one", "linked": true},
        {"from": ann, "to": bob, "amount": 1},
    ]});
    by_shop.post("/v1/transfers/batch", &rows).expect(200);
    let paid = world.client.send(&payment(&token, "010-2222", &json!(5), true).idempotent("pay")).expect(201);
    by_desk.post("/v1/withdrawals", &json!({"from": ann, "amount": 2, "reason": ""})).expect(201);
    let reverse = format!("/v1/ledger/transactions/{}/reverse", made["group_id"].as_str().expect("an id"));
    let back = by_desk.post(&reverse, &json!({"reason": "chargeback 12"})).expect(201);
    let wanted = [
        (desk.as_str(), Some("chargeback 12")),
        (desk.as_str(), Some("")),
        (shop.as_str(), None),
        (shop.as_str(), Some("one")),
        (shop.as_str(), None),
        ("command_line", Some("gift")),
        ("local", Some("gift")),
        ("local", None),
    ];
    let own = Request::new("GET", "/v1/me/transactions").key(&token);
    for killed in [false, true] {
        if killed {
            world.server.kill9();
            world.server.restart();
            world.client = world.server.local();
        }
        let lines = world.full_history(&ann, 3);
        assert_eq!(lines.iter().map(origin).collect::<Vec<_>>(), wanted, "killed: {killed}");
        for (line, (actor, reason)) in lines.iter().zip(wanted) {
            let found = of_transfer(&mut world, line);
            assert_eq!(found, (actor.to_owned(), reason.map(str::to_owned)));
        }
        // The original keeps its own.
        assert_eq!(of_transfer(&mut world, &made), (shop.clone(), None));
        assert_eq!(of_transfer(&mut world, &back).0, desk);
        let line = json!({"group_id": paid["data"]["transferId"]});
        assert_eq!(of_transfer(&mut world, &line), (format!("member:{cid}"), None));
        // A member sees neither.
        for line in world.client.send(&own).expect(200)["items"].as_array().expect("lines") {
            assert!(line.get("actor").is_none() && line.get("reason").is_none(), "{line}");
        }
    }
}

#[test]
fn a_hold_keeps_both_of_its_making_and_of_its_end() {
    let mut world = World::start(&[]);
    let ann = world.member("ann", 100);
    let (shop, mut by_shop) = key(&world, "server");
    let (desk, mut by_desk) = key(&world, "admin");
    world.client = world.server.local();
    let mut hold = |body: Value| -> String {
        let made = by_shop.post("/v1/holds", &body).expect(201);
        assert_eq!(origin(&made), (shop.as_str(), body["reason"].as_str()));
        assert_eq!((&made["ended_by"], &made["end_reason"]), (&json!(null), &json!(null)));
        format!("/v1/holds/{}", made["id"].as_str().expect("an id"))
    };
    let one = hold(json!({"member": ann, "amount": 5, "reason": "entry"}));
    let two = hold(json!({"member": ann, "amount": 5}));
    let soon = tally_wire::time::format(tally_rules::Micros(super::world::now() + 1_500_000));
    let three = hold(json!({"member": ann, "amount": 5, "expires_at": soon}));
    by_desk.post(&format!("{one}/capture"), &json!({"amount": 2, "reason": "won"})).expect(200);
    by_desk.post(&format!("{two}/void"), &json!({"reason": "called off"})).expect(200);
    // The same end by another caller changes nothing.
    world.post(&format!("{two}/void"), &json!({"reason": "again"})).expect(200);
    tally_testkit::wait_until("the hold expires", || world.get(&three)["status"] == "expired");
    let ends = [
        (&one, json!(desk), json!("won")),
        (&two, json!(desk), json!("called off")),
        (&three, json!("background"), json!(null)),
    ];
    for killed in [false, true] {
        if killed {
            world.server.kill9();
            world.server.restart();
            world.client = world.server.local();
        }
        for (path, by, reason) in &ends {
            let found = world.get(path);
            assert_eq!((&found["ended_by"], &found["end_reason"]), (by, reason), "{path}");
            assert_eq!(found["actor"], json!(shop));
        }
        let captured = world.get(&one);
        assert_eq!(of_transfer(&mut world, &captured), (desk.clone(), Some("won".into())));
    }
}

#[test]
fn metadata_stay_with_transfers_and_holds_and_members_do_not_see_them() {
    let mut world = World::start(&[]);
    let (ann, token) = world.payer("ann", "010-2222", 100);
    let bob = world.member("bob", 0);
    let data = |order: u64| json!({"order": order, "text": "Grüße '\""});
    let give = |order: u64| json!({"from": ann, "to": bob, "amount": 1, "metadata": data(order)});
    let made = world.post_under("k", "/v1/transfers", &give(1)).expect(201);
    world.post("/v1/transfers/batch", &json!({"transfers": [give(2)]})).expect(200);
    world.post("/v1/deposits", &json!({"to": ann, "amount": 1, "metadata": data(3)})).expect(201);
    let hold = json!({"member": ann, "amount": 5, "metadata": data(4)});
    let hold = world.post_under("h", "/v1/holds", &hold).expect(201);
    assert_eq!(hold["metadata"], data(4));
    let hold = format!("/v1/holds/{}", hold["id"].as_str().expect("an id"));
    // A retry needs the same.
    let again = world.post_under("k", "/v1/transfers", &give(1));
    assert!(again.is_replay());
    world.post_under("k", "/v1/transfers", &give(2)).refused(422, "idempotency_key_reused");
    let without = json!({"from": ann, "to": bob, "amount": 1});
    world.post_under("k", "/v1/transfers", &without).refused(422, "idempotency_key_reused");
    let other = json!({"member": ann, "amount": 5, "metadata": {}});
    world.post_under("h", "/v1/holds", &other).refused(422, "idempotency_key_reused");
    world.post(&format!("{hold}/capture"), &json!({})).expect(200);
    let of = |rows: &[Value]| rows.iter().map(|row| row["metadata"].clone()).collect::<Vec<_>>();
    let wanted = [Value::Null, data(3), data(2), data(1), Value::Null];
    for killed in [false, true] {
        if killed {
            world.server.kill9();
            world.restarted();
        }
        assert_eq!(of(&world.full_history(&ann, 2)), wanted, "killed: {killed}");
        let path = format!("/v1/ledger/transactions/{}", made["group_id"].as_str().expect("an id"));
        assert_eq!(world.get(&path)["metadata"], data(1));
        let all = world.get("/v1/ledger/transactions");
        assert_eq!(of(all["items"].as_array().expect("rows")), wanted);
        let held = world.get(&hold);
        assert_eq!((&held["metadata"], &held["status"]), (&data(4), &json!("captured")));
        assert_eq!(world.get("/v1/holds")["items"], json!([held]));
    }
    let own = Request::new("GET", "/v1/me/transactions").key(&token);
    for line in world.client.send(&own).expect(200)["items"].as_array().expect("lines") {
        assert!(line.get("metadata").is_none(), "{line}");
    }
}

/// The idempotency key of another credential is another key, so its request has an effect of its own. One scope has two actors:
/// a replay keeps the first.
#[test]
fn a_retry_keeps_the_first_actor_and_needs_the_same_reason() {
    let mut world = World::start(&[]);
    let ann = world.member("ann", 0);
    let gift = json!({"to": ann, "amount": 1, "reason": "gift"});
    let deposit = Request::new("POST", "/v1/deposits").json(&gift).idempotent("k");
    let first = world.client.send(&deposit).expect(201);
    let mut local = world.server.local();
    let again = local.send(&deposit);
    assert!(again.is_replay());
    assert_eq!(again.expect(201), first);
    for reason in [json!({"to": ann, "amount": 1}), json!({"to": ann, "amount": 1, "reason": "gifts"})] {
        let other = Request::new("POST", "/v1/deposits").json(&reason).idempotent("k");
        local.send(&other).refused(422, "idempotency_key_reused");
    }
    let (shop, mut by_shop) = key(&world, "server");
    world.client = world.server.local();
    let second = by_shop.send(&deposit);
    assert!(!second.is_replay());
    let second = second.expect(201);
    assert_eq!(of_transfer(&mut world, &first), ("local".into(), Some("gift".into())));
    assert_eq!(of_transfer(&mut world, &second), (shop, Some("gift".into())));
    assert_eq!(world.balance(&ann), "2");
}

#[test]
fn the_fee_of_a_contest_keeps_the_actor_that_applies_and_the_one_that_starts() {
    let mut world = World::start(&[]);
    let (ann, token) = world.payer("ann", "010-2222", 100);
    let bob = world.member("bob", 100);
    let (shop, mut by_shop) = key(&world, "server");
    let (desk, mut by_desk) = key(&world, "admin");
    world.client = world.server.local();
    let cup =
        json!({"id": "cup", "title": "Cup", "capacity": 1, "entry_fee": {"currency": "KRW", "amount": "10"}});
    world.post("/v1/contests", &cup).expect(201);
    world.post("/v1/contests/cup/open", &json!({})).expect(200);
    let applications = "/v1/contests/cup/applications";
    let own = world.client.send(&Request::new("POST", applications).json(&json!({})).key(&token)).expect(201);
    let other = by_shop.post(applications, &json!({"player": bob})).expect(201);
    by_desk.post(&format!("{applications}/accept"), &json!({"players": [ann]})).expect(200);
    by_desk.post("/v1/contests/cup/start", &json!({})).expect(200);
    // The start leaves the applications that were not accepted to the server itself.
    for (application, made_by, ended_by) in
        [(&own, format!("member:{ann}"), desk.as_str()), (&other, shop, "background")]
    {
        let hold = world.get(&format!("/v1/holds/{}", application["hold_id"].as_str().expect("an id")));
        assert_eq!((&hold["actor"], &hold["ended_by"]), (&json!(made_by), &json!(ended_by)), "{hold}");
    }
    let fee = world.full_history(&ann, 9).remove(0);
    assert_eq!((&fee["type"], origin(&fee)), (&json!("fee"), (desk.as_str(), None)));
    // A server pays it back, after the act that cancels the contest.
    by_desk.post("/v1/contests/cup/cancel", &json!({})).expect(200);
    tally_testkit::wait_until("the fee is paid back", || world.full_history(&ann, 9).len() == 3);
    let refund = world.full_history(&ann, 9).remove(0);
    assert_eq!((&refund["type"], origin(&refund)), (&json!("refund"), ("background", None)));
}
