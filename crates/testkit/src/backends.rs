//! Where the servers of a test run keep scores and orders: the same tests run on each, chosen by one variable.
//!
//! `TALLY_TEST_ON=mariadb` puts every [`TestTally`](crate::TestTally) on a database of its own in a MariaDB that the test
//! process starts, `shards` on two databases of it, `mariadb+redis` keeps their orders, and the applications of
//! contests without money, in a Redis beside it. Without the variable they are on SQLite. A server that is missing fails the run. Not here: which tests
//! run on which (`xtask/src/testing.rs`).

use crate::database::{DatabaseKind, ScratchDatabase};
use crate::redis::{RedisKind, ScratchRedis};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable.
const VARIABLE: &str = "TALLY_TEST_ON";

/// Which share of a random test's length is run: on other stores than the embedded one, where each operation costs more
/// and the same rules were tested in full before, a third.
pub fn share() -> usize {
    if matches!(std::env::var(VARIABLE).as_deref(), Err(_) | Ok("" | "sqlite")) { 1 } else { 3 }
}

/// The variables of the environment that put one new server onto what this run is on.
///
/// # Panics
///
/// If the variable says something else than is known.
pub fn settings() -> Vec<(String, String)> {
    let on = std::env::var(VARIABLE).unwrap_or_default();
    match on.as_str() {
        "" | "sqlite" => Vec::new(),
        "mariadb" => database(DatabaseKind::MariaDb10),
        "mysql" => database(DatabaseKind::MySql9),
        "shards" => shards(),
        "mariadb+redis" => [database(DatabaseKind::MariaDb10), redis()].concat(),
        other => panic!("{VARIABLE}={other}: there are sqlite, mariadb, mysql, shards and mariadb+redis"),
    }
}

/// The Redis that all servers of this process share, each with keys of its own.
fn redis() -> Vec<(String, String)> {
    static REDIS: OnceLock<ScratchRedis> = OnceLock::new();
    static SERVERS: AtomicU64 = AtomicU64::new(0);
    let redis = REDIS.get_or_init(|| ScratchRedis::start(RedisKind::Redis7, &[]));
    let nth = SERVERS.fetch_add(1, Ordering::Relaxed);
    let url = format!("redis://{}/0?prefix=t{nth}", redis.address());
    ["TALLY_RANKING_URL", "TALLY_APPLICATIONS_URL"].map(|name| (name.to_owned(), url.clone())).to_vec()
}

fn database(kind: DatabaseKind) -> Vec<(String, String)> {
    on(ScratchDatabase::shared(kind).create_database())
}

fn shards() -> Vec<(String, String)> {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    on(format!("{},{}", server.create_database(), server.create_database()))
}

fn on(url: String) -> Vec<(String, String)> {
    vec![
        ("TALLY_STORE_URL".into(), url),
        // A test that kills its server waits for this at the next start.
        ("TALLY_STORE_LEASE".into(), "4s".into()),
    ]
}
