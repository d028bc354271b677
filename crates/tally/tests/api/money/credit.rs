//! Promotional credit over HTTP: given, spent first, kept from other members, and gone at its instant.

use super::world::World;
use serde_json::{Value, json};
use tally_testkit::{DatabaseKind, ScratchDatabase, wait_until};

/// An instant in so many seconds, by the clock of the server.
fn in_seconds(world: &mut World, member: &str, seconds: i64) -> String {
    let now =
        world.history(member, 1)[0]["at"].as_str().and_then(tally_wire::time::parse).expect("an instant");
    tally_wire::time::format(now.plus(seconds * 1_000_000))
}

fn shown(world: &mut World, member: &str) -> Value {
    world.get(&format!("/v1/wallets/{member}"))["items"][0].clone()
}

fn account(world: &mut World, name: &str) -> Value {
    let accounts = world.get("/v1/ledger/accounts")["items"].clone();
    accounts
        .as_array()
        .expect("accounts")
        .iter()
        .find(|one| one["account"] == name)
        .expect("it is there")
        .clone()
}

#[test]
fn credit_is_spent_first_and_stays_with_its_member() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    for store in [&[][..], &[("TALLY_STORE_URL", &*database)]] {
        let mut world = World::start(store);
        let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
        let give = |units: u64, at: &str| json!({"to": ann, "amount": units, "expires_at": at});
        let (first, last) = ("2998-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z");
        let made = world.post_under("k", "/v1/deposits", &give(30, last)).expect(201);
        assert_eq!((&made["type"], &made["after"]), (&json!("promotion"), &json!("130")));
        assert!(world.post_under("k", "/v1/deposits", &give(30, last)).is_replay());
        world.post_under("k", "/v1/deposits", &give(30, first)).refused(422, "idempotency_key_reused");
        world.post("/v1/deposits", &give(20, first)).expect(201);
        let open = |rows: &[(&str, &str)]| {
            let one = |(amount, at): &(&str, &str)| json!({"amount": amount, "expires_at": at});
            json!(rows.iter().map(one).collect::<Vec<_>>())
        };
        let wallet = shown(&mut world, &ann);
        assert_eq!((&wallet["balance"], &wallet["promotional"]), (&json!("150"), &json!("50")));
        assert_eq!(wallet["credits"], open(&[("20", first), ("30", last)]));
        world.post("/v1/withdrawals", &json!({"from": ann, "amount": 25})).expect(201);
        assert_eq!(shown(&mut world, &ann)["credits"], open(&[("25", last)]));
        let plain = |units: u64| json!({"from": ann, "amount": units, "promotional": false});
        let transfer = |units: u64| json!({"from": ann, "to": bob, "amount": units});
        let short = world.post("/v1/transfers", &transfer(101));
        short.refused(422, "insufficient_funds");
        // What a transfer may use is less than what is available.
        let (short, wallet) = (short.json(), shown(&mut world, &ann));
        assert_eq!((&short["available"], &wallet["available"]), (&json!("100"), &json!("125")));
        assert!(
            short["detail"].as_str().is_some_and(|text| text.contains("can pay 100 for this")),
            "{short}"
        );
        world.post("/v1/withdrawals", &plain(101)).refused(422, "insufficient_funds");
        world.post("/v1/transfers", &transfer(60)).expect(201);
        world.post("/v1/withdrawals", &plain(30)).expect(201);
        let hold = world.post("/v1/holds", &json!({"member": ann, "amount": 35})).expect(201);
        let capture = format!("/v1/holds/{}/capture", hold["id"].as_str().expect("an id"));
        world.post(&capture, &json!({"to": bob})).refused(422, "insufficient_funds");
        world.server.kill9();
        world.restarted();
        world.post(&capture, &json!({"amount": 20})).expect(200);
        let wallet = shown(&mut world, &ann);
        assert_eq!((&wallet["balance"], &wallet["credits"]), (&json!("15"), &open(&[("5", last)])));
        // The credit of a deposit is taken back, as far as it is there.
        let reverse =
            format!("/v1/ledger/transactions/{}/reverse", made["group_id"].as_str().expect("an id"));
        world.post(&reverse, &json!({"amount": 6})).refused(422, "insufficient_funds");
        world.post(&reverse, &json!({"amount": 5})).expect(201);
        let wallet = shown(&mut world, &ann);
        assert_eq!((&wallet["balance"], wallet.get("promotional")), (&json!("10"), None));
        let promotions = account(&mut world, "PROMOTIONS");
        assert_eq!((&promotions["debits"], &promotions["credits"]), (&json!("50"), &json!("5")));
        world.audit();
    }
}

