//! MariaDB and MySQL under the contract, and the tests of real servers, started by the test kit.
//!
//! `for_both!` makes a test of a function for each of the two, as `store_contract!` does for the contract.

mod commit;
mod copying;
mod faults;
mod kill;
mod lease;
mod lost;
mod present;
mod schema;
mod servers;
mod spider;

use crate::contract::{Backend, key, plan_of, record, run, scores, store_contract};
use std::time::Duration;
use tally_rules::Record;
use tally_store::mysql::{MySqlStore, Options};
use tally_store::{Committed, Loaded, ReadSet, Store, StoreError, WriteSet};
use tally_testkit::{COMMIT, Cut, DatabaseKind, GIVE_UP, Proxy, ScratchDatabase};
use tempfile::TempDir;

/// An empty database on the server that all tests share.
struct Database {
    kind: DatabaseKind,
    url: String,
    /// Whether it is opened as by the only writer, which need not read everything before it writes.
    alone: bool,
    /// The folder of its archives.
    archives: TempDir,
}

impl Database {
    fn new(kind: DatabaseKind) -> Self {
        Self {
            kind,
            url: ScratchDatabase::shared(kind).create_database(),
            alone: false,
            archives: tempfile::tempdir().unwrap(),
        }
    }

    fn of_one_writer(kind: DatabaseKind) -> Self {
        Self { alone: true, ..Self::new(kind) }
    }
}

impl Backend for Database {
    fn name(&self) -> &'static str {
        match self.kind {
            DatabaseKind::MariaDb10 => "mariadb",
            DatabaseKind::MySql9 => "mysql",
        }
    }

    fn another(&self) -> Box<dyn Backend> {
        Box::new(Self { alone: self.alone, ..Self::new(self.kind) })
    }

    fn open(&self) -> Box<dyn Store> {
        let writer = self.alone.then(|| "the contract".to_owned());
        let archives = Some(self.archives.path().to_owned());
        Box::new(MySqlStore::open(&self.url, &Options { writer, archives, ..patient() }).unwrap())
    }
}

mod mariadb {
    use super::*;

    fn fresh() -> Database {
        Database::new(DatabaseKind::MariaDb10)
    }

    store_contract!(fresh);
}

mod mysql9 {
    use super::*;

    fn fresh() -> Database {
        Database::new(DatabaseKind::MySql9)
    }

    store_contract!(fresh);
}

mod mariadb_of_one_writer {
    use super::*;

    fn fresh() -> Database {
        Database::of_one_writer(DatabaseKind::MariaDb10)
    }

    store_contract!(fresh);
}

mod mysql9_of_one_writer {
    use super::*;

    fn fresh() -> Database {
        Database::of_one_writer(DatabaseKind::MySql9)
    }

    store_contract!(fresh);
}

/// Makes a test for each kind of server of every function that takes one.
macro_rules! for_both {
    ($($test:ident),+ $(,)?) => {
        mod mariadb {
            $(#[test]
            fn $test() {
                super::$test(tally_testkit::DatabaseKind::MariaDb10);
            })+
        }
        mod mysql9 {
            $(#[test]
            fn $test() {
                super::$test(tally_testkit::DatabaseKind::MySql9);
            })+
        }
    };
}
use for_both;

/// How long a row is waited for on any machine. The end of a transaction is waited for a second longer.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Deadlines that an undisturbed server keeps on any machine.
fn patient() -> Options {
    Options { connect_timeout: GIVE_UP, query_timeout: GIVE_UP, lock_wait: LOCK_WAIT, ..Options::default() }
}

/// Short deadlines, so that a request without an answer is given up within a test.
fn impatient() -> Options {
    Options {
        connect_timeout: Duration::from_secs(2),
        query_timeout: Duration::from_secs(3),
        lock_wait: Duration::from_secs(1),
        ..Options::default()
    }
}

fn open(url: &str) -> MySqlStore {
    MySqlStore::open(url, &patient()).unwrap()
}

/// The same for a server that a test freezes or cuts off.
fn open_impatient(url: &str) -> MySqlStore {
    MySqlStore::open(url, &impatient()).unwrap()
}

/// A store whose connections can be disturbed, and the address without the disturbance.
fn behind_proxy(server: &ScratchDatabase) -> (Proxy, MySqlStore, String) {
    let proxy = Proxy::start(server.address());
    let url = server.create_database();
    let through = url.replace(&server.address().to_string(), &proxy.address().to_string());
    (proxy, open_impatient(&through), url)
}

fn counter() -> ReadSet {
    plan_of(vec![key(1, 0, "counter")])
}

/// Adds one to the counter; `before` is called at the decision, with the number of decisions.
fn add(store: &dyn Store, mut before: impl FnMut(usize)) -> Result<Committed, StoreError> {
    let mut decided = 0;
    store.run(&counter(), &mut |loaded: &Loaded| {
        decided += 1;
        before(decided);
        let old = loaded.scores[0].map_or(0, |old| old.score);
        one_more(old)
    })
}

fn one_more(old: i64) -> WriteSet {
    scores(vec![(key(1, 0, "counter"), Some(Record { score: old + 1, ..record(0) }))])
}

/// What the counter is.
fn count(store: &dyn Store) -> i64 {
    store.records(&counter().scores).unwrap()[0].map_or(0, |found| found.score)
}

fn is_away<T: std::fmt::Debug>(done: &Result<T, StoreError>) {
    assert!(matches!(done, Err(StoreError::Unavailable(_))), "{done:?}");
}
