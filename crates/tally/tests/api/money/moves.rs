//! Deposits, withdrawals, transfers, their entries in histories and accounts, and their retries.

use super::world::World;
use serde_json::{Value, json};

#[test]
fn each_side_of_a_movement_shows_before_and_after() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 0), world.member("bob", 0));
    let paid =
        world.post("/v1/deposits", &json!({"to": ann, "amount": 1000, "reference": "card 7"})).expect(201);
    assert_eq!(paid["type"], "deposit");
    assert_eq!(
        (&paid["amount"], &paid["before"], &paid["after"]),
        (&json!("1000"), &json!("0"), &json!("1000"))
    );
    assert_eq!((&paid["counterparty"], &paid["reference"]), (&json!(null), &json!("card 7")));
    let given = json!({"from": ann, "to": bob, "currency": "KRW", "amount": "300"});
    let sent = world.post("/v1/transfers", &given).expect(201);
    assert_eq!(
        (&sent["type"], &sent["before"], &sent["after"]),
        (&json!("transfer_out"), &json!("1000"), &json!("700"))
    );
    assert_eq!((&sent["counterparty"], &sent["reference"]), (&json!(bob), &json!(null)));
    let taken = world.post("/v1/withdrawals", &json!({"from": bob, "amount": 50})).expect(201);
    assert_eq!(
        (&taken["type"], &taken["before"], &taken["after"]),
        (&json!("withdrawal"), &json!("300"), &json!("250"))
    );

    let of_bob = world.history(&bob, 20);
    assert_eq!(of_bob.len(), 2);
    assert_eq!(of_bob[0], taken);
    assert_eq!((&of_bob[1]["type"], &of_bob[1]["counterparty"]), (&json!("transfer_in"), &json!(ann)));
    assert_eq!(of_bob[1]["group_id"], sent["group_id"]);
    assert_ne!(of_bob[1]["id"], sent["id"]);
    assert_eq!(world.history(&ann, 20), [sent.clone(), paid.clone()]);
    let purse = json!({"member": ann, "currency": "KRW", "balance": "700", "held": "0", "available": "700"});
    assert_eq!(
        world.get(&format!("/v1/wallets/{ann}")),
        json!({"member": ann, "items": [purse], "wallets": [purse]})
    );

    // One transfer, by the id of the whole and of each side.
    let group = sent["group_id"].as_str().unwrap();
    let whole = world.get(&format!("/v1/ledger/transactions/{group}"));
    assert_eq!(
        (&whole["id"], &whole["type"], &whole["amount"]),
        (&sent["group_id"], &json!("transfer_out"), &json!("300"))
    );
    let side = |member: &str, name: &str, transaction: &Value, other: &str| {
        let mut transaction = transaction.clone();
        transaction["counterparty_name"] = json!(other);
        json!({"account": "BANK_PAYABLE", "member": member, "name": name, "transaction": transaction})
    };
    assert_eq!(whole["debit"], side(&ann, "ann", &sent, "bob"));
    assert_eq!(whole["credit"], side(&bob, "bob", &of_bob[1], "ann"));
    for side in [&sent, &of_bob[1]] {
        assert_eq!(world.get(&format!("/v1/ledger/transactions/{}", side["id"].as_str().unwrap())), whole);
    }
    let of_deposit = world.get(&format!("/v1/ledger/transactions/{}", paid["id"].as_str().unwrap()));
    assert_eq!(
        of_deposit["debit"],
        json!({"account": "BANK_ASSET", "member": null, "name": null, "transaction": null})
    );
    assert_eq!(of_deposit["reference"], "card 7");

    let row = |account: &str, debits: &str, credits: &str| json!({"account": account, "currency": "KRW", "debits": debits, "credits": credits});
    let wanted = [
        row("BANK_ASSET", "1000", "50"),
        row("BANK_PAYABLE", "350", "1300"),
        row("FEES", "0", "0"),
        row("PRIZES", "0", "0"),
        row("PROMOTIONS", "0", "0"),
    ];
    assert_eq!(world.get("/v1/ledger/accounts"), json!({"items": wanted, "accounts": wanted}));
    assert_eq!(
        world.get("/v1/ledger/trial-balance"),
        json!({"balanced": true, "items": wanted, "accounts": wanted})
    );
}

