//! Reversals over HTTP: whole and in parts, both links, retries, a crowd, and a kill between them.

use super::world::World;
use serde_json::{Value, json};
use tally_testkit::Request;

fn path(movement: &Value) -> String {
    format!("/v1/ledger/transactions/{}", movement["group_id"].as_str().expect("an id"))
}

#[test]
fn a_transfer_shows_what_was_taken_back_and_by_which() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let given = json!({"from": ann, "to": bob, "amount": 60, "reference": "order 7"});
    let made = world.post("/v1/transfers", &given).expect(201);
    let whole = world.get(&path(&made));
    assert_eq!((&whole["reversed"], &whole["reversals"]), (&json!("0"), &json!([])));
    assert_eq!((&whole["reverses"], &whole["reason"]), (&json!(null), &json!(null)));
    let body = json!({"amount": "20", "reason": "chargeback 12"});
    let part = world.post(&format!("{}/reverse", path(&made)), &body).expect(201);
    assert_eq!(
        (&part["type"], &part["amount"], &part["before"], &part["after"]),
        (&json!("reversal_out"), &json!("20"), &json!("60"), &json!("40"))
    );
    assert_eq!((&part["counterparty"], &part["reference"]), (&json!(ann), &json!("order 7")));
    // By the id of one side, without a body: all that is left.
    let side = made["id"].as_str().expect("an id");
    let reverse = Request::new("POST", format!("/v1/ledger/transactions/{side}/reverse"));
    let rest = world.client.send(&reverse).expect(201);
    assert_eq!((&rest["amount"], &rest["after"]), (&json!("40"), &json!("0")));
    let whole = world.get(&path(&made));
    let row =
        |part: &Value, amount: &str| json!({"id": part["group_id"], "amount": amount, "at": part["at"]});
    assert_eq!(whole["reversals"], json!([row(&part, "20"), row(&rest, "40")]));
    assert_eq!((&whole["reversed"], &whole["type"]), (&json!("60"), &json!("transfer_out")));
    let back = world.get(&path(&part));
    assert_eq!((&back["reverses"], &back["reason"]), (&made["group_id"], &json!("chargeback 12")));
    assert_eq!((&back["type"], &back["reversed"]), (&json!("reversal_out"), &json!("0")));
    assert_eq!((&back["debit"]["member"], &back["credit"]["member"]), (&json!(bob), &json!(ann)));
    assert_eq!(world.get(&path(&rest))["reason"], json!(null));
    // Histories say so on both sides.
    let types = |lines: Vec<Value>| -> Vec<String> {
        lines.iter().map(|line| line["type"].as_str().expect("a type").to_owned()).collect()
    };
    assert_eq!(types(world.history(&bob, 9)), ["reversal_out", "reversal_out", "transfer_in"]);
    assert_eq!(types(world.history(&ann, 9))[..2], ["reversal_in", "reversal_in"]);
    assert_eq!((world.balance(&ann), world.balance(&bob)), ("100".into(), "0".into()));
}

#[test]
fn a_refused_reversal_says_why_and_what_is_left() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let made = world.post("/v1/transfers", &json!({"from": ann, "to": bob, "amount": 60})).expect(201);
    let reverse = format!("{}/reverse", path(&made));
    let exceeds = |world: &mut World, body: &Value, left: &str| {
        let answer = world.post(&reverse, body);
        answer.refused(422, "exceeds_reversible");
        assert_eq!(answer.json()["left"], json!(left), "{}", answer.text());
    };
    exceeds(&mut world, &json!({"amount": 61}), "60");
    let part = world.post(&reverse, &json!({"amount": 25})).expect(201);
    exceeds(&mut world, &json!({"amount": 36}), "35");
    world.post("/v1/withdrawals", &json!({"from": bob, "amount": 1})).expect(201);
    world.post(&reverse, &json!({})).refused(422, "insufficient_funds");
    world.post("/v1/deposits", &json!({"to": bob, "amount": 1})).expect(201);
    world.post(&reverse, &json!({})).expect(201);
    exceeds(&mut world, &json!({}), "0");
    world.post(&format!("{}/reverse", path(&part)), &json!({})).refused(422, "not_reversible");
    let nobody = "/v1/ledger/transactions/0190f8a0-0000-7000-8000-000000000000/reverse";
    world.post(nobody, &json!({})).refused(404, "transaction_not_found");
}

#[test]
fn a_retry_has_one_effect_also_after_a_kill() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let made = world.post("/v1/transfers", &json!({"from": ann, "to": bob, "amount": 60})).expect(201);
    let reverse = format!("{}/reverse", path(&made));
    let first = world.post_under("k", &reverse, &json!({"amount": 20})).expect(201);
    for restarts in [false, true] {
        if restarts {
            world.server.kill9();
            world.restarted();
        }
        // The same transfer by the id of its entry, and the amount as text.
        let side = format!("/v1/ledger/transactions/{}/reverse", made["id"].as_str().expect("an id"));
        for path in [&reverse, &side] {
            let again = world.post_under("k", path, &json!({"amount": "20"}));
            assert!(again.is_replay());
            assert_eq!(again.expect(201), first);
        }
        world.post_under("k", &reverse, &json!({"amount": 21})).refused(422, "idempotency_key_reused");
        world
            .post_under("k", &reverse, &json!({"amount": 20, "reason": ""}))
            .refused(422, "idempotency_key_reused");
        assert_eq!(world.balance(&ann), "60");
    }
}

#[test]
fn a_crowd_takes_back_no_more_than_there_was() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 500));
    let made = world.post("/v1/transfers", &json!({"from": ann, "to": bob, "amount": 100})).expect(201);
    let (reverse, server) = (format!("{}/reverse", path(&made)), &world.server);
    let done: Vec<u16> = std::thread::scope(|scope| {
        let one = || {
            let reverse = &reverse;
            scope.spawn(move || {
                let mut client = server.client();
                let answers = (0..3).map(|_| client.post(reverse, &json!({"amount": 9})));
                answers
                    .map(|answer| {
                        if answer.status != 201 {
                            answer.refused(422, "exceeds_reversible");
                            assert_eq!(answer.json()["left"], "1");
                        }
                        answer.status
                    })
                    .collect::<Vec<_>>()
            })
        };
        let all: Vec<_> = (0..8).map(|_| one()).collect();
        all.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(done.iter().filter(|status| **status == 201).count(), 11);
    assert_eq!(world.get(&path(&made))["reversed"], "99");
    assert_eq!((world.balance(&ann), world.balance(&bob)), ("99".into(), "501".into()));
}
