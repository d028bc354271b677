//! Records spread over several databases, under the contract, and what only several can be asked.

use crate::contract::{Backend, store_contract};
use std::time::Duration;
use tally_store::Store;
use tally_store::mysql::Options;
use tally_store::shards::Shards;
use tally_testkit::{DatabaseKind, ScratchDatabase};

/// Empty databases on the server that all tests share.
struct Databases {
    kind: DatabaseKind,
    urls: Vec<String>,
}

impl Databases {
    fn new(kind: DatabaseKind, count: usize) -> Self {
        let urls = (0..count).map(|_| ScratchDatabase::shared(kind).create_database()).collect();
        Self { kind, urls }
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
        Box::new(open(&self.urls))
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
