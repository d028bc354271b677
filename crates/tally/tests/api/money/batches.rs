//! Batches of transfers: each row for itself or linked to the next, each with its own key.

use super::world::World;
use serde_json::{Value, json};
use tally_testkit::{DatabaseKind, Response, ScratchDatabase};

const BATCH: &str = "/v1/transfers/batch";

fn send(world: &mut World, rows: &[Value]) -> Vec<Value> {
    let answer = world.post(BATCH, &json!({"transfers": rows})).expect(200);
    answer["results"].as_array().expect("results").clone()
}

/// The result of each row: `posted`, or the code of its error.
fn told(results: &[Value]) -> Vec<String> {
    let one = |row: &Value| {
        row["status"].as_str().or(row["error"]["code"].as_str()).expect("one of both").to_owned()
    };
    results.iter().map(one).collect()
}

fn row(from: &str, to: &str, units: u64) -> Value {
    json!({"from": from, "to": to, "amount": units})
}

fn tied(from: &str, to: &str, units: u64) -> Value {
    json!({"from": from, "to": to, "amount": units, "linked": true})
}

#[test]
fn rows_stand_for_themselves() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let mut named = row(&ann, &bob, 10);
    named["idempotency_key"] = json!("first");
    let wrong = json!({"id": "w", "from": ann, "to": bob, "amount": 1, "x": 1});
    let rows = [
        named,
        row(&ann, &bob, 91),
        wrong,
        json!({}),
        row(&ann, &bob, 0),
        row(&ann, "nobody", 1),
        row(&bob, &ann, 3),
    ];
    let results = send(&mut world, &rows);
    let wanted = [
        "posted",
        "insufficient_funds",
        "unknown_field",
        "invalid_field",
        "invalid_amount",
        "recipient_not_found",
        "posted",
    ];
    assert_eq!(told(&results), wanted);
    assert_eq!(
        (&results[0]["id"], &results[2]["id"], results[1].get("id")),
        (&json!("first"), &json!("w"), None)
    );
    // `id` is the older name.
    results.iter().for_each(|row| assert_eq!(row.get("idempotency_key"), row.get("id"), "{row}"));
    assert_eq!(results[6]["transaction"], world.history(&bob, 1)[0]);
    assert_eq!(results[0]["transaction"], world.history(&ann, 9)[1]);
    assert_eq!((world.balance(&ann), world.balance(&bob)), ("93".into(), "7".into()));
    for wrong in [json!([]), json!({}), json!([1]), json!(vec![row(&ann, &bob, 1); 1_001])] {
        world.post(BATCH, &json!({"transfers": wrong})).refused(400, "invalid_field");
    }
    let many = send(&mut world, &vec![row(&bob, &ann, 0); 1_000]);
    assert_eq!(told(&many), vec!["invalid_amount"; 1_000]);
}

#[test]
fn a_chain_posts_whole_or_not_at_all() {
    let mut world = World::start(&[]);
    let (ann, bob, eve) = (world.member("ann", 100), world.member("bob", 0), world.member("eve", 0));
    // Money that a row of the chain brings can be spent by the next.
    let results = send(&mut world, &[tied(&ann, &bob, 60), row(&bob, &eve, 60), row(&ann, &eve, 1)]);
    assert_eq!(told(&results), ["posted", "posted", "posted"]);
    let chain = [tied(&ann, &bob, 30), tied(&bob, &eve, 31), row(&eve, &ann, 1), row(&ann, &bob, 5)];
    assert_eq!(
        told(&send(&mut world, &chain)),
        ["linked_failed", "insufficient_funds", "linked_failed", "posted"]
    );
    // A row that cannot be read breaks its chain as well, and only that.
    let mut unreadable = tied(&ann, &bob, 1);
    unreadable["amount"] = json!("x");
    let chain = [tied(&ann, &bob, 1), unreadable, row(&ann, &bob, 1), row(&ann, &bob, 2)];
    assert_eq!(
        told(&send(&mut world, &chain)),
        ["linked_failed", "invalid_amount", "linked_failed", "posted"]
    );
    let mut unclear = row(&ann, &bob, 1);
    unclear["linked"] = json!("no");
    assert_eq!(told(&send(&mut world, &[unclear, row(&ann, &bob, 1)])), ["invalid_field", "linked_failed"]);
    let balances = [&ann, &bob, &eve].map(|one| world.balance(one));
    assert_eq!(balances, ["32", "7", "61"]);
}

