//! kill -9 while money moves, of the server, of its database and of both. Everything acknowledged is present, and every request
//! is done once.
//!
//! Movers repeat the same request under the same key until it is done, as a client should. Not here: the remains of a commit
//! whose answer was lost (`service/tests/use_cases/wallets/lost.rs`).

use super::world::{CHEAP, TALLY, World, payment};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tally_testkit::backends::share;
use tally_testkit::rng::soak;
use tally_testkit::{Client, DatabaseKind, GIVE_UP, Request, Rng, ScratchDatabase, SetAtEnd, TestTally};

const MOVERS: usize = 6;
const NAMES: [&str; 3] = ["ann", "bob", "eve"];
/// What each begins with.
const UNITS: u64 = 100_000;
const POLL_PAUSE: Duration = Duration::from_millis(10);

/// The phone number that pays a member.
fn phone(at: usize) -> String {
    format!("0101111{at:04}")
}

/// The request of a number: round and round between three members, by themselves or by the server, some linked in pairs. Others
/// are money from outside and holds.
fn request(members: &[(String, String)], number: usize) -> Request {
    let ((from, token), (to, _)) = (&members[number % 3], &members[(number + 1) % 3]);
    let key = format!("n{number}");
    if number % 8 == 1 || number % 8 == 5 {
        return payment(token, &phone((number + 1) % 3), &json!(1), true).idempotent(&key);
    }
    let (path, body) = match number % 8 {
        0 | 4 => {
            let back = json!({"from": to, "to": from, "amount": 1});
            let first = json!({"from": from, "to": to, "amount": 2, "linked": true});
            ("/v1/transfers/batch", json!({"transfers": [first, back]}))
        }
        // Promotional credit outlives kills as other money does, and `verify` compares it with its entries.
        3 if number % 16 == 3 => {
            let at = format!("{}-01-01T00:00:00Z", 2990 + number / 16 % 9);
            ("/v1/deposits", json!({"to": to, "amount": 2, "expires_at": at}))
        }
        3 => ("/v1/deposits", json!({"to": to, "amount": 2})),
        6 => ("/v1/holds", json!({"member": from, "amount": 1})),
        _ => ("/v1/transfers", json!({"from": from, "to": to, "amount": 1 + number % 5})),
    };
    Request::new("POST", path).json(&body).idempotent(&key)
}

/// Lines that it leaves in histories.
fn lines(number: usize) -> usize {
    match number % 8 {
        0 | 4 => 4,
        3 => 1,
        6 => 0,
        _ => 2,
    }
}

/// A batch without its marks of replays.
fn plain(mut answer: Value) -> Value {
    for row in answer.get_mut("results").and_then(Value::as_array_mut).into_iter().flatten() {
        row.as_object_mut().expect("a row").remove("replayed");
    }
    answer
}

/// What movers share.
#[derive(Default)]
struct Load {
    next: AtomicUsize,
    done: AtomicUsize,
    /// Requests without an answer, or with "not now".
    failed: AtomicUsize,
    ends: AtomicBool,
}

impl Load {
    fn wait(&self, count: &AtomicUsize, least: usize) {
        let begun = Instant::now();
        while count.load(Ordering::SeqCst) < least {
            assert!(begun.elapsed() < GIVE_UP, "nothing happens");
            std::thread::sleep(POLL_PAUSE);
        }
    }

    /// Waits until this many more are done.
    fn wait_done(&self, more: usize) {
        self.wait(&self.done, self.done.load(Ordering::SeqCst) + more);
    }
}

/// Sends one after the other, each until it is done.
fn moves(mut client: Client, members: &[(String, String)], load: &Load) -> Vec<(usize, Value)> {
    let mut told = Vec::new();
    while !load.ends.load(Ordering::SeqCst) {
        let number = load.next.fetch_add(1, Ordering::SeqCst);
        let begun = Instant::now();
        loop {
            match client.try_send(&request(members, number)) {
                Ok(answer) if answer.status < 300 => {
                    told.push((number, plain(answer.json())));
                    load.done.fetch_add(1, Ordering::SeqCst);
                    break;
                }
                Ok(answer) => {
                    assert_eq!(answer.status, 503, "{}", answer.text());
                    assert!(answer.header("retry-after").is_some(), "{answer:?}");
                }
                // The client has disconnected.
                Err(_) => {}
            }
            load.failed.fetch_add(1, Ordering::SeqCst);
            assert!(begun.elapsed() < GIVE_UP, "it is never done");
            std::thread::sleep(POLL_PAUSE);
        }
    }
    told
}

