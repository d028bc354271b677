//! Boards while a server is killed or frozen, or their Redis loses data: nothing acknowledged is lost.

use super::world::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::{Client, DatabaseKind, GIVE_UP, Request, Rng, ScratchDatabase, SetAtEnd, TestTally};
use tally_wire::resp::Reply;

/// The effect of a client on a sum board: for each player, the certain additions.
pub(crate) type Added = BTreeMap<String, i64>;

/// Adds to players that all clients share until it is stopped. Each addition has a key, and is tried again at the others
/// when a server has ended.
pub(crate) fn add_until(stop: &AtomicBool, (nth, mut clients): (usize, Vec<Client>)) -> Added {
    let (mut rng, mut added, mut sent) = (Rng::of(&format!("adds {nth}")), Added::new(), 0_u64);
    let mut at = nth;
    while !stop.load(Ordering::SeqCst) {
        let (player, score) = (format!("p{}", rng.below(30)), rng.between(1, 9));
        sent += 1;
        let body = json!({"player": player, "score": score});
        let request = Request::new("POST", "/v1/leaderboards/sum/scores").json(&body);
        let request = request.idempotent(&format!("{nth}-{sent}"));
        let started = Instant::now();
        loop {
            let count = clients.len();
            match clients[at % count].try_send(&request) {
                Ok(answer) if answer.status == 200 => break,
                Ok(answer) => assert!([409, 503].contains(&answer.status), "{}", answer.text()),
                Err(_) => at += 1,
            }
            assert!(started.elapsed() < GIVE_UP, "it is never added");
            std::thread::sleep(Duration::from_millis(1));
        }
        *added.entry(player).or_default() += score;
    }
    added
}

/// The board as it must be at a server in the end.
#[track_caller]
pub(crate) fn wait_for(client: &mut Client, added: &[Added]) {
    let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
    for (player, score) in added.iter().flatten() {
        *wanted.entry(player.clone()).or_default() += score;
    }
    wait_until("every server has the order of what is stored", || {
        let page = page(client, "sum");
        let entries = page["entries"].as_array().expect("entries");
        let scores: Vec<i64> =
            entries.iter().map(|entry| entry["score"].as_i64().expect("a score")).collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        let found = names(&page).into_iter().zip(scores).collect::<BTreeMap<_, _>>();
        found == wanted
    });
}

/// One of three is disturbed while three clients write at all of them.
fn disturb(servers: &mut Servers, with: impl FnOnce(&mut Vec<TestTally>)) -> Vec<Added> {
    put(&mut servers.clients()[0], "sum", &json!({"update": "sum"})).expect(201);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3).map(|nth| (nth, servers.clients())).collect();
        let stop = &stop;
        let end = SetAtEnd::new(stop);
        let adding: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(move || add_until(stop, client))).collect();
        std::thread::sleep(Duration::from_millis(500));
        with(&mut servers.all);
        std::thread::sleep(Duration::from_millis(300));
        drop(end);
        adding.into_iter().map(|adding| adding.join().unwrap()).collect()
    })
}

#[test]
fn one_is_killed_while_all_write_and_nothing_acknowledged_is_lost() {
    let mut servers = Servers::start(3);
    let added = disturb(&mut servers, |all| all[1].kill9());
    for at in [0, 2] {
        wait_for(&mut servers.all[at].client(), &added);
    }
    // It comes back, and is ready with the present state.
    servers.all[1].restart();
    wait_for(&mut servers.all[1].client(), &added);
}

#[test]
fn one_is_frozen_while_all_write_and_goes_on() {
    let mut servers = Servers::over(2, 3);
    let gone: BTreeSet<String> = (0..30).map(|nth| format!("p{nth}")).collect();
    let mut added = disturb(&mut servers, |all| {
        // A client that waits for its answer goes on when the server does.
        all[1].signal("STOP");
        std::thread::sleep(Duration::from_secs(4));
        all[1].signal("CONT");
    });
    for server in &servers.all {
        wait_for(&mut server.client(), &added);
    }
    // Its late publications are old: a player that was removed since stays removed.
    let mut client = servers.all[0].client();
    for player in &gone {
        send(&mut client, &Request::new("DELETE", format!("/v1/leaderboards/sum/players/{player}")));
    }
    added.clear();
    for server in &servers.all {
        wait_for(&mut server.client(), &added);
    }
}

#[test]
fn what_redis_loses_is_loaded_once_for_all() {
    let mut servers = Servers::start(3);
    let mut direct = servers.redis.client();
    let added = disturb(&mut servers, |_| {
        assert_eq!(direct.call(&["FLUSHALL"]), Reply::Simple(b"OK".to_vec()));
        std::thread::sleep(Duration::from_secs(1));
    });
    for server in &servers.all {
        wait_for(&mut server.client(), &added);
    }
}

#[test]
fn what_a_dead_server_left_is_published_by_another() {
    let mut servers = Servers::start(2);
    let mut clients = servers.clients();
    put(&mut clients[0], "b", &json!({})).expect(201);
    submit(&mut clients[1], "b", "ann", 1).expect(200);
    servers.redis.freeze();
    let stored = submit(&mut clients[0], "b", "bob", 2).expect(200);
    assert_eq!((&stored["score"], &stored["rank"]), (&json!(2), &Value::Null), "stored, and no more");
    servers.all[0].kill9();
    servers.redis.thaw();
    let mut other = servers.all[1].client();
    wait_until("the other one publishes it", || names(&page(&mut other, "b")) == ["bob", "ann"]);
    servers.all[0].restart();
    assert_eq!(names(&page(&mut servers.all[0].client(), "b")), ["bob", "ann"]);
}

/// The outbox stays short while Redis is unavailable, and no row is forgotten.
#[test]
fn what_a_dead_server_has_folded_is_published_by_another() {
    const BATCHES: usize = 600;
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = database.create_database();
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let ranking = format!("redis://{}", redis.address());
    let mut servers = Servers { all: start_waiting(&url, (&ranking, "1s"), 2), redis };
    let mut clients = servers.clients();
    put(&mut clients[0], "b", &json!({})).expect(201);
    submit(&mut clients[1], "b", "ann", 1000).expect(200);
    servers.redis.freeze();
    for nth in 0..BATCHES {
        submit(&mut clients[0], "b", &format!("p{nth}"), nth as i64).expect(200);
    }
    let name = url.rsplit('/').next().unwrap();
    let left = database.sql(&format!("SELECT COUNT(*) FROM {name}.batches WHERE marks IS NOT NULL"));
    let left: usize = left.trim().parse().unwrap();
    assert!(left > 0 && left < BATCHES / 2, "{left} rows of {BATCHES} batches");
    servers.all[0].kill9();
    servers.redis.thaw();
    let mut other = servers.all[1].client();
    let wanted: Vec<String> =
        std::iter::once("ann".into()).chain((0..BATCHES).rev().map(|nth| format!("p{nth}"))).collect();
    wait_until("the other one publishes them", || names(&page(&mut other, "b")) == wanted);
    let gone = || database.sql(&format!("SELECT COUNT(*) FROM {name}.batches WHERE marks IS NOT NULL"));
    wait_until("nothing is left to publish", || gone().trim() == "0");
    servers.all[0].restart();
}