#[test]
fn expired_credit_leaves_the_wallet_and_a_hold_keeps_its_part() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    for store in [&[][..], &[("TALLY_STORE_URL", &*database)]] {
        let mut world = World::start(store);
        // A busy machine may need longer than the credit lasts, and a hold reserves none that has expired: then another
        // member gets some that lasts longer.
        let (ann, hold) = [2, 8, 60]
            .into_iter()
            .find_map(|seconds| {
                let member = world.member(&format!("ann-{seconds}"), 10);
                let soon = in_seconds(&mut world, &member, seconds);
                let given = json!({"to": member, "amount": 50, "expires_at": soon});
                let given = world.post("/v1/deposits", &given).status;
                let placed = world.post("/v1/holds", &json!({"member": member, "amount": 20}));
                if placed.status == 201 {
                    return Some((member, placed.expect(201)["id"].as_str().expect("an id").to_owned()));
                }
                assert!([201, 422].contains(&given));
                wait_until("all of it has expired", || shown(&mut world, &member)["balance"] == "10");
                None
            })
            .expect("a hold before the credit expires");
        let hold = format!("/v1/holds/{hold}");
        wait_until("the rest has expired", || shown(&mut world, &ann)["balance"] == "30");
        let wallet = shown(&mut world, &ann);
        assert_eq!(
            (&wallet["held"], &wallet["available"], &wallet["promotional"]),
            (&json!("20"), &json!("10"), &json!("20")),
            "{wallet}"
        );
        let newest = world.full_history(&ann, 1)[0].clone();
        assert_eq!(
            (&newest["type"], &newest["amount"], &newest["actor"]),
            (&json!("expiry"), &json!("30"), &json!("background"))
        );
        let reverse =
            format!("/v1/ledger/transactions/{}/reverse", newest["group_id"].as_str().expect("an id"));
        world.post(&reverse, &json!({})).refused(422, "not_reversible");
        world.post(&format!("{hold}/capture"), &json!({"amount": 5})).expect(200);
        wait_until("what was not captured leaves", || shown(&mut world, &ann)["balance"] == "10");
        let promotions = account(&mut world, "PROMOTIONS");
        let units = |side: &str| -> i64 { promotions[side].as_str().expect("text").parse().expect("units") };
        assert_eq!(units("debits") - units("credits"), 5, "what was captured: {promotions}");
        world.post("/v1/withdrawals", &json!({"from": ann, "amount": 10, "promotional": false})).expect(201);
        world.audit();
    }
}

#[test]
fn promotional_deposits_count_towards_the_cap_of_their_key() {
    let mut world = World::start(&[]);
    let ann = world.member("ann", 0);
    let key = json!({"scopes": ["money:mint"], "mint_caps": {"KRW": 100}});
    let key =
        world.server.local().post("/v1/keys", &key).expect(201)["key"].as_str().expect("a key").to_owned();
    let mut shop = world.server.client().with_key(&key);
    let give = |units: u64| json!({"to": ann, "amount": units, "expires_at": "2999-01-01T00:00:00Z"});
    shop.post("/v1/deposits", &give(60)).expect(201);
    shop.post("/v1/deposits", &give(41)).refused(422, "mint_cap_reached");
    world.client = world.server.local();
}