/// Moves money during a disturbance of the server, and checks that everything is present once.
fn under_load(mut world: World, mut mischief: impl FnMut(&mut TestTally, &Load)) {
    world.server.stay();
    let members = [0, 1, 2].map(|at| world.payer(NAMES[at], &phone(at), UNITS));
    let load = Load::default();
    let told: Vec<(usize, Value)> = std::thread::scope(|scope| {
        let (load, members) = (&load, &members);
        let end = SetAtEnd::new(&load.ends);
        let movers: Vec<_> = (0..MOVERS)
            .map(|_| {
                let client = world.server.client();
                scope.spawn(move || moves(client, members, load))
            })
            .collect();
        mischief(&mut world.server, load);
        drop(end);
        movers.into_iter().flat_map(|mover| mover.join().expect("a mover ends")).collect()
    });
    assert!(load.failed.load(Ordering::SeqCst) > 0, "nobody noticed anything");
    world.client = world.server.client();
    world.audit();
    let asked = load.next.load(Ordering::SeqCst);
    assert_eq!(told.len(), asked, "everything was done");
    for (number, first) in &told {
        let again = world.client.send(&request(&members, *number));
        assert!(again.is_replay(), "{number} was acknowledged and is lost: {}", again.text());
        assert_eq!(plain(again.json()), *first);
    }
    let histories: Vec<Vec<Value>> = members.iter().map(|member| world.history(&member.0, 1_000)).collect();
    let wanted: usize = (0..asked).map(lines).sum();
    assert_eq!(histories.iter().map(Vec::len).sum::<usize>(), wanted + members.len());
    // Each entry of a reply is in a history.
    let all: std::collections::BTreeSet<String> = histories.iter().flatten().map(Value::to_string).collect();
    let groups: Vec<&str> =
        histories.iter().flatten().map(|line| line["group_id"].as_str().expect("text")).collect();
    for (number, answer) in told.iter().filter(|(number, _)| lines(*number) > 0) {
        // The event of a payment is its transfer.
        if let Some(id) = answer["data"]["transferId"].as_str() {
            assert_eq!(groups.iter().filter(|group| **group == id).count(), 2, "{number}: {answer}");
            continue;
        }
        let rows = answer["results"].as_array().cloned().unwrap_or_default();
        let mut shown: Vec<&Value> = rows.iter().map(|row| &row["transaction"]).collect();
        if rows.is_empty() {
            shown.push(answer);
        }
        assert!(shown.iter().all(|line| all.contains(&line.to_string())), "{number}: {answer}");
    }
    let held: u64 =
        members.iter().map(|member| world.purse(&member.0).1.parse::<u64>().expect("a number")).sum();
    assert_eq!(held, (0..asked).filter(|number| lines(*number) == 0).count() as u64);
}

#[test]
fn soak_kills_of_the_server_lose_no_acknowledged_movement_and_double_none() {
    let mut rng = Rng::of("kills of the server");
    under_load(World::start(&[]), |server, load| {
        for _ in 0..soak(6) / share() {
            load.wait_done(20 + usize::try_from(rng.below(40)).expect("small"));
            server.kill9();
            // The data of a dead process, and of the living one.
            server.run(&["verify"]).expect(0);
            server.restart();
            server.run(&["verify"]).expect(0);
        }
        load.wait_done(20);
    });
}

#[test]
fn soak_kills_of_the_database_lose_no_acknowledged_movement_and_double_none() {
    let mut rng = Rng::of("kills of the database");
    let mut database = ScratchDatabase::start(DatabaseKind::MariaDb10);
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", &database.create_database());
    server.set("TALLY_STORE_LEASE", "4s");
    CHEAP.iter().for_each(|(name, value)| server.set(name, value));
    // Requests while it is unavailable get that answer; the background tasks read it as well.
    for text in ["the store is unavailable", "the store was lost while it committed", "`store.lease`"] {
        server.allow(text);
    }
    server.restart();
    under_load(World::of(server), |server, load| {
        for round in 0..soak(3) {
            load.wait_done(20 + usize::try_from(rng.below(40)).expect("small"));
            let failed = load.failed.load(Ordering::SeqCst);
            database.kill();
            load.wait(&load.failed, failed + 1);
            // The last time both.
            if round % 3 == 2 {
                server.kill9();
            }
            database.restart();
            server.run(&["verify"]).expect(0);
            if round % 3 == 2 {
                server.restart();
            }
        }
        load.wait_done(20);
    });
}
