//! Migrations, with a second version that exists only here.

use super::*;

const SECOND: &str = "CREATE TABLE second (a INTEGER) STRICT; INSERT INTO second SELECT score FROM scores;";
const BAD: &str = "CREATE TABLE third (a INTEGER) STRICT; INSERT INTO missing VALUES (1);";

fn open(place: &Place, more: &[&'static str]) -> Result<SqliteStore, StoreError> {
    let migrations: Vec<_> = migrate::MIGRATIONS.iter().chain(more).copied().collect();
    SqliteStore::open_with(&place.path(), &Options::default(), &migrations)
}

fn number(path: &Path, sql: &str) -> i64 {
    Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn an_older_file_is_migrated_and_its_copy_kept() {
    let place = Place::new();
    let first = migrate::version(migrate::MIGRATIONS);
    put(&place.open().unwrap(), ["ann".to_owned()].into_iter(), 7).unwrap();
    let store = open(&place, &[SECOND]).unwrap();
    assert_eq!(score(&store, "ann"), Some(7));
    put(&store, ["ann".to_owned()].into_iter(), 8).unwrap();
    drop(store);
    let copy = migrate::copy_path(&place.path(), first);
    let copy_name = copy.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(copy_name, format!("tally.db.v{first}.bak"));
    assert_eq!(place.names(), ["tally.db", "tally.db.lock", &copy_name]);
    assert_eq!(number(&place.path(), "PRAGMA user_version"), i64::from(first) + 1);
    assert_eq!(number(&place.path(), "SELECT a FROM second"), 7);
    assert_eq!(number(&copy, "PRAGMA user_version"), i64::from(first));
    assert_eq!(number(&copy, "SELECT score FROM scores"), 7);
    // The copy is a store by itself, and the previous version opens it.
    let back = SqliteStore::open(&copy, &Options::default()).unwrap();
    assert_eq!(score(&back, "ann"), Some(7));
    let refused = place.open().unwrap_err();
    assert_eq!(refused, StoreError::TooNew { found: first + 1, known: first });
}

#[test]
fn what_was_left_by_a_kill_is_in_the_copy_too() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 7).unwrap();
    store.shared.flushing.flush_now(&store.shared).unwrap();
    put(&store, ["bob".to_owned()].into_iter(), 8).unwrap();
    let killed = place.killed();
    drop(store);
    let migrated = open(&killed, &[SECOND]).unwrap();
    assert_eq!((score(&migrated, "ann"), score(&migrated, "bob")), (Some(7), Some(8)));
    drop(migrated);
    let copy = migrate::copy_path(&killed.path(), migrate::version(migrate::MIGRATIONS));
    let copy = SqliteStore::open(&copy, &Options::default()).unwrap();
    assert_eq!((score(&copy, "ann"), score(&copy, "bob")), (Some(7), Some(8)));
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let place = Place::new();
    put(&place.open().unwrap(), ["ann".to_owned()].into_iter(), 7).unwrap();
    for _ in 0..2 {
        open(&place, &[SECOND, BAD]).unwrap_err();
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('second', 'third')";
        assert_eq!(number(&place.path(), tables), 0);
    }
    assert_eq!(score(&place.open().unwrap(), "ann"), Some(7));
    assert_eq!(score(&open(&place, &[SECOND]).unwrap(), "ann"), Some(7));
}

#[test]
fn a_new_file_needs_no_copy_and_opening_again_migrates_nothing() {
    let place = Place::new();
    drop(open(&place, &[SECOND]).unwrap());
    drop(open(&place, &[SECOND]).unwrap());
    assert_eq!(place.names(), ["tally.db", "tally.db.lock"]);
    assert_eq!(number(&place.path(), "PRAGMA application_id"), i64::from(identity::APPLICATION_ID));
}
