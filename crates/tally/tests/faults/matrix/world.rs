//! Servers, databases and a Redis of one cell, with a proxy in each way between them.
//!
//! Every server has a proxy of its own before each database and before each node of its Redis. A node of a cluster is found at
//! one port at any host, so each server uses a loopback address of its own. Not here: the faults (`faults.rs`).

use super::callers::Addresses;
use super::cells::{Cell, Fault, Ranks};
use crate::TALLY;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub(crate) use tally_testkit::GIVE_UP;
use tally_testkit::{
    Client, DatabaseKind, Proxy, RedisKind, Request, Response, ScratchCluster, ScratchDatabase, ScratchRedis,
    TestTally, WallClock,
};

const SECRET: &str = "0909090909090909090909090909090909090909090909090909090909090909";
/// A standby takes over after this time.
const LEASE: &str = "2s";
pub(crate) const POLL_PAUSE: Duration = Duration::from_millis(20);
/// Nodes of a cluster.
pub(crate) const NODES: usize = 3;

/// One server and its ways to the others.
pub(crate) struct Server {
    pub(crate) tally: TestTally,
    pub(crate) to_databases: Vec<Proxy>,
    pub(crate) to_redis: Vec<Proxy>,
}

/// What keeps ranks.
pub(crate) enum Redis {
    None,
    One(ScratchRedis),
    Cluster(ScratchCluster),
}

/// Everything of a cell. Servers end before the components that they need.
pub(crate) struct World {
    pub(crate) cell: Cell,
    pub(crate) servers: Vec<Server>,
    pub(crate) clock: Option<WallClock>,
    pub(crate) redis: Redis,
    pub(crate) databases: Vec<ScratchDatabase>,
    pub(crate) addresses: Arc<Addresses>,
}

impl World {
    pub(crate) fn start(cell: Cell) -> Self {
        let databases: Vec<ScratchDatabase> =
            (0..cell.databases).map(|_| ScratchDatabase::start(DatabaseKind::MariaDb10)).collect();
        databases.iter().for_each(|database| drop(database.create_database()));
        let to_databases = || databases.iter().map(|database| Proxy::start(database.address())).collect();
        let mut ways: Vec<(Vec<Proxy>, Vec<Proxy>)> =
            (0..cell.servers().max(2)).map(|_| (to_databases(), Vec::new())).collect();
        let redis = match cell.ranks {
            Ranks::Memory => Redis::None,
            Ranks::Redis => {
                let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
                ways.iter_mut().for_each(|(_, to_redis)| to_redis.push(Proxy::start(redis.address())));
                Redis::One(redis)
            }
            Ranks::Cluster => Redis::Cluster(cluster(&mut ways)),
        };
        let clock = matches!(cell.fault, Fault::Clock(_)).then(WallClock::at_present);
        let addresses = Arc::new(Addresses::default());
        let mut servers = Vec::new();
        for (nth, (to_databases, to_redis)) in ways.into_iter().enumerate() {
            let mut tally = stopped(cell, &to_databases, &to_redis);
            if nth == 0 {
                clock.iter().for_each(|clock| clock.set_for(&mut tally));
            }
            if nth < cell.servers() {
                tally.restart();
                addresses.add(tally.address());
            }
            if nth < cell.servers() || cell.has_standby() {
                servers.push(Server { tally, to_databases, to_redis });
            }
        }
        Self { cell, servers, clock, redis, databases, addresses }
    }

    /// Servers that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &TestTally> {
        self.servers.iter().map(|server| &server.tally).filter(|tally| tally.is_running())
    }

    /// A client of a server that was not disturbed, or of the only one.
    pub(crate) fn client(&self) -> Client {
        self.running().last().expect("one runs").client()
    }
}

/// A cluster, with a proxy before each node for each server, at the same ports.
fn cluster(ways: &mut [(Vec<Proxy>, Vec<Proxy>)]) -> ScratchCluster {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut ports = [0; NODES];
    for ((_, to_redis), host) in ways.iter_mut().zip(2..) {
        for port in &mut ports {
            let proxy = Proxy::start_at(([127, 0, 0, host], *port).into(), nowhere);
            *port = proxy.address().port();
            to_redis.push(proxy);
        }
    }
    let cluster = ScratchCluster::start_announced(RedisKind::Valkey9, &ports);
    for (_, to_redis) in ways {
        to_redis.iter().zip(cluster.addresses()).for_each(|(proxy, node)| proxy.retarget(node));
    }
    cluster
}

fn stopped(cell: Cell, to_databases: &[Proxy], to_redis: &[Proxy]) -> TestTally {
    let urls: Vec<String> =
        to_databases.iter().map(|proxy| format!("mysql://root@{}/tally_0", proxy.address())).collect();
    let nodes: Vec<String> = to_redis.iter().map(|proxy| proxy.address().to_string()).collect();
    let ranking = match cell.ranks {
        Ranks::Memory => "memory".to_owned(),
        Ranks::Redis => format!("redis://{}", nodes[0]),
        Ranks::Cluster => format!("redis-cluster://{}", nodes.join(",")),
    };
    let mut tally = TestTally::stopped(TALLY);
    let settings = [
        ("STORE_URL", &*urls.join(",")),
        ("STORE_LEASE", LEASE),
        ("RANKING_URL", &ranking),
        ("RANKING_TIMEOUT", "1s"),
        ("SECRET", SECRET),
    ];
    settings.iter().for_each(|(name, value)| tally.set(&format!("TALLY_{name}"), value));
    // A fault is reported; a panic never is.
    [" WARN ", " ERROR "].iter().for_each(|level| tally.allow(level));
    tally
}

/// Sends until the answer is not "retry later".
#[track_caller]
pub(crate) fn send(client: &mut Client, request: &Request) -> Response {
    let started = Instant::now();
    loop {
        let answer = client.send(request);
        if answer.status != 503 {
            return answer;
        }
        assert!(started.elapsed() < GIVE_UP, "{}", answer.text());
        std::thread::sleep(POLL_PAUSE);
    }
}
