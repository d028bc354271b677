//! Money's part of the tour: answers that need members with balances.

use super::operations::Tour;
use serde_json::{Value, json};
use tally_testkit::{Request, wait_until};

fn post(path: &str, body: &Value) -> Request {
    Request::new("POST", path).json(body)
}

/// A member with this balance.
fn member(tour: &mut Tour<'_>, name: &str, units: u64) -> String {
    let made = tour.local.post("/v1/members", &json!({"login_id": name, "name": name})).expect(201);
    if units > 0 {
        tour.local.post("/v1/deposits", &json!({"to": made["id"], "amount": units})).expect(201);
    }
    made["id"].as_str().expect("an id").to_owned()
}

pub(crate) fn tour(tour: &mut Tour<'_>) {
    let (ann, bob) = (member(tour, "money-ann", 1_000), member(tour, "money-bob", 100));
    movements(tour, &ann, &bob);
    reversals(tour, &ann, &bob);
    movements_refused(tour, &ann, &bob);
    holds(tour, &ann, &bob);
    reads(tour, &ann);
    closed(tour, &ann);
}

fn movements(tour: &mut Tour<'_>, ann: &str, bob: &str) {
    tour.good(
        "deposit",
        201,
        post("/v1/deposits", &json!({"to": ann, "amount": "500", "reason": "gift", "metadata": {"a": 1}})),
    );
    tour.good("withdraw", 201, post("/v1/withdrawals", &json!({"from": ann, "amount": 1})));
    let given = json!({"from": ann, "to": bob, "currency": "KRW", "amount": 7, "reference": "order 7"});
    let sent = tour.good("transfer", 201, post("/v1/transfers", &given));
    for id in [&sent["id"], &sent["group_id"]] {
        let path = format!("/v1/ledger/transactions/{}", id.as_str().expect("an id"));
        tour.good("getMovement", 200, Request::new("GET", path));
    }
    let named = json!({"id": "tour", "from": ann, "to": bob, "amount": 1, "linked": true});
    let plain = json!({"from": ann, "to": bob, "amount": 1});
    tour.good("transferBatch", 200, post("/v1/transfers/batch", &json!({"transfers": [named, plain]})));
    let refused = json!({"transfers": [{"id": "x", "from": ann, "to": bob, "amount": 0}, {}]});
    let refused = post("/v1/transfers/batch", &refused);
    let answer = tour.local.send(&refused);
    tour.note(tour.document.operation("transferBatch"), &refused, &answer);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn reversals(tour: &mut Tour<'_>, ann: &str, bob: &str) {
    let give = json!({"from": ann, "to": bob, "amount": 50});
    let made = tour.good("transfer", 201, post("/v1/transfers", &give));
    let reverse = |movement: &Value| {
        format!("/v1/ledger/transactions/{}/reverse", movement["group_id"].as_str().expect("an id"))
    };
    let body = json!({"amount": "20", "reason": "chargeback 12"});
    let part = tour.good("reverseMovement", 201, post(&reverse(&made), &body));
    for (status, code, movement, body) in [
        (422, "invalid_amount", &made, json!({"amount": 0})),
        (422, "limit_exceeded", &made, json!({"amount": "9999999999999999"})),
        (422, "exceeds_reversible", &made, json!({"amount": 31})),
        (422, "not_reversible", &part, json!({})),
    ] {
        tour.refused("reverseMovement", status, code, &post(&reverse(movement), &body));
    }
    tour.good("reverseMovement", 201, Request::new("POST", reverse(&made)));
    for movement in [&made, &part] {
        let path = reverse(movement).replace("/reverse", "");
        tour.good("getMovement", 200, Request::new("GET", path));
    }
    let capped = json!({"scopes": ["money:mint"], "mint_caps": {"KRW": 1}});
    let made = tour.local.post("/v1/keys", &capped).expect(201);
    let beyond =
        post("/v1/deposits", &json!({"to": bob, "amount": 2})).key(made["key"].as_str().expect("a key"));
    tour.refused("deposit", 422, "mint_cap_reached", &beyond);
    // Its receiver has spent it.
    let deposit = tour.good("deposit", 201, post("/v1/deposits", &json!({"to": bob, "amount": 900_000})));
    tour.good("withdraw", 201, post("/v1/withdrawals", &json!({"from": bob, "amount": 900_000})));
    tour.refused("reverseMovement", 422, "insufficient_funds", &post(&reverse(&deposit), &json!({})));
}

fn movements_refused(tour: &mut Tour<'_>, ann: &str, bob: &str) {
    let nobody = "0190f8a0-0000-7000-8000-000000000000";
    let body = |from: &str, to: &str, amount: Value, currency: &str| json!({"from": from, "to": to, "amount": amount, "currency": currency});
    for (status, code, from, to, amount, currency) in [
        (422, "invalid_amount", ann, bob, json!(0), "KRW"),
        (422, "limit_exceeded", ann, bob, json!("9999999999999999"), "KRW"),
        (422, "currency_mismatch", ann, bob, json!(1), "XAU"),
        (422, "same_wallet", ann, ann, json!(1), "KRW"),
        (422, "insufficient_funds", bob, ann, json!(900_000), "KRW"),
        (404, "member_not_found", nobody, ann, json!(1), "KRW"),
        (404, "recipient_not_found", ann, nobody, json!(1), "KRW"),
        // It has no balance yet.
        (404, "wallet_not_found", ann, bob, json!(1), "USD"),
    ] {
        let whole = body(from, to, amount, currency);
        for (id, path, without) in [
            ("deposit", "/v1/deposits", "from"),
            ("withdraw", "/v1/withdrawals", "to"),
            ("transfer", "/v1/transfers", ""),
        ] {
            let mut body = whole.clone();
            body.as_object_mut().expect("an object").remove(without);
            if tour.has(id, status, code) {
                tour.refused(id, status, code, &post(path, &body));
            }
        }
        let held = json!({"member": from, "amount": whole["amount"], "currency": currency});
        if tour.has("placeHold", status, code) {
            tour.refused("placeHold", status, code, &post("/v1/holds", &held));
        }
    }
    let past = json!({"member": ann, "amount": 1, "expires_at": "2020-01-01T00:00:00Z"});
    rules(tour, ann, bob);
    credit(tour);
    tour.refused("placeHold", 422, "hold_expiry_in_past", &post("/v1/holds", &past));
}

/// The rules of a currency that is neither transferred nor withdrawn.
fn rules(tour: &mut Tour<'_>, ann: &str, bob: &str) {
    tour.example("listCurrencies", 200);
    let deposit = json!({"to": ann, "amount": 100_000, "currency": "GEM"});
    tour.good("deposit", 201, post("/v1/deposits", &deposit));
    let one = |name: &str, member: &str| json!({name: member, "amount": 1, "currency": "GEM"});
    tour.refused("deposit", 422, "limit_exceeded", &post("/v1/deposits", &one("to", ann)));
    tour.refused("withdraw", 422, "not_withdrawable", &post("/v1/withdrawals", &one("from", ann)));
    let mut transfer = one("from", ann);
    transfer["to"] = json!(bob);
    tour.refused("transfer", 422, "not_transferable", &post("/v1/transfers", &transfer));
    let hold = tour.good("placeHold", 201, post("/v1/holds", &one("member", ann)));
    let capture = format!("/v1/holds/{}/capture", hold["id"].as_str().expect("an id"));
    tour.refused("captureHold", 422, "not_transferable", &post(&capture, &json!({"to": bob})));
    tour.good("captureHold", 200, post(&capture, &json!({})));
}

/// Promotional credit.
fn credit(tour: &mut Tour<'_>) {
    let cay = member(tour, "money-cay", 10);
    let give = |at: &str| post("/v1/deposits", &json!({"to": cay, "amount": 50, "expires_at": at}));
    tour.good("deposit", 201, give("2999-01-01T00:00:00Z"));
    tour.refused("deposit", 422, "credit_expiry_in_past", &give("2020-01-01T00:00:00Z"));
    let plain = |units: u64| json!({"from": cay, "amount": units, "promotional": false});
    tour.refused("withdraw", 422, "insufficient_funds", &post("/v1/withdrawals", &plain(11)));
    tour.good("withdraw", 201, post("/v1/withdrawals", &plain(10)));
    let shown = tour.good("getWallets", 200, Request::new("GET", format!("/v1/wallets/{cay}")));
    assert_eq!(shown["items"][0]["promotional"], "50", "{shown}");
    let history = format!("/v1/wallets/{cay}/transactions");
    tour.good("listTransactions", 200, Request::new("GET", history));
}

fn holds(tour: &mut Tour<'_>, ann: &str, bob: &str) {
    let place = |tour: &mut Tour<'_>, body: Value| {
        let made = tour.good("placeHold", 201, post("/v1/holds", &body));
        format!("/v1/holds/{}", made["id"].as_str().expect("an id"))
    };
    let body = json!({"member": ann, "amount": 10, "expires_at": "2999-01-01T00:00:00Z", "reason": "entry", "metadata": {}});
    let (one, two) = (place(tour, body), place(tour, json!({"member": ann, "amount": "10"})));
    tour.good("getHold", 200, Request::new("GET", &one));
    let capture = |hold: &str, body: &Value| post(&format!("{hold}/capture"), body);
    for (status, code, body) in [
        (404, "recipient_not_found", json!({"to": "0190f8a0-0000-7000-8000-000000000000"})),
        (422, "invalid_amount", json!({"amount": -1})),
        (422, "limit_exceeded", json!({"amount": "9999999999999999"})),
        (422, "exceeds_hold", json!({"amount": 11})),
        (422, "same_wallet", json!({"to": ann})),
    ] {
        tour.refused("captureHold", status, code, &capture(&one, &body));
    }
    tour.good("captureHold", 200, capture(&one, &json!({"amount": 3, "to": bob, "reason": "won"})));
    let three = place(tour, json!({"member": ann, "amount": 1}));
    tour.good("captureHold", 200, capture(&three, &json!({})));
    tour.good("voidHold", 200, post(&format!("{two}/void"), &json!({"reason": "called off"})));
    tour.refused("captureHold", 409, "hold_resolved", &capture(&two, &json!({})));
    tour.refused("voidHold", 409, "hold_resolved", &Request::new("POST", format!("{one}/void")));
    for path in [&one, &two] {
        tour.good("getHold", 200, Request::new("GET", path));
    }
    let soon = tally_wire::time::parse(
        tour.good("getHold", 200, Request::new("GET", &two))["ended_at"].as_str().expect("an instant"),
    );
    let soon = tally_wire::time::format(soon.expect("an instant").plus(6_000_000));
    let short = place(tour, json!({"member": ann, "amount": 1, "expires_at": soon}));
    wait_until("its time is over", || tour.local.get(&short).expect(200)["status"] != "open");
    tour.good("getHold", 200, Request::new("GET", &short));
    tour.refused("captureHold", 409, "hold_expired", &capture(&short, &json!({})));
    tour.refused("voidHold", 409, "hold_expired", &Request::new("POST", format!("{short}/void")));
}

