//! Many at once: a storm of equal requests has one effect, and no caller gets a deadlock.

use super::world::{World, payment};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use tally_testkit::rng::soak;
use tally_testkit::{Client, Request, Response, Rng, at_once};

const STORM: usize = 100;
const CALLERS: usize = 32;
const ROUNDS: usize = 6;

/// Sends these at one moment, each on a connection of its own; returns the answers in order.
fn storm(world: &World, requests: &[Request]) -> Vec<Response> {
    assert_eq!(world.server.client().get("/readyz").status, 200);
    at_once(requests.iter().map(|request| (world.server.client(), request.clone())).collect())
}

/// A batch without its marks of replays.
fn plain(mut answer: Value) -> Value {
    for row in answer.get_mut("results").and_then(Value::as_array_mut).into_iter().flatten() {
        row.as_object_mut().expect("a row").remove("replayed");
    }
    answer
}

/// The result of a storm of equal requests: one was done, the others repeat it or get that it is running.
fn one_effect(answers: &[Response], status: u16) -> Value {
    let done: Vec<&Response> =
        answers.iter().filter(|one| one.status == status && !one.is_replay()).collect();
    assert_eq!(done.len(), 1, "one is not a repetition");
    let first = plain(done[0].json());
    for answer in answers {
        if answer.status == 409 {
            answer.refused(409, "idempotency_in_progress");
        } else {
            assert_eq!(plain(answer.expect(status)), first);
        }
    }
    first
}

#[test]
fn a_storm_of_equal_requests_has_one_effect() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 1_000), world.member("bob", 0));
    let hold = world.post("/v1/holds", &json!({"member": ann, "amount": 100})).expect(201);
    let hold = format!("/v1/holds/{}", hold["id"].as_str().expect("an id"));
    for (path, body, status) in [
        ("/v1/transfers", json!({"from": ann, "to": bob, "amount": 10}), 201),
        ("/v1/deposits", json!({"to": ann, "amount": 7}), 201),
        ("/v1/withdrawals", json!({"from": ann, "amount": 5}), 201),
        ("/v1/holds", json!({"member": ann, "amount": 3}), 201),
        (&format!("{hold}/capture"), json!({"amount": 60, "to": bob}), 200),
        ("/v1/members", json!({"login_id": "eve", "name": "Eve"}), 201),
    ] {
        let request = Request::new("POST", path).json(&body).idempotent(path);
        let first = one_effect(&storm(&world, &vec![request.clone(); STORM]), status);
        let again = world.client.send(&request);
        assert!(again.is_replay(), "{path}");
        assert_eq!(again.expect(status), first);
    }
    let purse =
        |balance: u64, held: u64| (balance.to_string(), held.to_string(), (balance - held).to_string());
    assert_eq!((world.purse(&ann), world.purse(&bob)), (purse(932, 3), purse(70, 0)));
    assert_eq!((world.history(&ann, 9).len(), world.history(&bob, 9).len()), (5, 2));
}

#[test]
fn a_storm_of_equal_payments_has_one_effect() {
    let mut world = World::start(&[]);
    let (ann, token) = world.payer("ann", "01011111111", 1_000);
    let (bob, _) = world.payer("bob", "01022222222", 0);
    for round in 1..=3_u64 {
        let request =
            |right| payment(&token, "010-2222-2222", &json!(10), right).idempotent(&format!("k{round}"));
        let first = one_effect(&storm(&world, &vec![request(true); STORM]), 201);
        let again = world.client.send(&request(true));
        assert!(again.is_replay());
        assert_eq!(again.expect(201), first);
        // A caller without the PIN gets none of it.
        world.client.send(&request(false)).refused(403, "invalid_pin");
        assert_eq!(
            (world.balance(&ann), world.balance(&bob)),
            ((1_000 - 10 * round).to_string(), (10 * round).to_string())
        );
    }
    // Guesses at the same time count, whatever their keys: five are checked, and the right one comes too late.
    let guesses: Vec<Request> = (0..STORM)
        .map(|number| payment(&token, "01022222222", &json!(10), false).idempotent(&format!("g{number}")))
        .collect();
    let answers = storm(&world, &guesses);
    assert_eq!(
        answers.iter().filter(|one| one.code() == "invalid_pin").count(),
        5 - 1,
        "one was wrong before"
    );
    assert_eq!(answers.iter().filter(|one| one.code() == "pin_locked").count(), STORM - 4);
    let right = payment(&token, "01022222222", &json!(10), true).idempotent("k1");
    world.client.send(&right).refused(423, "pin_locked");
    assert_eq!((world.history(&ann, 9).len(), world.history(&bob, 9).len()), (4, 3));
}

#[test]
fn a_storm_of_equal_batches_has_one_effect() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 1_000), world.member("bob", 0));
    let rows = json!({"transfers": [
        {"from": ann, "to": bob, "amount": 3, "linked": true}, {"from": bob, "to": ann, "amount": 2},
        {"from": ann, "to": bob, "amount": 1},
    ]});
    let request = Request::new("POST", "/v1/transfers/batch").json(&rows).idempotent("k");
    let answers = storm(&world, &vec![request.clone(); STORM]);
    // Row by row: another one of the storm may repeat a done row or find it running.
    let mut fresh = [0; 3];
    let last = world.client.send(&request);
    assert!(last.is_replay());
    let last = plain(last.expect(200));
    for answer in answers {
        let answer = answer.expect(200);
        for (place, row) in answer["results"].as_array().expect("results").iter().enumerate() {
            match row["error"]["code"].as_str() {
                Some(code) => assert!(["idempotency_in_progress", "linked_failed"].contains(&code), "{row}"),
                None => {
                    assert_eq!(row["transaction"], last["results"][place]["transaction"]);
                    fresh[place] += usize::from(row.get("replayed").is_none());
                }
            }
        }
    }
    assert_eq!(fresh, [1; 3], "each is done once");
    assert_eq!((world.balance(&ann), world.balance(&bob)), ("998".into(), "2".into()));
}

