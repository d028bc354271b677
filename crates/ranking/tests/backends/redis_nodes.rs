//! Nodes of a cluster that are lost one at a time, and slots that move: only lost partitions are loaded, and the rest stays.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally_ranking::redis::{Options, RankingError, RedisBackend};
use tally_ranking::{
    LoadState, PageQuery, RankingBackend, RankingChange, RemoteRanking, VersionedRow, WindowRanking,
};
use tally_rules::definition::Definition;
use tally_rules::{Micros, PlayerId, Record};
use tally_testkit::{GIVE_UP, RedisKind, Reply, ScratchCluster, SetAtEnd};

const NODES: usize = 3;
const PARTITIONS: usize = 7;
const PLAYERS: i64 = 3_000;

/// The database's content: the record of each player, and the version of the transaction that wrote it.
#[derive(Default)]
struct Stored {
    rows: BTreeMap<PlayerId, (Record, u64)>,
    version: u64,
}

struct World {
    ranking: WindowRanking,
    stored: Mutex<Stored>,
}

fn id(number: i64) -> PlayerId {
    PlayerId::new(&format!("p{number:05}")).unwrap()
}

impl World {
    fn new(cluster: &ScratchCluster) -> Self {
        let short = Duration::from_secs(1);
        let options = Options { connect_timeout: short, response_timeout: short, threads: 1 };
        let seeds: Vec<String> = cluster.addresses().iter().map(ToString::to_string).collect();
        let url = format!("redis-cluster://{}?partitions={PARTITIONS}", seeds.join(","));
        let ranking = RankingBackend::Redis(RedisBackend::connect(&url, &options).unwrap());
        let ranking = ranking.of_window(1, 0, &Definition::default());
        let world = Self { ranking, stored: Mutex::default() };
        for player in 0..PLAYERS {
            world.store(&[(player, player)]);
        }
        world
    }

    fn remote(&self) -> &RemoteRanking {
        self.ranking.remote().unwrap()
    }

    /// One transaction; returns its unpublished changes.
    fn store(&self, scores: &[(i64, i64)]) -> (Vec<RankingChange>, u64) {
        let mut stored = self.stored.lock().unwrap();
        stored.version += 1;
        let version = stored.version;
        let change = |(player, score): &(i64, i64)| {
            let record = Record { score: *score, subscore: 0, at: Micros(0) };
            stored.rows.insert(id(*player), (record, version));
            RankingChange { player: id(*player), record: Some(record), ranked: true }
        };
        (scores.iter().map(change).collect(), version)
    }

    fn submit(&self, scores: &[(i64, i64)]) {
        let (changes, version) = self.store(scores);
        self.ranking.publish(&changes, version, |_, _| {});
    }

    /// Loads the missing partitions, as the server's thread does. `meanwhile` runs when it has begun.
    fn load(&self, meanwhile: impl FnOnce()) -> Result<(), RankingError> {
        let mut load = self.remote().load()?;
        meanwhile();
        let rows = self.stored.lock().unwrap().rows.clone();
        for (player, (record, version)) in &rows {
            load.push(VersionedRow { player, record: Some(record), version: *version, banned: false })?;
        }
        load.finish()
    }