#[test]
fn refusals_name_their_reason_and_move_nothing() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let nobody = "0190f8a0-0000-7000-8000-000000000000";
    let before = (world.history(&ann, 20), world.history(&bob, 20), world.get("/v1/ledger/accounts"));
    for (path, body, status, code) in [
        ("/v1/transfers", json!({"from": ann, "to": bob, "amount": 101}), 422, "insufficient_funds"),
        ("/v1/withdrawals", json!({"from": ann, "amount": 101}), 422, "insufficient_funds"),
        ("/v1/transfers", json!({"from": ann, "to": ann, "amount": 1}), 422, "same_wallet"),
        ("/v1/transfers", json!({"from": ann, "to": nobody, "amount": 1}), 404, "recipient_not_found"),
        ("/v1/transfers", json!({"from": ann, "to": "nobody", "amount": 1}), 404, "recipient_not_found"),
        ("/v1/transfers", json!({"from": nobody, "to": ann, "amount": 1}), 404, "member_not_found"),
        ("/v1/transfers", json!({"from": nobody, "to": nobody, "amount": 1}), 404, "member_not_found"),
        ("/v1/transfers", json!({"from": "a", "to": "b", "amount": 1}), 404, "member_not_found"),
        ("/v1/holds", json!({"member": "a", "amount": 1}), 404, "member_not_found"),
        ("/v1/deposits", json!({"to": nobody, "amount": 1}), 404, "recipient_not_found"),
        ("/v1/withdrawals", json!({"from": "", "amount": 1}), 404, "member_not_found"),
        ("/v1/deposits", json!({"to": ann, "amount": 1, "currency": "XAU"}), 422, "currency_mismatch"),
        ("/v1/deposits", json!({"to": ann, "amount": 0}), 422, "invalid_amount"),
        ("/v1/deposits", json!({"to": ann, "amount": "-1"}), 422, "invalid_amount"),
        ("/v1/deposits", json!({"to": ann, "amount": true}), 422, "invalid_amount"),
        ("/v1/deposits", json!({"to": ann, "amount": 1_000_000_000_000_001_u64}), 422, "limit_exceeded"),
        ("/v1/deposits", json!({"to": ann, "amount": "10000000000000000"}), 422, "limit_exceeded"),
    ] {
        let answer = world.post(path, &body);
        answer.refused(status, code);
        if ["invalid_amount", "limit_exceeded"].contains(&code) {
            assert_eq!(answer.json()["errors"][0]["pointer"], "/amount", "{}", answer.text());
        }
        if code.ends_with("_not_found") {
            let (named, text) = (body.to_string().contains(nobody), answer.text());
            assert!(text.contains(if named { nobody } else { "send the `id` of a member as `" }), "{text}");
        }
    }
    let linked = json!({"from": "a", "to": "b", "amount": 1, "linked": true});
    let rows = json!({"transfers": [linked, {"from": ann, "to": bob, "amount": 1}]});
    let results = world.post("/v1/transfers/batch", &rows).expect(200)["results"].clone();
    let code = |row: usize| &results[row]["error"]["code"];
    assert_eq!((code(0), code(1)), (&json!("member_not_found"), &json!("linked_failed")));
    for (path, code) in [
        (format!("/v1/wallets/{nobody}"), "member_not_found"),
        (format!("/v1/wallets/{nobody}/transactions"), "member_not_found"),
        (format!("/v1/ledger/transactions/{nobody}"), "transaction_not_found"),
        (format!("/v1/ledger/transactions/{ann}"), "transaction_not_found"),
    ] {
        let answer = world.client.get(&path);
        answer.refused(404, code);
        let named = path.split('/').find(|part| part.len() == nobody.len()).expect("an id");
        assert!(answer.text().contains(&format!("`{named}`")), "{}", answer.text());
    }
    // The other side of a transfer that has none.
    let deposit = before.0[0]["group_id"].as_str().unwrap().to_owned();
    let last = u8::from_str_radix(&deposit[35..], 16).unwrap() | 1;
    world
        .client
        .get(&format!("/v1/ledger/transactions/{}{last:x}", &deposit[..35]))
        .refused(404, "transaction_not_found");
    let after = (world.history(&ann, 20), world.history(&bob, 20), world.get("/v1/ledger/accounts"));
    assert_eq!(after, before);
}

#[test]
fn pages_of_a_history_hold_still_while_it_grows() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 1_000), world.member("bob", 1_000));
    for units in 1..=30 {
        world.post("/v1/transfers", &json!({"from": ann, "to": bob, "amount": units})).expect(201);
    }
    let all = world.full_history(&ann, 1_000);
    assert_eq!(all.len(), 31);
    for limit in [1, 7, 30, 31] {
        assert_eq!(world.full_history(&ann, limit), all, "by {limit}");
    }
    let path = format!("/v1/wallets/{ann}/transactions");
    assert_eq!(world.get(&path)["items"], json!(all[..20]));
    let first = world.get(&format!("{path}?limit=10"));
    let cursor = first["next_cursor"].as_str().expect("there is more").to_owned();
    world.post("/v1/transfers", &json!({"from": bob, "to": ann, "amount": 5})).expect(201);
    assert_eq!(world.get(&format!("{path}?limit=10&cursor={cursor}"))["items"], json!(all[10..20]));
    let second = world.get(&format!("{path}?limit=21&cursor={cursor}"));
    assert_eq!((&second["items"], second.get("next_cursor")), (&json!(all[10..]), None));
    // A cursor is of one wallet's history.
    for other in [format!("/v1/wallets/{bob}/transactions?cursor={cursor}"), format!("{path}?cursor=AA")] {
        world.client.get(&other).refused(400, "invalid_cursor");
    }
}

