//! Where the servers of a test run keep scores and orders: the same tests run on each, chosen by one variable.
//!
//! `TALLY_TEST_ON=mariadb` puts every [`TestTally`](crate::TestTally) on a database of its own in a MariaDB that the test
//! process starts. Without the variable they are on SQLite. A server that is missing fails the run. Not here: which tests
//! run on which (`xtask/src/testing.rs`).

use crate::database::{DatabaseKind, ScratchDatabase};

/// The variable.
const VARIABLE: &str = "TALLY_TEST_ON";

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
        other => panic!("{VARIABLE}={other}: there are sqlite, mariadb and mysql"),
    }
}

fn database(kind: DatabaseKind) -> Vec<(String, String)> {
    vec![
        ("TALLY_STORE_URL".into(), ScratchDatabase::shared(kind).create_database()),
        // A test that kills its server waits for this at the next start.
        ("TALLY_STORE_LEASE".into(), "4s".into()),
    ]
}
