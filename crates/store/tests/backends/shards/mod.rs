//! Records spread over several databases, under the contract, and the tests of several databases.

mod boards;
mod faults;
mod hints;
mod kill;
mod layout;
mod reshard;
mod servers;
mod upgrade;

use crate::contract::{Backend, key, plan_of, record, scores, store_contract};
use std::time::Duration;
use tally_rules::{PlayerId, Record};
use tally_store::mysql::Options;
use tally_store::shards::Shards;
use tally_store::{Loaded, ReadSet, Store, StoreError, WriteSet};
use tally_testkit::{DatabaseKind, GIVE_UP, Proxy, ScratchDatabase, wait_for};
use tempfile::TempDir;

/// How long a row is waited for on any machine.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Empty databases on the server that all tests share.
struct Databases {
    kind: DatabaseKind,
    urls: Vec<String>,
    /// The folder of their archives.
    archives: TempDir,
}

impl Databases {
    fn new(kind: DatabaseKind, count: usize) -> Self {
        let urls = (0..count).map(|_| ScratchDatabase::shared(kind).create_database()).collect();
        Self { kind, urls, archives: tempfile::tempdir().unwrap() }
    }
}

impl Backend for Databases {
    fn name(&self) -> &'static str {
        "shards"
    }

    fn another(&self) -> Box<dyn Backend> {
        Box::new(Self::new(self.kind, self.urls.len()))
    }

    fn open(&self) -> Box<dyn Store> {
        let archives = Some(self.archives.path().to_owned());
        // Deadlines that undisturbed servers keep on any machine.
        let (connect_timeout, query_timeout) = (GIVE_UP, GIVE_UP);
        let options =
            Options { connect_timeout, query_timeout, lock_wait: LOCK_WAIT, archives, ..impatient() };
        Box::new(Shards::open(&self.urls, &options).unwrap())
    }
}

fn fresh() -> Databases {
    Databases::new(DatabaseKind::MariaDb10, 3)
}

store_contract!(fresh);

fn impatient() -> Options {
    Options {
        connect_timeout: Duration::from_secs(2),
        query_timeout: Duration::from_secs(3),
        lock_wait: Duration::from_secs(1),
        ..Options::default()
    }
}

fn open(urls: &[String]) -> Shards {
    Shards::open(urls, &impatient()).unwrap()
}

/// Counters on every shard, two on each.
fn counters(store: &dyn Store, name: &str) -> ReadSet {
    let mut wanted: Vec<usize> = (0..store.shards()).chain(0..store.shards()).collect();
    let mut keys = Vec::new();
    for number in 0.. {
        let player = format!("{name} {number}");
        let home = store.shard_of(&PlayerId::new(&player).unwrap());
        if let Some(at) = wanted.iter().position(|shard| *shard == home) {
            wanted.remove(at);
            keys.push(key(1, 0, &player));
        }
        if wanted.is_empty() {
            break;
        }
    }
    plan_of(keys)
}

/// Those of one shard.
fn of_shard(store: &dyn Store, plan: &ReadSet, shard: usize) -> ReadSet {
    let keys = plan.scores.iter().filter(|key| store.shard_of(&key.player) == shard);
    ReadSet { scores: keys.cloned().collect(), ..ReadSet::default() }
}

/// The same number for each.
fn all_are(plan: &ReadSet, number: i64) -> WriteSet {
    let row = Some(Record { score: number, ..record(0) });
    scores(plan.scores.iter().map(|key| (key.clone(), row)).collect())
}

/// Two shards whose connections can be disturbed, each with its database's address without the disturbance.
struct World {
    proxies: Vec<Proxy>,
    urls: Vec<String>,
    through: Vec<String>,
}

impl World {
    fn new() -> Self {
        let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
        let urls: Vec<String> = (0..2).map(|_| server.create_database()).collect();
        let proxies: Vec<Proxy> = urls.iter().map(|_| Proxy::start(server.address())).collect();
        let through = |(url, proxy): (&String, &Proxy)| {
            url.replace(&server.address().to_string(), &proxy.address().to_string())
        };
        let through = urls.iter().zip(&proxies).map(through).collect();
        Self { proxies, urls, through }
    }

    /// The shard is unreachable now.
    fn cut_off(&self, shard: usize) {
        self.proxies[shard].refuse();
        self.proxies[shard].cut();
    }
}

/// Repeats until the shard is used again: one that was silent gets no query for a moment.
fn retry_while_unavailable<T>(mut run: impl FnMut() -> Result<T, StoreError>) -> T {
    wait_for("the shard is used again", || match run() {
        Err(StoreError::ShardUnavailable { .. }) => None,
        done => Some(done.unwrap()),
    })
}

/// One more than was read, of each.
fn one_more(plan: &ReadSet, loaded: &Loaded) -> WriteSet {
    let next = |old: &Option<Record>| Record { score: old.map_or(0, |old| old.score) + 1, ..record(0) };
    let rows = plan.scores.iter().cloned().zip(loaded.scores.iter().map(|old| Some(next(old))));
    scores(rows.collect())
}

/// The counters, which are always equal.
fn count(store: &dyn Store, plan: &ReadSet) -> i64 {
    let found = store.records(&plan.scores).unwrap();
    let counts: Vec<i64> = found.iter().map(|found| found.map_or(0, |found| found.score)).collect();
    assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "half a transaction: {counts:?}");
    counts[0]
}

fn is_away<T: std::fmt::Debug>(done: &Result<T, StoreError>) {
    assert!(matches!(done, Err(StoreError::ShardUnavailable { .. })), "{done:?}");
}