#[test]
fn a_storm_of_two_requests_under_one_key_does_one_of_them() {
    let mut world = World::start(&[]);
    let (ann, bob) = (world.member("ann", 1_000), world.member("bob", 0));
    let request = |amount: usize| {
        let body = json!({"from": ann, "to": bob, "amount": amount});
        Request::new("POST", "/v1/transfers").json(&body).idempotent("k")
    };
    let requests: Vec<Request> = (0..STORM).map(|number| request(1 + number % 2)).collect();
    let answers = storm(&world, &requests);
    let at = answers.iter().position(|one| one.status == 201).expect("one is done");
    let (winners, losers): (Vec<_>, Vec<_>) =
        answers.into_iter().enumerate().partition(|(number, _)| number % 2 == at % 2);
    let winners: Vec<Response> = winners.into_iter().map(|(_, answer)| answer).collect();
    one_effect(&winners, 201);
    for (_, answer) in losers {
        let running = answer.status == 409;
        let code = if running { "idempotency_in_progress" } else { "idempotency_key_reused" };
        answer.refused(if running { 409 } else { 422 }, code);
    }
    assert_eq!(world.balance(&bob), (1 + at % 2).to_string());
}

/// The phone number that pays a member.
fn phone(at: usize) -> String {
    format!("0101111{at:04}")
}

/// The request of a caller in a round: opposite ways between two, a ring in both directions, all to one, and chains. The server
/// or the members themselves send it.
fn request(members: &[(String, String)], rng: &mut Rng, (caller, round): (usize, usize)) -> Request {
    let at = caller % members.len();
    let next = (at + 1) % members.len();
    let (from, to) = match caller % 5 {
        0 => (0, 1),
        1 => (1, 0),
        2 => (at, next),
        3 => (next, at),
        _ => (1 + caller % (members.len() - 1), 0),
    };
    let row = |from: usize, to: usize, amount: i64, linked: bool| json!({"from": members[from].0, "to": members[to].0, "amount": amount, "linked": linked});
    let units = rng.between(1, 40);
    if rng.percent(30) {
        return payment(&members[from].1, &phone(to), &json!(units), true)
            .idempotent(&format!("{caller}-{round}"));
    }
    if rng.percent(30) {
        let ring = (0..members.len()).map(|place| {
            let (from, to) = (place, (place + 1) % members.len());
            let (from, to) = if caller.is_multiple_of(2) { (from, to) } else { (to, from) };
            row(from, to, units, place + 1 < members.len())
        });
        return Request::new("POST", "/v1/transfers/batch")
            .json(&json!({"transfers": ring.collect::<Vec<_>>()}));
    }
    let mut one = row(from, to, units, false);
    one.as_object_mut().expect("an object").remove("linked");
    Request::new("POST", "/v1/transfers").json(&one)
}

/// Sends, and counts the results: any result but done and no money is a fault.
fn send(client: &mut Client, request: &Request, met: &mut BTreeMap<String, usize>) {
    let answer = client.send(request);
    let body = answer.json();
    match (answer.status, body["results"].as_array()) {
        (201, None) => *met.entry("done".into()).or_default() += 1,
        (200, Some(rows)) => {
            for row in rows {
                let code = row["error"]["code"].as_str().unwrap_or("done");
                *met.entry(code.to_owned()).or_default() += 1;
            }
        }
        (status, _) => {
            assert_eq!((status, answer.code().as_str()), (422, "insufficient_funds"), "{body}");
            *met.entry(answer.code()).or_default() += 1;
        }
    }
}

#[test]
fn soak_opposite_transfers_and_rings_do_not_block_each_other() {
    let mut world = World::start(&[]);
    let members: Vec<(String, String)> =
        (0..5).map(|number| world.payer(&format!("m{number}"), &phone(number), 60)).collect();
    let (barrier, done) = (Barrier::new(CALLERS), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (mut client, members, barrier, done) = (world.server.client(), &members, &barrier, &done);
            scope.spawn(move || {
                let (mut rng, mut met) = (Rng::of(&format!("crowd {caller}")), BTreeMap::new());
                barrier.wait();
                for round in 0..soak(ROUNDS) {
                    send(&mut client, &request(members, &mut rng, (caller, round)), &mut met);
                }
                done.fetch_add(met.remove("done").unwrap_or(0), Ordering::Relaxed);
                let codes: Vec<&str> = met.keys().map(String::as_str).collect();
                let fine = |code: &&str| ["insufficient_funds", "linked_failed"].contains(code);
                assert!(codes.iter().all(fine), "{met:?}");
            });
        }
    });
    let lines: usize = members.iter().map(|member| world.history(&member.0, 100).len()).sum();
    assert_eq!(lines, 2 * done.load(Ordering::Relaxed) + members.len());
    let sum: u64 =
        members.iter().map(|member| world.balance(&member.0).parse::<u64>().expect("a number")).sum();
    assert_eq!(sum, 300);
}