#[track_caller]
fn replayed(answer: &Response) -> Vec<bool> {
    let results = answer.json()["results"].as_array().expect("results").clone();
    results.iter().map(|row| row["replayed"] == json!(true)).collect()
}

#[test]
fn each_row_has_a_key_of_its_own() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let body = |second: u64| {
        let mut last = row(&ann, &bob, 3);
        last["id"] = json!("mine");
        json!({"transfers": [row(&ann, &bob, 1), row(&ann, &bob, second), last]})
    };
    let first = world.post_under("k", BATCH, &body(500));
    assert_eq!((first.is_replay(), replayed(&first)), (false, vec![false; 3]));
    // Rejected requests are tried again, done ones are repeated.
    world.post("/v1/deposits", &json!({"to": ann, "amount": 500})).expect(201);
    let second = world.post_under("k", BATCH, &body(500));
    assert_eq!((second.is_replay(), replayed(&second)), (false, vec![true, false, true]));
    let third = world.post_under("k", BATCH, &body(500));
    assert_eq!((third.is_replay(), replayed(&third)), (true, vec![true; 3]));
    assert_eq!(third.json()["results"][0]["transaction"], first.json()["results"][0]["transaction"]);
    assert_eq!(world.balance(&bob), "504");
    // K stands for K#index: the single transfer under that key is the same request.
    assert!(world.post_under("k#0", "/v1/transfers", &row(&ann, &bob, 1)).is_replay());
    let other = world.post_under("k", BATCH, &body(499)).json();
    assert_eq!(told(other["results"].as_array().unwrap()), ["posted", "idempotency_key_reused", "posted"]);
    // A chain is repeated as a whole.
    let chain = json!({"transfers": [tied(&ann, &bob, 7), row(&bob, &ann, 8)]});
    assert!(!world.post_under("chain", BATCH, &chain).is_replay());
    assert!(world.post_under("chain", BATCH, &chain).is_replay());
    assert_eq!(world.balance(&bob), "503");
}

/// A world on each kind of store.
fn worlds() -> [World; 3] {
    let database = |kind| ScratchDatabase::shared(kind).create_database();
    let (mariadb, mysql) = (database(DatabaseKind::MariaDb10), database(DatabaseKind::MySql9));
    [&[][..], &[("TALLY_STORE_URL", &*mariadb)], &[("TALLY_STORE_URL", &*mysql)]].map(World::start)
}

#[test]
fn the_same_id_twice_in_a_batch_is_the_same_request() {
    for mut world in worlds() {
        let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
        let under = |id: &str, mut row: Value| {
            row["id"] = json!(id);
            row
        };
        let twice = under("a", row(&ann, &bob, 10));
        let body = json!({"transfers": [
            twice, twice, under("a", row(&ann, &bob, 11)),
            under("b", tied(&ann, &bob, 5)), under("b", row(&ann, &bob, 5)),
            under("c", row(&ann, &bob, 1_000)), under("c", row(&ann, &bob, 1_000)),
        ]});
        let first = world.post(BATCH, &body);
        // Each row of a chain has its own key: its link to the next is no part of the transfer.
        let (once, poor) = ("idempotency_key_reused", "insufficient_funds");
        let wanted = ["posted", "posted", once, "posted", "posted", poor, poor];
        assert_eq!(told(first.json()["results"].as_array().unwrap()), wanted);
        assert_eq!(replayed(&first), [false, true, false, false, true, false, false]);
        let again = world.post(BATCH, &body);
        assert_eq!(told(again.json()["results"].as_array().unwrap()), wanted);
        assert_eq!(replayed(&again), [true, true, false, true, true, false, false]);
        assert_eq!(world.balance(&bob), "15");
    }
}

#[test]
fn the_longest_key_is_one_for_every_row() {
    for mut world in worlds() {
        let (ann, bob) = (world.member("ann", 1_000), world.member("bob", 0));
        let body = json!({"transfers": vec![row(&ann, &bob, 1); 1_000]});
        let long = "x".repeat(255);
        let first = world.post_under(&long, BATCH, &body);
        assert!(told(first.json()["results"].as_array().unwrap()).iter().all(|one| one == "posted"));
        assert!(world.post_under(&long, BATCH, &body).is_replay());
        assert_eq!(world.balance(&bob), "1000");
    }
}
