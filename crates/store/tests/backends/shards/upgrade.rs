//! A store that a release with intents was killed on.

use super::*;
use crate::contract::create;
use tally_rules::Definition;
use tally_store::{BoardNo, ImportKey, Reads};

#[test]
fn an_intent_of_an_earlier_release_is_applied_once() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls: Vec<String> = (0..2).map(|_| server.create_database()).collect();
    let store = open(&urls);
    create(&store, "b", &Definition::default()).unwrap();
    drop(store);
    let [first, other] = [0, 1].map(|at: usize| urls[at].rsplit('/').next().unwrap().to_owned());
    let earlier = || {
        for database in [&first, &other] {
            server.sql(&format!(
                "UPDATE {database}.meta SET value = CONCAT('1', SUBSTR(value, 2)) WHERE name = 'store.shard'"
            ));
        }
        // Format 1, version 9; shard 1: a ban of `al` on board 1.
        let bytes = "01090100000101 02 616C 01 000000".replace(' ', "");
        server.sql(&format!(
            "INSERT INTO {first}.meta VALUES ('store.intent.00000000000000000007.000000', X'{bytes}')"
        ));
        server.sql(&format!("REPLACE INTO {first}.imports VALUES (1, REPEAT(X'01', 32), 50, 40, 10, 0)"));
    };
    earlier();
    let store = open(&urls);
    let bans = |store: &dyn Store| store.bans(BoardNo(1)).unwrap().len();
    assert_eq!(bans(&store), 1);
    // The other database has a note if it was half done.
    let import = ImportKey { board: BoardNo(1), digest: [1; 32] };
    let row = store.import_progress(&import).unwrap().unwrap();
    assert_eq!((row.lines, row.taken, row.refused), (50, 40, 10), "no line is taken twice");
    drop(store);
    server.sql(&format!("DELETE FROM {other}.bans"));
    drop(open(&urls));
    earlier();
    server.sql(&format!("INSERT INTO {other}.meta VALUES ('store.applied.0', '7')"));
    assert_eq!(bans(&open(&urls)), 0, "it was applied before");
    let notes = server.sql(&format!(
        "SELECT COUNT(*) FROM {first}.meta WHERE name LIKE 'store.intent.%' OR value LIKE '1 %'"
    ));
    assert_eq!(notes.trim(), "0");
}
