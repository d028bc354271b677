//! The application store of a test: the store, and beside it perhaps a Redis of the test's own.

use crate::wallets::world::settings;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_ranking::RedisApplications;
use tally_ranking::redis::Options;
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::record::ApplicationLocation;
use tally_rules::contest::{ContestId, ContestRecord};
use tally_rules::ledger::{Amount, Currency};
use tally_rules::{Micros, PlayerId};
use tally_service::contests::change;
use tally_service::contests::execute::ContestActor;
use tally_service::secret::Secret;
use tally_service::{Clock, Keys, Progress, Settings, Tally};
use tally_store::Store;
use tally_store::mysql::MySqlStore;
use tally_store::sqlite::SqliteStore;
use tally_testkit::{
    DatabaseKind, RedisKind, Reply, RespClient, ScratchCluster, ScratchDatabase, ScratchRedis,
};

/// Where they are. In front of Redis the store is the embedded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sqlite,
    MariaDb,
    Redis,
    Valkey,
    Cluster,
}

enum Outside {
    None,
    One(Box<ScratchRedis>),
    Cluster(ScratchCluster),
}

/// A store and its Redis.
pub(super) struct Site {
    pub(super) store: Arc<dyn Store>,
    outside: Outside,
    now: Arc<AtomicI64>,
    _folder: tempfile::TempDir,
}

/// Player 0 is of the staff.
pub(super) fn player(no: usize) -> PlayerId {
    PlayerId::new(&format!("p{no:02}")).unwrap()
}

/// A contest with three places.
pub(super) fn cup(fee: bool) -> ContestSpec {
    let currency = Currency::parse("KRW").unwrap();
    ContestSpec {
        title: Some("Cup".into()),
        staff: Some(vec![player(0)]),
        capacity: Some(3),
        entry_fee: Some(fee.then(|| Fee { currency, amount: Amount::new(10).unwrap() })),
        ..ContestSpec::default()
    }
}

impl Site {
    pub(super) fn new(kind: Kind) -> Self {
        let outside = match kind {
            Kind::Sqlite | Kind::MariaDb => Outside::None,
            Kind::Redis => Outside::One(Box::new(ScratchRedis::start(RedisKind::Redis7, &[]))),
            Kind::Valkey => Outside::One(Box::new(ScratchRedis::start(RedisKind::Valkey9, &[]))),
            Kind::Cluster => Outside::Cluster(ScratchCluster::start(RedisKind::Valkey9, &[])),
        };
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = match kind {
            Kind::MariaDb => {
                let url = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
                Arc::new(MySqlStore::open(&url, &tally_store::mysql::Options::default()).unwrap())
            }
            _ => {
                let path = folder.path().join("t.db");
                Arc::new(SqliteStore::open(&path, &tally_store::sqlite::Options::default()).unwrap())
            }
        };
        Self { store, outside, now: Arc::new(AtomicI64::new(1_700_000_000_000_000)), _folder: folder }
    }

    pub(super) fn now(&self) -> Micros {
        Micros(self.now.load(Ordering::SeqCst))
    }

    pub(super) fn advance(&self, micros: i64) {
        self.now.fetch_add(micros, Ordering::SeqCst);
    }

    /// The single server beside it.
    pub(super) fn redis(&mut self) -> &mut ScratchRedis {
        match &mut self.outside {
            Outside::One(redis) => redis,
            Outside::None | Outside::Cluster(_) => panic!("there is no single one"),
        }
    }

    fn clients(&self) -> Vec<RespClient> {
        match &self.outside {
            Outside::None => Vec::new(),
            Outside::One(redis) => vec![redis.client()],
            Outside::Cluster(cluster) => (0..3).map(|at| cluster.client(at)).collect(),
        }
    }

    pub(super) fn url(&self) -> Option<String> {
        match &self.outside {
            Outside::None => None,
            Outside::One(redis) => Some(format!("redis://{}", redis.address())),
            Outside::Cluster(cluster) => {
                let all: Vec<String> = cluster.addresses().iter().map(ToString::to_string).collect();
                Some(format!("redis-cluster://{}", all.join(",")))
            }
        }
    }

    /// A server in front of it.
    pub(super) fn serve(&self) -> Arc<Tally> {
        self.serve_with(self.url().as_deref())
    }

    /// The same with the applications in another store.
    pub(super) fn serve_with(&self, url: Option<&str>) -> Arc<Tally> {
        let (store, now) = (Arc::clone(&self.store), Arc::clone(&self.now));
        let clock = Clock::of(move || Micros(now.load(Ordering::SeqCst)));
        let applications = url.map(|url| RedisApplications::open(url, &Options::default()).unwrap());
        let settings = Settings { ledger: settings(), applications, ..Settings::default() };
        let secret = Secret::new([1; 32]);
        let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
        Tally::start(store, Arc::new(keys), clock, settings, &Progress::default()).unwrap()
    }

    /// A contest that is open.
    pub(super) fn open(&self, tally: &Tally, name: &str) -> ContestId {
        self.open_with(tally, name, &cup(false))
    }

    pub(super) fn open_with(&self, tally: &Tally, name: &str, spec: &ContestSpec) -> ContestId {
        let id = ContestId::new(name).unwrap();
        change::create(tally, &id, &ContestActor::SERVER, spec, None).unwrap();
        let opened = change::open(tally, &id, &ContestActor::ADMIN, None).unwrap();
        self.assert_where(&opened.record);
        id
    }

    pub(super) fn assert_where(&self, record: &ContestRecord) {
        let outside = !matches!(self.outside, Outside::None);
        assert_eq!(matches!(record.kept, ApplicationLocation::Redis(_)), outside, "{:?}", record.kept);
    }

    /// Nothing is left of contests, except requests with a key; and no read searched for it.
    pub(super) fn assert_empty(&self) {
        for mut client in self.clients() {
            let Reply::Array(keys) = client.call(&["KEYS", "*"]) else { panic!("a list") };
            let of_request =
                |key: &Reply| matches!(key, Reply::Bulk(key) if key.windows(4).any(|part| part == b"}:q:"));
            assert!(keys.iter().all(of_request), "{keys:?}");
            let Reply::Bulk(stats) = client.call(&["INFO", "commandstats"]) else { panic!("INFO is text") };
            let stats = String::from_utf8(stats).unwrap();
            assert!(!stats.contains("cmdstat_scan"), "{stats}");
            // Ours just now.
            assert!(stats.contains("cmdstat_keys:calls=1,") || !stats.contains("cmdstat_keys"), "{stats}");
        }
    }
}
