//! kill -9 while money moves: what was acknowledged is there, what was not is there once or not at all.

use crate::world::World;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tally_testkit::rng::soak;
use tally_testkit::{Client, Request};

const MOVERS: usize = 4;
/// Acknowledged movements before a kill.
const BEFORE_A_KILL: usize = 40;

/// The request of a number: round and round between three members, some tied in pairs.
fn request(members: &[String], number: usize) -> Request {
    let (from, to) = (&members[number % 3], &members[(number + 1) % 3]);
    let row = json!({"from": from, "to": to, "amount": 1 + number % 5});
    let request = if number.is_multiple_of(4) {
        let back = json!({"from": to, "to": from, "amount": 1});
        let first = json!({"from": from, "to": to, "amount": 2, "linked": true});
        Request::new("POST", "/v1/transfers/batch").json(&json!({"transfers": [first, back]}))
    } else {
        Request::new("POST", "/v1/transfers").json(&row)
    };
    request.idempotent(&format!("n{number}"))
}

/// Sends until the server is gone; what was answered.
fn send_all(
    mut client: Client,
    members: &[String],
    next: &AtomicUsize,
    done: &AtomicUsize,
) -> Vec<(usize, Value)> {
    let mut told = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        match client.try_send(&request(members, number)) {
            Ok(answer) if answer.status < 300 => told.push((number, answer.json())),
            Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.text()),
            Err(_) => return told,
        }
        done.fetch_add(1, Ordering::SeqCst);
    }
}

/// A batch without its marks of what was a replay.
fn plain(mut answer: Value) -> Value {
    for row in answer.get_mut("results").and_then(Value::as_array_mut).into_iter().flatten() {
        row.as_object_mut().expect("a row").remove("replayed");
    }
    answer
}

#[test]
fn soak_kills_lose_no_acknowledged_movement_and_double_none() {
    let mut world = World::start(&[]);
    let members = ["ann", "bob", "eve"].map(|name| world.member(name, 100_000));
    let next = AtomicUsize::new(1);
    for _ in 0..soak(3) {
        let (begun, done) = (next.load(Ordering::SeqCst), AtomicUsize::new(0));
        let told: Vec<(usize, Value)> = std::thread::scope(|scope| {
            let (next, done, members) = (&next, &done, &members);
            let movers: Vec<_> = (0..MOVERS)
                .map(|_| {
                    let client = world.server.client();
                    scope.spawn(move || send_all(client, members, next, done))
                })
                .collect();
            while done.load(Ordering::SeqCst) < BEFORE_A_KILL {
                std::thread::yield_now();
            }
            world.server.kill9();
            movers.into_iter().flat_map(|mover| mover.join().expect("a mover ends")).collect()
        });
        world.server.restart();
        world.client = world.server.client();
        assert!(told.len() >= BEFORE_A_KILL / 2, "{} were acknowledged", told.len());
        for (number, first) in &told {
            let again = world.client.send(&request(&members, *number));
            assert!(again.is_replay(), "{number} was acknowledged and is lost: {}", again.text());
            assert_eq!(plain(again.json()), *first);
        }
        // Those that nobody was told of are done now, or were.
        for number in begun..next.load(Ordering::SeqCst) {
            let answer = world.client.send(&request(&members, number));
            assert!(answer.status < 300, "{}", answer.text());
        }
        world.audit();
    }
    let count = next.load(Ordering::SeqCst);
    let lines: usize = members.iter().map(|member| world.history(member, 1_000).len()).sum();
    // Two lines a movement, four a pair, and what each member began with.
    let wanted: usize = (1..count).map(|number| if number.is_multiple_of(4) { 4 } else { 2 }).sum();
    assert_eq!(lines, wanted + members.len());
}
