//! The owner of a database, and the creation of its schema.

use super::*;

for_both!(
    servers_that_start_at_once_make_one_schema,
    what_was_cut_short_is_finished,
    what_is_not_ours_is_not_touched,
    a_wrong_address_says_what_is_wrong,
);

fn servers_that_start_at_once_make_one_schema(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..6).map(|_| scope.spawn(|| open(&url))).collect();
        for store in opened {
            let store = store.join().unwrap();
            run(&store, &counter(), &mut |loaded| one_more(loaded.scores[0].map_or(0, |old| old.score)))
                .unwrap();
        }
    });
    assert_eq!(count(&open(&url)), 6);
}

/// DDL commits by itself: a server that was killed during table creation leaves some tables.
fn what_was_cut_short_is_finished(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    drop(open(&url));
    let cut_short = "DELETE FROM meta; DROP TABLE scores, batches, blocks, requests";
    server.sql(&format!("USE {name}; {cut_short}"));
    let store = open(&url);
    add(&store, |_| ()).unwrap();
    drop(store);
    assert_eq!(count(&open(&url)), 1);
}

fn what_is_not_ours_is_not_touched(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let tables = |url: &str| {
        let name = url.rsplit('/').next().unwrap();
        server.sql(&format!("SELECT table_name FROM information_schema.tables WHERE table_schema = '{name}'"))
    };
    for theirs in ["shop", "meta"] {
        let url = server.create_database();
        let name = url.rsplit('/').next().unwrap();
        server.sql(&format!("CREATE TABLE {name}.{theirs} (name INT, value INT)"));
        let refused = MySqlStore::open(&url, &impatient()).map(drop);
        assert!(matches!(refused, Err(StoreError::NotOurs(_))), "{refused:?}");
        assert_eq!(tables(&url), theirs);
    }
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    drop(open(&url));
    server.sql(&format!("UPDATE {name}.meta SET value = '99' WHERE name = 'store.schema'"));
    let refused = MySqlStore::open(&url, &impatient()).map(drop);
    assert!(matches!(refused, Err(StoreError::TooNew { found: 99, .. })), "{refused:?}");
    server.sql(&format!("UPDATE {name}.meta SET value = 'x' WHERE name = 'store.schema'"));
    let refused = MySqlStore::open(&url, &impatient()).map(drop);
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
}

fn a_wrong_address_says_what_is_wrong(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let address = server.address();
    for (url, says, goes_away) in [
        (format!("mysql://nobody:secret@{address}/nothing"), "", false),
        (server.url("nothing_here"), "1049", false),
        ("mysql://root@127.0.0.1:1/nothing".to_owned(), "127.0.0.1:1", true),
        ("mysql://root@no-such-host.invalid/nothing".to_owned(), "no-such-host", true),
    ] {
        let refused = MySqlStore::open(&url, &impatient()).map(drop);
        let (why, waits) = match &refused {
            Err(StoreError::Unavailable(why)) => (why, true),
            Err(StoreError::NoAccess(why)) => (why, false),
            other => panic!("{other:?}"),
        };
        assert!(why.contains(says) && waits == goes_away, "{refused:?}");
        assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
    }
}
