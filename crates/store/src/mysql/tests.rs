//! What only the inside can be asked: migrations that there are not yet.

use super::*;
use tally_testkit::{DatabaseKind, ScratchDatabase};

const NEXT: &[&str] = &[
    migrate::MIGRATIONS[0],
    "-- A table more; and a row.\nCREATE TABLE IF NOT EXISTS more (a INT PRIMARY KEY);\nREPLACE INTO more VALUES (1);\n",
];

#[test]
fn an_older_schema_is_migrated_only_when_that_is_asked_for() {
    for kind in [DatabaseKind::MariaDb10, DatabaseKind::MySql9] {
        let server = ScratchDatabase::shared(kind);
        let url = server.create_database();
        let rows = || server.try_sql(&format!("SELECT a FROM {}.more", url.rsplit('/').next().unwrap()));
        drop(MySqlStore::open(&url, &Options::default()).unwrap());
        let refused = MySqlStore::open_with(&url, &Options::default(), NEXT).map(drop);
        assert_eq!(refused, Err(StoreError::TooOld { found: 1, known: 2 }));
        assert!(rows().is_err());
        let asked = Options { migrate: true, ..Options::default() };
        drop(MySqlStore::open_with(&url, &asked, NEXT).unwrap());
        assert_eq!(rows().unwrap(), "1");
        // Neither asks twice, and the older program refuses what it does not know.
        drop(MySqlStore::open_with(&url, &Options::default(), NEXT).unwrap());
        let refused = MySqlStore::open(&url, &Options::default()).map(drop);
        assert_eq!(refused, Err(StoreError::TooNew { found: 2, known: 1 }));
        // An empty database gets the newest without being asked.
        drop(MySqlStore::open_with(&server.create_database(), &Options::default(), NEXT).unwrap());
    }
}
