//! Transfers and holds by filters, and the names and currencies in histories.

use super::world::World;
use serde_json::{Value, json};
use tally_testkit::audit::read_pages;
use tally_testkit::{Client, Request};

/// A new key: its actor, and a client that has it.
fn key(world: &World) -> (String, Client) {
    let made = world.server.local().post("/v1/keys", &json!({"role": "server"})).expect(201);
    let (id, token) = (made["id"].as_str().expect("an id"), made["key"].as_str().expect("a key"));
    (format!("key:{id}"), world.server.client().with_key(token))
}

/// A list by small pages, oldest first.
fn list(world: &mut World, path: &str, query: &str) -> Vec<Value> {
    let (mut items, _) = read_pages(&mut world.client, &format!("{path}?limit=2{query}"), "items");
    items.reverse();
    items
}

/// The references of a list of transfers; their amounts where they have none.
fn told(world: &mut World, query: &str) -> Vec<String> {
    let rows = list(world, "/v1/ledger/transactions", query);
    let told = |row: &Value| row["reference"].as_str().or(row["amount"].as_str()).expect("one").to_owned();
    rows.iter().map(told).collect()
}

#[test]
fn transfers_are_found_by_each_filter() {
    let mut world = World::start(&[("TALLY_CURRENCIES_GEM", "0")]);
    let (ann, bob, cid) = (world.member("ann", 100), world.member("bob", 0), world.member("cid", 0));
    let (shop, mut by_shop) = key(&world);
    world.client = world.server.local();
    let give = |to: &str, amount: u64, reference: &str| json!({"from": ann, "to": to, "amount": amount, "reference": reference});
    by_shop.post("/v1/transfers", &give(&bob, 10, "one")).expect(201);
    let two = by_shop.post("/v1/transfers", &give(&cid, 20, "two")).expect(201);
    let gems = json!({"to": bob, "amount": 30, "currency": "GEM", "reason": "gift", "reference": "gems"});
    world.post("/v1/deposits", &gems).expect(201);
    world.post("/v1/withdrawals", &json!({"from": bob, "amount": 5, "reference": "two"})).expect(201);
    let back = format!("/v1/ledger/transactions/{}/reverse", two["group_id"].as_str().expect("an id"));
    world.post(&back, &json!({"amount": 7, "reason": "chargeback"})).expect(201);
    let at = two["at"].as_str().expect("an instant").to_owned();
    for killed in [false, true] {
        if killed {
            world.server.kill9();
            world.server.restart();
            world.client = world.server.local();
        }
        for (query, wanted) in [
            (String::new(), &["100", "one", "two", "gems", "two", "two"][..]),
            (format!("&member={ann}"), &["100", "one", "two", "two"]),
            (format!("&member={bob}"), &["one", "gems", "two"]),
            ("&type=transfer_out".into(), &["one", "two"]),
            ("&type=reversal_out".into(), &["two"]),
            ("&reference=two".into(), &["two", "two", "two"]),
            ("&reference=tw".into(), &[]),
            (format!("&reference=two&member={bob}"), &["two"]),
            (format!("&actor={shop}"), &["one", "two"]),
            ("&actor=background".into(), &[]),
            ("&currency=GEM".into(), &["gems"]),
            ("&amount_min=20".into(), &["100", "two", "gems"]),
            ("&amount_max=10".into(), &["one", "two", "two"]),
            ("&amount_min=10&amount_max=10".into(), &["one"]),
            (format!("&from={at}"), &["two", "gems", "two", "two"]),
            (format!("&until={at}"), &["100", "one"]),
        ] {
            assert_eq!(told(&mut world, &query), wanted, "{query}, killed: {killed}");
        }
    }
    // Each row is what the transfer alone shows.
    for row in list(&mut world, "/v1/ledger/transactions", "") {
        let mut whole = world.get(&format!("/v1/ledger/transactions/{}", row["id"].as_str().expect("an id")));
        let fields = whole.as_object_mut().expect("an object");
        ["reversed", "reversals", "reverses"].iter().for_each(|name| drop(fields.remove(*name)));
        for side in ["debit", "credit"] {
            fields[side].as_object_mut().expect("an object").remove("transaction");
        }
        assert_eq!(row, whole);
    }
}

