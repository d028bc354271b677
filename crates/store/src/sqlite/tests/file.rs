//! The file: identity, lock, a full disk, and its contents at rest.

use super::*;
use crate::Reads;

#[test]
fn at_rest_there_are_plain_tables_and_no_log() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, (0..500).map(|row| format!("{row}")), 7).unwrap();
    drop(store);
    assert_eq!(place.names(), ["tally.db", "tally.db.lock"]);
    // The file alone has all rows.
    let copy = place.folder.path().join("copy.db");
    std::fs::copy(place.path(), &copy).unwrap();
    let sum = |connection: &Connection| -> i64 {
        connection.query_row("SELECT sum(score) FROM scores", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(sum(&Connection::open(&copy).unwrap()), 3500);
}

#[test]
fn a_second_store_of_a_file_is_refused_and_told_where_the_first_is() {
    let place = Place::new();
    let first = place.open().unwrap();
    first.announce("127.0.0.1:7700").unwrap();
    let link = place.folder.path().join("link.db");
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    #[cfg(not(unix))]
    std::fs::hard_link(place.path(), &link).unwrap();
    for path in [place.path(), link] {
        let refused = SqliteStore::open(&path, &Options::default()).unwrap_err();
        let StoreError::Locked(text) = refused else { panic!("{refused}") };
        assert!(text.contains(&std::process::id().to_string()), "{text}");
        assert!(text.contains("127.0.0.1:7700"), "{text}");
    }
    drop(first);
    place.open().unwrap();
}

/// Opening must fail and leave no trace: the same files with the same bytes.
fn refused_untouched(place: &Place) -> StoreError {
    let before = place.files();
    let refused = place.open().unwrap_err();
    assert!(before == place.files(), "{:?}", place.names());
    refused
}

#[test]
fn a_file_of_a_later_version_is_not_touched() {
    let place = Place::new();
    drop(place.open().unwrap());
    let later = migrate::version(migrate::MIGRATIONS) + 1;
    place.sql(&format!("PRAGMA user_version = {later}"));
    let wanted = StoreError::TooNew { found: later, known: later - 1 };
    assert_eq!(refused_untouched(&place), wanted);
    // Also if it was killed and left a log, which SQLite would flush.
    std::fs::write(place.folder.path().join("tally.db-wal"), [1; 5000]).unwrap();
    assert_eq!(refused_untouched(&place), wanted);
}

#[test]
fn files_of_other_programs_are_not_touched() {
    let other = Place::new();
    other.sql(
        "PRAGMA application_id = 7; PRAGMA user_version = 1; CREATE TABLE t (a); PRAGMA journal_mode = WAL",
    );
    let of_another_program = Place::new();
    of_another_program.sql("CREATE TABLE scores (a)");
    let text = Place::new();
    std::fs::write(text.path(), "player,score\n".repeat(50)).unwrap();
    let short = Place::new();
    std::fs::write(short.path(), "SQLite format 3\0").unwrap();
    for place in [other, of_another_program, text, short] {
        let refused = refused_untouched(&place);
        assert!(matches!(refused, StoreError::NotOurs(_)), "{refused}");
    }
}

#[test]
fn an_empty_file_is_a_new_store_and_a_missing_folder_is_named() {
    let place = Place::new();
    std::fs::write(place.path(), "").unwrap();
    put(&place.open().unwrap(), ["ann".to_owned()].into_iter(), 1).unwrap();
    assert_eq!(score(&place.open().unwrap(), "ann"), Some(1));
    let refused = SqliteStore::open(&place.folder.path().join("missing/tally.db"), &Options::default());
    let Err(StoreError::Unavailable(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("missing/tally.db"), "{text}");
}

/// Limits the number of pages of a database.
fn limit(connection: &Connection, pages: u32) {
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
}

fn pages(connection: &Connection) -> u32 {
    connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap()
}

fn many() -> impl Iterator<Item = String> {
    ["ann".to_owned()].into_iter().chain((0..5000).map(|row| format!("player {row}")))
}

#[test]
fn a_journal_on_a_full_disk_is_away_and_recovers() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 1).unwrap();
    let limit_journal = |more: u32| {
        let writer = store.shared.writer();
        let journal = writer.journal.as_ref().unwrap().connection();
        limit(journal, pages(journal) + more);
    };
    limit_journal(2);
    for _ in 0..3 {
        let full = put(&store, many(), 2);
        assert!(matches!(full, Err(StoreError::Unavailable(_))), "{full:?}");
        assert_eq!(score(&store, "ann"), Some(1), "nothing was done");
        assert_eq!(store.count_scores(BoardNo(1), Window(0)).unwrap(), 1);
    }
    put(&store, ["ann".to_owned()].into_iter(), 3).unwrap();
    limit_journal(1_000_000);
    put(&store, many(), 4).unwrap();
    drop(store);
    assert_eq!(place.open().unwrap().count_scores(BoardNo(1), Window(0)).unwrap(), 5001);
}

#[test]
fn tables_on_a_full_disk_lose_nothing_and_are_flushed_later() {
    let place = Place::new();
    let store = place.open().unwrap();
    let limit_tables = |more: u32| {
        let tables = store.shared.tables();
        limit(tables.connection(), pages(tables.connection()) + more);
    };
    limit_tables(2);
    put(&store, many(), 2).unwrap();
    for round in 3..6 {
        let full = store.checkpoint();
        assert!(matches!(full, Err(StoreError::Unavailable(_))), "{full:?}");
        assert_eq!(score(&store, "ann"), Some(round - 1));
        put(&store, ["ann".to_owned()].into_iter(), round).unwrap();
    }
    assert!(gauge(&store, "flush_failures") >= 3.0);
    // The next start flushes what cannot be flushed at the end.
    drop(store);
    assert!(place.names().iter().any(|name| name.contains("journal")), "{:?}", place.names());
    let store = place.open().unwrap();
    assert_eq!(score(&store, "ann"), Some(5));
    assert_eq!(store.count_scores(BoardNo(1), Window(0)).unwrap(), 5001);
    assert_eq!(place.names(), ["tally.db", "tally.db-shm", "tally.db-wal", "tally.db.lock"]);
}

#[test]
fn another_programs_lock_delays_only_the_flush() {
    let place = Place::new();
    let options = Options { busy_wait: Duration::from_millis(20), ..Options::default() };
    let store = SqliteStore::open(&place.path(), &options).unwrap();
    // The first write lists its journal file in the tables.
    put(&store, ["ann".to_owned()].into_iter(), 0).unwrap();
    let shell = Connection::open(place.path()).unwrap();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 1).unwrap();
    let refused = store.checkpoint();
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(score(&store, "ann"), Some(1));
    shell.execute_batch("ROLLBACK").unwrap();
    store.checkpoint().unwrap();
    assert_eq!(shell.query_row("SELECT score FROM scores", [], |row| row.get(0)), Ok(1));
}