/// The impossible operations on a closed member.
fn closed(tour: &mut Tour<'_>, ann: &str) {
    let gone = member(tour, "money-gone", 0);
    tour.local.post(&format!("/v1/members/{gone}/close"), &json!({})).expect(200);
    let hold = tour.good("placeHold", 201, post("/v1/holds", &json!({"member": ann, "amount": 1})));
    let capture = format!("/v1/holds/{}/capture", hold["id"].as_str().expect("an id"));
    for (id, path, body) in [
        ("deposit", "/v1/deposits", json!({"to": gone, "amount": 1})),
        ("transfer", "/v1/transfers", json!({"from": ann, "to": gone, "amount": 1})),
        ("placeHold", "/v1/holds", json!({"member": gone, "amount": 1})),
        ("captureHold", &capture, json!({"to": gone})),
    ] {
        tour.refused(id, 409, "member_closed", &post(path, &body));
    }
}

fn reads(tour: &mut Tour<'_>, ann: &str) {
    tour.good("getWallets", 200, Request::new("GET", format!("/v1/wallets/{ann}")));
    let history = format!("/v1/wallets/{ann}/transactions");
    let page =
        tour.good("listTransactions", 200, Request::new("GET", format!("{history}?limit=2&currency=KRW")));
    let cursor = page["next_cursor"].as_str().expect("there are more").to_owned();
    tour.good("listTransactions", 200, Request::new("GET", format!("{history}?cursor={cursor}")));
    let of = |currency: &str| Request::new("GET", format!("{history}?currency={currency}"));
    tour.refused("listTransactions", 422, "currency_mismatch", &of("XAU"));
    tour.refused("listTransactions", 404, "wallet_not_found", &of("USD"));
    tour.example("listAccounts", 200);
    tour.example("getTrialBalance", 200);
    let from = "from=2020-01-01T00:00:00Z&limit=1";
    let filters = [
        format!("member={ann}&actor=local&amount_min=1&amount_max=1000"),
        "type=transfer_out&reference=order+7".to_owned(),
        "contest=cup&currency=KRW".to_owned(),
    ];
    for filter in filters {
        let target = format!("/v1/ledger/transactions?{filter}&{from}");
        tour.good("listMovements", 200, Request::new("GET", target));
    }
    for filter in ["state=voided".to_owned(), format!("member={ann}")] {
        tour.good("listHolds", 200, Request::new("GET", format!("/v1/holds?{filter}&{from}")));
    }
    tour.good("listOwed", 200, Request::new("GET", "/v1/ledger/owed?no_member=true"));
}