#[test]
fn transfers_of_a_contest_are_those_that_it_made() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 100));
    world.client = world.server.local();
    for id in ["cup", "cups"] {
        let fee = json!({"currency": "KRW", "amount": "10"});
        let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": "15"}]);
        let contest = json!({"id": id, "title": id, "entry_fee": fee, "prizes": prizes});
        let path = format!("/v1/contests/{id}");
        world.post("/v1/contests", &contest).expect(201);
        world.post(&format!("{path}/open"), &json!({})).expect(200);
        for player in [&ann, &bob] {
            world.post(&format!("{path}/applications"), &json!({"player": player})).expect(201);
        }
        let players = json!({"players": [ann, bob]});
        world.post(&format!("{path}/applications/accept"), &players).expect(200);
        world.post(&format!("{path}/start"), &json!({})).expect(200);
    }
    let score = json!({"player": ann, "score": 1});
    world.post("/v1/leaderboards/contest:cup/scores", &score).expect(200);
    world.post("/v1/contests/cup/finish", &json!({})).expect(200);
    world.post("/v1/contests/cup/settle", &json!({})).expect(200);
    world.post("/v1/contests/cups/cancel", &json!({})).expect(200);
    // A caller may write the same reference.
    world.post("/v1/deposits", &json!({"to": ann, "amount": 1, "reference": "contest:cup"})).expect(201);
    let types = |world: &mut World, id: &str| -> Vec<String> {
        let rows = list(world, "/v1/ledger/transactions", &format!("&contest={id}"));
        rows.iter().map(|row| row["type"].as_str().expect("a type").to_owned()).collect()
    };
    tally_testkit::wait_until("prizes and fees are paid", || {
        types(&mut world, "cup").len() == 3 && types(&mut world, "cups").len() == 4
    });
    assert_eq!(types(&mut world, "cup"), ["fee", "fee", "prize"]);
    assert_eq!(types(&mut world, "cups"), ["fee", "fee", "refund", "refund"]);
    assert!(types(&mut world, "other").is_empty());
}

#[test]
fn holds_are_found_by_member_and_state() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 100));
    let mut place = |member: &str, until: Option<&str>| {
        let mut hold = json!({"member": member, "amount": 5});
        until.into_iter().for_each(|until| hold["expires_at"] = json!(until));
        world.post("/v1/holds", &hold).expect(201)["id"].as_str().expect("an id").to_owned()
    };
    let soon = tally_wire::time::format(tally_rules::Micros(super::world::now() + 1_500_000));
    let all = [
        place(&ann, None),
        place(&ann, Some(&soon)),
        place(&bob, None),
        place(&ann, None),
        place(&bob, None),
    ];
    world.post(&format!("/v1/holds/{}/void", all[2]), &json!({})).expect(200);
    world.post(&format!("/v1/holds/{}/capture", all[3]), &json!({"to": bob})).expect(200);
    // A hold that is due is shown as expired, whether the server has ended it or not.
    tally_testkit::wait_until("the hold expires", || {
        !list(&mut world, "/v1/holds", "&state=expired").is_empty()
    });
    for killed in [false, true] {
        if killed {
            world.server.kill9();
            world.restarted();
        }
        let by_ann = format!("&member={ann}");
        let cases: [(&str, &[usize]); 8] = [
            ("", &[0, 1, 2, 3, 4]),
            ("&state=open", &[0, 4]),
            ("&state=expired", &[1]),
            ("&state=voided", &[2]),
            ("&state=captured", &[3]),
            (&by_ann, &[0, 1, 3]),
            (&format!("{by_ann}&state=open"), &[0]),
            (&format!("{by_ann}&state=voided"), &[]),
        ];
        for (query, wanted) in cases {
            let found = list(&mut world, "/v1/holds", query);
            let ids: Vec<&str> = found.iter().map(|hold| hold["id"].as_str().expect("an id")).collect();
            let wanted: Vec<&str> = wanted.iter().map(|at| &*all[*at]).collect();
            assert_eq!(ids, wanted, "{query}, killed: {killed}");
            for hold in &found {
                assert_eq!(world.get(&format!("/v1/holds/{}", hold["id"].as_str().expect("an id"))), *hold);
            }
        }
    }
}

#[test]
fn a_history_names_the_counterparty_and_the_currency() {
    let mut world = World::start(&[]);
    let (ann, token) = world.payer("ann", "010-2222", 100);
    let bob = world.member("bob", 0);
    let sent = world.post("/v1/transfers", &json!({"from": ann, "to": bob, "amount": 9})).expect(201);
    assert_eq!(sent["currency"], "KRW");
    let named = |lines: &[Value]| -> Vec<(Value, Value)> {
        lines.iter().map(|line| (line["currency"].clone(), line["counterparty_name"].clone())).collect()
    };
    let krw = json!("KRW");
    let of_ann = [(krw.clone(), json!("bob")), (krw.clone(), Value::Null)];
    assert_eq!(named(&world.full_history(&ann, 1)), of_ann);
    assert_eq!(named(&world.full_history(&bob, 1)), [(krw, json!("ann"))]);
    let own = world.client.send(&Request::new("GET", "/v1/me/transactions").key(&token)).expect(200);
    assert_eq!(named(own["items"].as_array().expect("lines")), of_ann);
    // The name is that of now.
    let change = Request::new("PATCH", format!("/v1/members/{bob}")).json(&json!({"name": "Bo"}));
    world.client.send(&change).expect(200);
    assert_eq!(world.full_history(&ann, 1)[0]["counterparty_name"], "Bo");
}
