//! The stores and rankings of the servers of a test run: one variable selects them for the same tests.
//!
//! `TALLY_TEST_ON=mariadb` gives every [`TestTally`](crate::TestTally) a database of its own in a MariaDB that the test process
//! starts, and `shards` two databases of it. `mariadb+redis` adds a Redis for rankings, and for the applications of contests
//! without money. Without the variable the store is SQLite. A missing server fails the run. Not here: which tests run on which
//! (`xtask/src/testing`).

use crate::database::{DatabaseKind, ScratchDatabase};
use crate::redis::{RedisKind, ScratchRedis};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const VARIABLE: &str = "TALLY_TEST_ON";

/// The divisor for the length of a random test: a third on other stores than the embedded one. There each operation costs more,
/// and the same rules were tested in full before.
pub fn share() -> usize {
    if matches!(std::env::var(VARIABLE).as_deref(), Err(_) | Ok("" | "sqlite")) { 1 } else { 3 }
}

/// The environment variables that put a new server onto the store and the ranking of this run. A store in databases has its archives
/// in the server's data directory.
///
/// # Panics
///
/// If the variable has an unknown value.
pub fn settings(data: &Path) -> Vec<(String, String)> {
    let on = std::env::var(VARIABLE).unwrap_or_default();
    let mut settings = match on.as_str() {
        "" | "sqlite" => Vec::new(),
        "mariadb" => database(DatabaseKind::MariaDb10),
        "mysql" => database(DatabaseKind::MySql9),
        "shards" => shards(),
        "mariadb+redis" => [database(DatabaseKind::MariaDb10), redis()].concat(),
        other => panic!("{VARIABLE}={other}: there are sqlite, mariadb, mysql, shards and mariadb+redis"),
    };
    if !settings.is_empty() {
        settings.push(("TALLY_ARCHIVE_DIR".into(), data.join("archive").display().to_string()));
    }
    settings
}

/// The Redis of all servers of this process, each with its own keys.
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
        // A test that kills its server waits this long at the next start.
        ("TALLY_STORE_LEASE".into(), "4s".into()),
    ]
}
