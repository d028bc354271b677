//! The same on a Redis Cluster: servers and nodes are killed by chance while all write, and it stays one service.

use super::disturbed::{Added, add_until, wait_for};
use super::world::*;
use serde_json::json;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tally_testkit::{RedisKind, Reply, Request, Rng, ScratchCluster, SetAtEnd, TestTally};

/// The number of kills.
const KILLS: usize = 6;
const SERVERS: usize = 3;
const NODES: usize = 3;

fn start(cluster: &ScratchCluster) -> Vec<TestTally> {
    let nodes: Vec<String> = cluster.addresses().iter().map(ToString::to_string).collect();
    let mut servers = start_on(&format!("redis-cluster://{}", nodes.join(",")), SERVERS);
    servers.iter_mut().for_each(TestTally::stay);
    servers
}

/// Kills one server or one node, lets the others go on for a moment, and brings it back.
fn kill_one(rng: &mut Rng, servers: &mut [TestTally], cluster: &mut ScratchCluster) {
    let at = usize::try_from(rng.below(3)).expect("it is small");
    let pause = Duration::from_millis(rng.below(300));
    if rng.below(2) == 0 {
        servers[at % SERVERS].kill9();
        std::thread::sleep(pause);
        servers[at % SERVERS].restart();
    } else {
        // It comes back with its slots and without its keys.
        cluster.kill(at % NODES);
        std::thread::sleep(pause);
        cluster.restart(at % NODES);
        cluster.wait_ok();
    }
}

#[test]
fn servers_and_nodes_are_killed_by_chance_and_all_agree_in_the_end() {
    let mut cluster = ScratchCluster::start(RedisKind::Valkey9, &[]);
    let mut servers = start(&cluster);
    put(&mut servers[0].client(), "sum", &json!({"update": "sum"})).expect(201);
    let (mut rng, stop) = (Rng::of("kills on a cluster"), AtomicBool::new(false));
    let added: Vec<Added> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3).map(|nth| (nth, clients(&servers))).collect();
        let stop = &stop;
        let end = SetAtEnd::new(stop);
        let adding: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(move || add_until(stop, client))).collect();
        for _ in 0..KILLS {
            kill_one(&mut rng, &mut servers, &mut cluster);
        }
        drop(end);
        adding.into_iter().map(|adding| adding.join().unwrap()).collect()
    });
    for server in &servers {
        wait_for(&mut server.client(), &added);
    }
    // Each player is found at its place as well, whichever node has it.
    let mut client = servers[0].client();
    for (name, at) in names(&page(&mut client, "sum")).iter().zip(1_u64..) {
        let found = get(&mut client, &format!("/v1/leaderboards/sum/players/{name}")).expect(200);
        assert_eq!(found["rank"], json!(at), "{name}");
    }
    // A player that is removed at one server is removed at all.
    let gone = Request::new("DELETE", "/v1/leaderboards/sum/players/p0");
    send(&mut servers[1].client(), &gone);
    wait_until("it is gone at all of them", || {
        servers.iter().all(|server| !names(&page(&mut server.client(), "sum")).contains(&"p0".to_owned()))
    });
}

/// Players of boards that a node has.
fn held(cluster: &ScratchCluster, node: usize) -> i64 {
    let mut client = cluster.client(node);
    let Reply::Array(keys) = client.call(&["KEYS", "*:z"]) else { panic!("keys are a list") };
    let mut count = |key: &Reply| {
        let Reply::Bulk(key) = key else { panic!("a key is a text: {key:?}") };
        let Reply::Integer(count) = client.call(&[b"ZCARD", key.as_slice()]) else { panic!("a count") };
        count
    };
    keys.iter().map(&mut count).sum()
}

/// The assumptions of `docs/deploy/billion.md`, small.
#[test]
fn a_board_lies_evenly_on_the_nodes_and_comes_back_from_the_database() {
    const PLAYERS: i64 = 6_000;
    let cluster = ScratchCluster::start(RedisKind::Valkey9, &[]);
    let servers = start(&cluster);
    servers[0].run(&["seed", "scores", "wide", "--players", &PLAYERS.to_string()]).expect(0);
    let evenly = || {
        let held: Vec<i64> = (0..NODES).map(|node| held(&cluster, node)).collect();
        let even = held.iter().all(|one| (PLAYERS / 4..PLAYERS / 2).contains(one));
        even && held.iter().sum::<i64>() == PLAYERS
    };
    wait_until("every node has about a third", evenly);
    cluster.flush();
    wait_until("it is loaded anew", evenly);
    let told = servers[1].run(&["doctor"]);
    let words = format!("board wide: all {PLAYERS} ranks are those of a sort of the stored rows");
    assert!(told.expect(0).contains(&words), "{}", told.stdout);
}