#[test]
fn a_retry_is_the_first_answer_whichever_way_it_comes() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let body = json!({"from": ann, "to": bob, "amount": 40});
    let first = world.post_under("k", "/v1/transfers", &body);
    assert!(!first.is_replay());
    let first = first.expect(201);
    world.post("/v1/withdrawals", &json!({"from": ann, "amount": 10})).expect(201);
    // The same in other words: text for a number, an explicit default, another case, the row of a batch.
    for same in [
        body.clone(),
        json!({"from": ann, "to": bob, "amount": "40"}),
        json!({"from": ann.to_uppercase(), "to": bob, "amount": 40, "currency": "KRW"}),
    ] {
        let again = world.post_under("k", "/v1/transfers", &same);
        assert!(again.is_replay(), "{same}");
        assert_eq!(again.expect(201), first);
    }
    let row = json!({"transfers": [{"id": "k", "from": ann, "to": bob, "amount": 40}]});
    let batch = world.post("/v1/transfers/batch", &row);
    assert!(batch.is_replay());
    assert_eq!(
        batch.json()["results"][0],
        json!({"id": "k", "idempotency_key": "k", "status": "posted", "transaction": first, "replayed": true})
    );
    // Another request under the key.
    for (path, other) in [
        ("/v1/transfers", json!({"from": ann, "to": bob, "amount": 41})),
        ("/v1/transfers", json!({"from": ann, "to": bob, "amount": 40, "reference": ""})),
        ("/v1/withdrawals", json!({"from": ann, "amount": 40})),
        ("/v1/deposits", json!({"to": bob, "amount": 40})),
        ("/v1/holds", json!({"member": ann, "amount": 40})),
    ] {
        world.post_under("k", path, &other).refused(422, "idempotency_key_reused");
    }
    assert_eq!((world.balance(&ann), world.balance(&bob)), ("50".into(), "40".into()));
    // A rejection is not kept: the same key may be tried again.
    let more = json!({"from": bob, "to": ann, "amount": 60});
    world.post_under("r", "/v1/transfers", &more).refused(422, "insufficient_funds");
    world.post("/v1/deposits", &json!({"to": bob, "amount": 20})).expect(201);
    assert!(!world.post_under("r", "/v1/transfers", &more).is_replay());
    assert!(world.post_under("r", "/v1/transfers", &more).is_replay());
    // Another caller's key is another key, and a restart forgets none.
    world.server.kill9();
    world.server.restart();
    world.client = world.server.client();
    let again = world.post_under("k", "/v1/transfers", &body);
    assert!(again.is_replay());
    assert_eq!(again.expect(201), first);
}

/// In the units of amounts, and never of the recipient.
#[test]
fn a_refusal_says_what_is_needed_and_what_is_available() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 7));
    world.post("/v1/holds", &json!({"member": ann, "amount": 40})).expect(201);
    for (path, body) in [
        ("/v1/transfers", json!({"from": ann, "to": bob, "amount": 61})),
        ("/v1/withdrawals", json!({"from": ann, "amount": 61})),
        ("/v1/holds", json!({"member": ann, "amount": 61})),
    ] {
        let answer = world.post(path, &body);
        answer.refused(422, "insufficient_funds");
        let problem = answer.json();
        assert_eq!((&problem["needed"], &problem["available"]), (&json!("61"), &json!("60")), "{problem}");
        let detail = problem["detail"].as_str().expect("a sentence");
        assert!(detail.contains("61") && detail.contains("60"), "{detail}");
    }
}

#[test]
fn the_ledgers_lane_is_counted() {
    let mut world = World::start(&[]);
    let ann = world.member("ann", 5);
    assert_eq!(world.history(&ann, 5).len(), 1);
    let metrics = world.client.get("/metrics");
    let metric = |name: &str| tally_testkit::audit::metric(&metrics, name);
    // The member and the deposit.
    assert_eq!(metric("tally_ledger_lane_requests_total"), 2.0);
    assert_eq!(metric("tally_ledger_lane_queued_requests"), 0.0);
    assert_eq!(metric("tally_lane_requests_total"), 0.0);
    for stage in ["queue", "read", "commit"] {
        let labels = format!("lane=\"ledger\",stage=\"{stage}\"");
        assert_eq!(metric(&format!("tally_lane_seconds_count{{{labels}}}")), 2.0, "{stage}");
    }
    let lanes = world.get("/v1/status")["lanes"].clone();
    assert_eq!((&lanes[1]["lane"], &lanes[1]["requests"]), (&json!("ledger"), &json!(2)));
}