    /// Repairs until all of it can be read.
    fn heal(&self) {
        let began = Instant::now();
        loop {
            match self.remote().catch_up() {
                Ok(LoadState::Ready) => return,
                Ok(LoadState::Lost | LoadState::Loading) => drop(self.load(|| {})),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
            assert!(began.elapsed() < GIVE_UP, "it is never whole again: {:?}", self.remote().catch_up());
        }
    }

    /// Every rank is that of a sort of the stored rows.
    fn check(&self) {
        let mut wanted: Vec<(i64, PlayerId)> =
            self.stored.lock().unwrap().rows.iter().map(|(id, row)| (-row.0.score, id.clone())).collect();
        wanted.sort();
        let query = PageQuery { limit: wanted.len(), ..PageQuery::default() };
        let page = self.ranking.read(|it| it.page(&query)).unwrap();
        let seen: Vec<(i64, PlayerId)> =
            page.entries.iter().map(|place| (-place.record.score, place.player.clone())).collect();
        assert_eq!(seen, wanted);
        assert!(page.entries.iter().zip(1..).all(|(place, rank)| place.rank == rank));
    }
}

fn keys(cluster: &ScratchCluster, node: usize, ending: &str) -> Vec<String> {
    let Reply::Array(keys) = cluster.client(node).call(&["KEYS", ending]) else { panic!("a list") };
    let key = |key: &Reply| {
        let Reply::Bulk(key) = key else { panic!("text") };
        String::from_utf8(key.clone()).unwrap()
    };
    let mut keys: Vec<String> = keys.iter().map(key).collect();
    keys.sort();
    keys
}

/// Entries of a node.
fn entries(cluster: &ScratchCluster, node: usize) -> i64 {
    let count = |key: &String| match cluster.client(node).call(&["ZCARD", key]) {
        Reply::Integer(count) => count,
        other => panic!("{other:?}"),
    };
    keys(cluster, node, "*:z").iter().map(count).sum()
}

/// The state of every partition of a node: with its epoch.
fn states(cluster: &ScratchCluster, node: usize) -> Vec<(String, Reply)> {
    let state = |key: String| {
        let state = cluster.client(node).call(&[b"HGET".as_slice(), key.as_bytes(), b"\xffstate"]);
        (key, state)
    };
    keys(cluster, node, "*:m").into_iter().map(state).collect()
}

/// Whether a node has changed a ranking since its statistics were reset.
fn writes(cluster: &ScratchCluster, node: usize) -> bool {
    let Reply::Bulk(info) = cluster.client(node).call(&["INFO", "commandstats"]) else { panic!("text") };
    let info = String::from_utf8(info).unwrap();
    ["zadd", "zrem", "unlink", "del"].iter().any(|command| info.contains(&format!("cmdstat_{command}:")))
}

fn reset(cluster: &ScratchCluster) {
    (0..NODES).for_each(|at| drop(cluster.client(at).call(&["CONFIG", "RESETSTAT"])));
}

fn others(node: usize) -> impl Iterator<Item = usize> {
    (0..NODES).filter(move |at| *at != node)
}

#[test]
fn a_node_that_comes_back_empty_is_loaded_and_no_other_is_written() {
    let arguments = ["--cluster-require-full-coverage", "no"];
    let mut cluster = ScratchCluster::start(RedisKind::Valkey9, &arguments);
    let world = World::new(&cluster);
    world.heal();
    world.check();
    for lost in [1, 2] {
        let held: Vec<i64> = (0..NODES).map(|node| entries(&cluster, node)).collect();
        let before: Vec<_> = (0..NODES).map(|node| states(&cluster, node)).collect();
        cluster.kill(lost);
        // Stored while the node is unavailable, some of it for nodes that are up.
        let at = i64::try_from(lost).unwrap();
        world.submit(&(0..50).map(|player| (player, 10_000 * at + player)).collect::<Vec<_>>());
        assert!(world.remote().is_lagging(), "no rank is told meanwhile");
        cluster.restart(lost);
        cluster.wait_ok();
        let began = Instant::now();
        while world.remote().catch_up() != Ok(LoadState::Lost) {
            assert!(
                began.elapsed() < GIVE_UP,
                "it is never found to be lost: {:?}",
                world.remote().catch_up()
            );
        }
        assert_eq!(world.ranking.read(|it| it.total()), Err(RankingError::Loading));
        reset(&cluster);
        world.load(|| others(lost).for_each(|node| assert_eq!(entries(&cluster, node), held[node]))).unwrap();
        // From here on ranks are read.
        world.check();
        assert!(writes(&cluster, lost));
        for node in others(lost) {
            assert!(!writes(&cluster, node), "node {node} was written although node {lost} was lost");
            assert_eq!(states(&cluster, node), before[node], "each partition has an epoch of its own");
        }
        assert_eq!((0..NODES).map(|node| entries(&cluster, node)).collect::<Vec<_>>(), held);
    }
}

/// A change of a healthy partition that comes while another is lost is not in the load, so it is published.
#[test]
fn a_lost_partition_keeps_no_other_from_its_changes() {
    let cluster = ScratchCluster::start(RedisKind::Redis7, &[]);
    let world = World::new(&cluster);
    world.heal();
    let node = (0..NODES).find(|node| entries(&cluster, *node) > 0).unwrap();
    assert_eq!(cluster.client(node).call(&["FLUSHALL"]), Reply::Simple(b"OK".into()));
    for player in 0..200 {
        world.submit(&[(player, 20_000 + player)]);
    }
    assert_eq!(world.remote().catch_up(), Ok(LoadState::Lost));
    reset(&cluster);
    world.load(|| {}).unwrap();
    world.check();
    assert!(others(node).all(|node| !writes(&cluster, node)));
}

/// Runs something while scores are submitted and lost partitions are loaded.
fn disturbed(world: &World, disturb: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd::new(&stop);
        for writer in 0..2 {
            let stop = &stop;
            scope.spawn(move || {
                let mut score = 100_000;
                while !stop.load(Ordering::SeqCst) {
                    score += 1;
                    world.submit(&[(2 * (score % 700) + writer, score)]);
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                match world.remote().catch_up() {
                    Ok(LoadState::Lost | LoadState::Loading) => drop(world.load(|| {})),
                    _ => std::thread::sleep(Duration::from_millis(5)),
                }
            }
        });
        disturb();
        drop(end);
    });
    world.heal();
    world.check();
}

#[test]
fn nodes_that_restart_one_after_the_other_while_all_write_lose_nothing() {
    let arguments = ["--cluster-require-full-coverage", "no"];
    let mut cluster = ScratchCluster::start(RedisKind::Valkey9, &arguments);
    let world = World::new(&cluster);
    world.heal();
    let before: Vec<_> = (0..NODES).map(|node| states(&cluster, node)).collect();
    disturbed(&world, || {
        for node in 0..2 {
            cluster.kill(node);
            cluster.restart(node);
            cluster.wait_ok();
        }
    });
    assert_eq!(states(&cluster, 2), before[2], "the node that was not restarted was not loaded");
}

#[test]
fn slots_that_move_while_all_write_lose_nothing() {
    let cluster = ScratchCluster::start(RedisKind::Redis7, &[]);
    let world = World::new(&cluster);
    world.heal();
    let moved: Vec<(usize, String)> =
        (0..2).map(|node| (node, keys(&cluster, node, "*:z").swap_remove(0))).collect();
    let before = states(&cluster, 2);
    disturbed(&world, || {
        moved.iter().for_each(|(from, key)| cluster.move_slot(key, (*from, 2)));
    });
    let after = states(&cluster, 2);
    assert!(moved.iter().all(|(from, key)| !keys(&cluster, *from, "*:z").contains(key)));
    assert!(before.iter().all(|state| after.contains(state)), "what did not move was not loaded");
    assert_eq!(after.len(), before.len() + 2);
}
