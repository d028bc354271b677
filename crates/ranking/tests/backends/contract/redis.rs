//! Redis, Valkey and a cluster as backends of the suite: one server of each for all tests of a process, a window for each
//! ranking.

use super::Backend;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tally_ranking::redis::{Options, RedisBackend, RedisWindow, VersionedChange};
use tally_ranking::{Published, RankingChange, Reads};
use tally_rules::{Definition, PlayerId, Record};
use tally_testkit::{RedisKind, Reply, RespClient, ScratchCluster, ScratchRedis};
use tokio::runtime::{Builder, Runtime};

/// A server, or several, and a connection to them.
pub(crate) struct Site {
    pub(crate) ranking: RedisBackend,
    clients: fn() -> Vec<RespClient>,
    /// What `INFO` says there.
    line: &'static str,
}

static REDIS_SERVER: LazyLock<ScratchRedis> = LazyLock::new(|| ScratchRedis::start(RedisKind::Redis7, &[]));
static VALKEY_SERVER: LazyLock<ScratchRedis> = LazyLock::new(|| ScratchRedis::start(RedisKind::Valkey9, &[]));
static CLUSTER_NODES: LazyLock<ScratchCluster> =
    LazyLock::new(|| ScratchCluster::start(RedisKind::Valkey9, &[]));

static REDIS: LazyLock<Site> = LazyLock::new(|| Site {
    ranking: connect(&url(&REDIS_SERVER)),
    clients: || vec![REDIS_SERVER.client()],
    line: "redis_version:7.0.",
});
static VALKEY: LazyLock<Site> = LazyLock::new(|| Site {
    ranking: connect(&url(&VALKEY_SERVER)),
    clients: || vec![VALKEY_SERVER.client()],
    line: "valkey_version:9.",
});
static CLUSTER: LazyLock<Site> = LazyLock::new(|| Site {
    ranking: connect(&cluster_url(&CLUSTER_NODES, 7)),
    clients: || (0..3).map(|at| CLUSTER_NODES.client(at)).collect(),
    line: "cluster_enabled:1",
});

/// The runtime of reads that keep no thread.
static WAITING: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().build().unwrap());

static WINDOWS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn connect(url: &str) -> RedisBackend {
    RedisBackend::connect(url, &Options::default()).unwrap()
}

pub(crate) fn url(server: &ScratchRedis) -> String {
    format!("redis://{}", server.address())
}

pub(crate) fn cluster_url(cluster: &ScratchCluster, partitions: u16) -> String {
    let addresses: Vec<String> = cluster.addresses().iter().map(ToString::to_string).collect();
    format!("redis-cluster://{}?partitions={partitions}", addresses.join(","))
}

/// A window of its own on some site.
pub(crate) struct OnRedis {
    window: RedisWindow,
    version: Cell<u64>,
    reads: Cell<u64>,
}

impl OnRedis {
    fn new(site: &Site, definition: &Definition) -> Self {
        let window = site.ranking.window(1, WINDOWS.fetch_add(1, Ordering::Relaxed), definition);
        window.load(1).unwrap().finish().unwrap();
        Self { window, version: Cell::new(0), reads: Cell::new(0) }
    }

    fn next_version(&self) -> u64 {
        self.version.set(self.version.get() + 1);
        self.version.get()
    }

    fn publish(&self, changes: &[(RankingChange, Option<Record>)], each: impl FnMut(usize, Published)) {
        let versioned = |(change, previous): &(RankingChange, Option<Record>)| {
            // Every third caller does not know the record before, or is wrong.
            let version = self.next_version();
            let previous = if version.is_multiple_of(3) { None } else { *previous };
            VersionedChange { change: change.clone(), version, previous }
        };
        let changes: Vec<VersionedChange> = changes.iter().map(versioned).collect();
        assert_eq!(self.window.publish(&changes, each), Ok(vec![]));
    }

    /// Both ways in turn.
    fn read<T>(&self, with: impl Fn(&dyn Reads) -> T) -> T {
        if self.reads.replace(self.reads.get() + 1).is_multiple_of(2) {
            self.window.read(with).unwrap()
        } else {
            WAITING.block_on(self.window.read_later(with)).unwrap()
        }
    }

    fn reload(&self, records: &BTreeMap<PlayerId, Record>) {
        let version = self.next_version();
        let mut loader = self.window.load(version).unwrap();
        records.iter().for_each(|(player, record)| loader.push(player, record, version).unwrap());
        loader.finish().unwrap();
    }

    fn assert_answering_node(&self, site: &Site) {
        let mut keys = 0;
        for mut client in (site.clients)() {
            let Reply::Bulk(info) = client.call(&["INFO"]) else { panic!("INFO is text") };
            let info = String::from_utf8(info).unwrap();
            assert!(info.contains(site.line), "{} is not in {info}", site.line);
            let Reply::Integer(here) = client.call(&["DBSIZE"]) else { panic!("a count") };
            assert!(here > 0, "every node has something of a window");
            keys += here;
        }
        assert!(keys > 0);
    }
}

impl Drop for OnRedis {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.window.forget().unwrap();
        }
    }
}

macro_rules! backend {
    ($name:ident, $site:ident, $cases:literal) => {
        pub(crate) struct $name(OnRedis);

        impl Backend for $name {
            const CASES: u32 = $cases;

            fn new(definition: &Definition) -> Self {
                Self(OnRedis::new(&$site, definition))
            }
            fn publish(
                &self,
                changes: &[(RankingChange, Option<Record>)],
                each: impl FnMut(usize, Published),
            ) {
                self.0.publish(changes, each);
            }
            fn reload(&self, records: &BTreeMap<PlayerId, Record>) {
                self.0.reload(records);
            }
            fn read<T>(&self, with: impl Fn(&dyn Reads) -> T) -> T {
                self.0.read(with)
            }
            fn total(&self) -> u64 {
                self.0.window.total().unwrap()
            }
            fn assert_answering_node(&self) {
                self.0.assert_answering_node(&$site);
            }
        }
    };
}

backend!(Redis7, REDIS, 60);
backend!(Valkey9, VALKEY, 60);
backend!(Cluster, CLUSTER, 40);
