//! Everything of a store in another one: from a file to databases and back, cut between any two batches; and what is refused.

use super::*;
use crate::contract::{audit, boards, contests, create, ledger, write};
use crate::sqlite::fixtures::{SCHEMA, fill, verify};
use rusqlite::{Connection, types::Value};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use tally_store::copy::{CopyEnd, CopyReport, copy};
use tally_store::sqlite::{self, SqliteStore};
use tally_store::{BoardNo, Garbage, LedgerWriteSet, Maintenance, Reads, Window, WindowKey};

for_both!(
    a_filled_file_reads_the_same_in_a_database_and_back,
    a_target_with_data_or_a_server_is_refused,
    a_source_that_has_changed_since_a_cut_is_found,
);

/// More players than two batches have rows.
const MANY: u32 = 4_500;

/// The instants of the acts that the copies leave, which no other act here has.
const ACTS: [i64; 3] = [1_001, 1_002, 1_003];

/// Batches that a copy makes before it is cut, and cuts until all are made: there are fewer than 40. The last ones are while both stores are compared.
const BEFORE_CUT: usize = 2;
const CUTS: usize = 20;

fn file(path: &Path) -> CopyEnd {
    CopyEnd::File(path.to_owned(), sqlite::Options::default())
}

fn database(url: &str) -> CopyEnd {
    let writer = Some("a copy".to_owned());
    CopyEnd::Database(url.to_owned(), Options { writer, lease: Duration::from_secs(2), ..patient() })
}

fn copied(from: &CopyEnd, to: &CopyEnd, act: i64) -> Result<CopyReport, StoreError> {
    copy(from, to, (&["left"], &audit::row(act)), &mut |_| (), &mut |progress| {
        assert!(progress.done <= progress.total);
    })
}

/// Copies some batches, or compares some, and ends as a killed process would.
fn cut(from: &CopyEnd, to: &CopyEnd, act: i64) {
    let mut reports = 0;
    let done = catch_unwind(AssertUnwindSafe(|| {
        copy(from, to, (&["left"], &audit::row(act)), &mut |_| (), &mut |_| {
            reports += 1;
            // The first one is before any batch.
            if reports > BEFORE_CUT {
                resume_unwind(Box::new(()));
            }
        })
    }));
    assert!(done.is_err(), "{done:?}");
}

/// A file with something in every table, and more than one batch of scores.
fn filled(folder: &Path) -> PathBuf {
    let path = folder.join("from.db");
    let store = SqliteStore::open(&path, &sqlite::Options::default()).unwrap();
    fill(&store);
    for (nth, definition) in boards::definitions().into_iter().enumerate() {
        create(&store, &format!("board {nth}"), &definition).unwrap();
    }
    let many = (0..MANY).map(|no| (key(3, 0, &format!("p{no}")), Some(record(i64::from(no)))));
    write(&store, &scores(many.collect())).unwrap();
    // The member of the fixtures is closed, so nothing finds it.
    let (id, member) = (ledger::member_id(9), ledger::a_member("bob", false));
    let mut handles: Vec<_> = member.handles(id).into_iter().map(|handle| (handle, Some(id))).collect();
    handles.sort();
    let members = vec![(id, member)];
    let contests = contests::applied_and_paid();
    let ledger = LedgerWriteSet { handles, members, contests, ..LedgerWriteSet::default() };
    let garbage = vec![Garbage::Window(WindowKey { board: BoardNo(1), window: Window(9) })];
    write(&store, &WriteSet { ledger, garbage, ..WriteSet::default() }).unwrap();
    store.set_meta("left", b"behind").unwrap();
    path
}

/// The rows of all tables of a file, without what belongs to the file itself.
fn rows(path: &Path) -> BTreeMap<String, Vec<String>> {
    let connection = Connection::open(path).unwrap();
    let mut names = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap);
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names {
        let name: String = name;
        let mut statement = connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = statement.column_count();
        let read = |row: &rusqlite::Row<'_>| {
            let values: Vec<Value> = (0..columns).map(|column| row.get(column)).collect::<Result<_, _>>()?;
            Ok(format!("{values:?}"))
        };
        let rows = statement.query_map([], read).unwrap().map(Result::unwrap);
        let of_the_file = |row: &String| {
            let own = row.contains("Text(\"store.") && !row.contains("Text(\"store.next_board\")");
            name == "meta" && (own || row.contains("Text(\"left\")"))
        };
        let mut rows: Vec<String> = rows.filter(|row| !of_the_file(row)).collect();
        rows.sort();
        all.insert(name, rows);
    }
    all
}

fn a_filled_file_reads_the_same_in_a_database_and_back(kind: DatabaseKind) {
    let folder = tempfile::tempdir().unwrap();
    let (from, back) = (folder.path().join("from.db"), folder.path().join("back.db"));
    let store = SqliteStore::open(&from, &sqlite::Options::default()).unwrap();
    fill(&store);
    drop(store);
    let url = ScratchDatabase::shared(kind).create_database();
    // The act of the copy has no place in the list of the fixtures, which is compared whole.
    let acts = audit::rows_of_fixtures();
    let copy_on =
        |from: &CopyEnd, to: &CopyEnd| copy(from, to, (&[], &acts[0]), &mut |_| (), &mut |_| ()).unwrap();
    let there = copy_on(&file(&from), &database(&url));
    assert!(!there.resumed && there.rows > 30 && there.balances["KRW"] > 0, "{there:?}");
    verify(&open(&url), SCHEMA);
    let again = copy_on(&database(&url), &file(&back));
    assert_eq!((again.rows, again.tables, &again.balances), (there.rows, there.tables, &there.balances));
    verify(&SqliteStore::open(&back, &sqlite::Options::default()).unwrap(), SCHEMA);
    assert_eq!(rows(&back), rows(&from));
    // What the copy needs of the future: boards are made, and requests decided.
    let store = open(&url);
    assert_eq!(create(&store, "next", &tally_rules::Definition::default()).unwrap().0, 3);
    add(&store, |_| ()).unwrap();
    assert_eq!(count(&store), 1);
}

#[test]
fn every_row_comes_back_from_copies_that_are_cut_all_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let from = filled(folder.path());
    let before = rows(&from);
    let empty: Vec<_> = before.iter().filter(|(_, rows)| rows.is_empty()).map(|(name, _)| name).collect();
    assert!(empty.is_empty(), "{empty:?}");
    let [maria, mysql] = [DatabaseKind::MariaDb10, DatabaseKind::MySql9]
        .map(|kind| ScratchDatabase::shared(kind).create_database());
    let (first, back) = (file(&from), folder.path().join("back.db"));
    for _ in 0..CUTS {
        cut(&first, &database(&maria), ACTS[0]);
        let refused = MySqlStore::open(&maria, &patient()).map(drop);
        let Err(StoreError::Layout(why)) = &refused else { panic!("{refused:?}") };
        assert!(why.contains("`tally migrate --from`"), "{why}");
    }
    assert!(copied(&first, &database(&maria), ACTS[0]).unwrap().resumed);
    assert!(!copied(&database(&maria), &database(&mysql), ACTS[1]).unwrap().resumed);
    for _ in 0..CUTS {
        cut(&database(&mysql), &file(&back), ACTS[2]);
        let refused = SqliteStore::open(&back, &sqlite::Options::default()).map(drop);
        assert!(matches!(refused, Err(StoreError::Layout(_))), "{refused:?}");
    }
    assert!(copied(&database(&mysql), &file(&back), ACTS[2]).unwrap().resumed);
    let mut after = rows(&back);
    let acts = after.get_mut("audit").unwrap();
    assert_eq!(acts.len(), before["audit"].len() + 3);
    acts.retain(|act| before["audit"].contains(act));
    assert_eq!(after, before);
    // The source is as it was.
    assert_eq!(rows(&from), before);
}

fn a_target_with_data_or_a_server_is_refused(kind: DatabaseKind) {
    let folder = tempfile::tempdir().unwrap();
    let from = filled(folder.path());
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let layout = |done: Result<CopyReport, StoreError>, words: &str| {
        let Err(StoreError::Layout(why)) = &done else { panic!("{done:?}") };
        assert!(why.contains(words), "{why}");
    };
    // Nothing to copy.
    layout(
        copied(&database(&server.create_database()), &file(&folder.path().join("none.db")), 1),
        "nothing to copy",
    );
    // A server runs on either.
    let running = SqliteStore::open(&from, &sqlite::Options::default()).unwrap();
    let refused = copied(&file(&from), &database(&url), 1);
    assert!(matches!(refused, Err(StoreError::Locked(_))), "{refused:?}");
    drop(running);
    let alone = Options { writer: Some("a server".into()), lease: Duration::from_secs(2), ..patient() };
    let running = MySqlStore::open(&url, &alone).unwrap();
    let refused = copied(&file(&from), &database(&url), 1);
    assert!(matches!(refused, Err(StoreError::Locked(_))), "{refused:?}");
    // The target has data, which stay.
    create(&running, "theirs", &tally_rules::Definition::default()).unwrap();
    drop(running);
    for _ in 0..2 {
        layout(copied(&file(&from), &database(&url), 1), "it has rows in `meta`");
    }
    assert_eq!(open(&url).boards().unwrap().len(), 1);
    // So has the target of a copy that has ended.
    let there = folder.path().join("there.db");
    copied(&file(&from), &file(&there), 1).unwrap();
    layout(copied(&file(&from), &file(&there), 1), "it has rows in");
    // Another source than that of the unfinished copy.
    let half = server.create_database();
    cut(&file(&from), &database(&half), 1);
    layout(copied(&file(&there), &database(&half), 1), "the copy of another store");
    assert!(copied(&file(&from), &database(&half), 1).unwrap().resumed);
}

fn a_source_that_has_changed_since_a_cut_is_found(kind: DatabaseKind) {
    let folder = tempfile::tempdir().unwrap();
    let from = filled(folder.path());
    let url = ScratchDatabase::shared(kind).create_database();
    cut(&file(&from), &database(&url), 1);
    // The first table, which is copied.
    let store = SqliteStore::open(&from, &sqlite::Options::default()).unwrap();
    store.set_meta("later", b"than the copy").unwrap();
    drop(store);
    for _ in 0..2 {
        let refused = copied(&file(&from), &database(&url), 1);
        let Err(StoreError::Corrupt(why)) = &refused else { panic!("{refused:?}") };
        assert!(why.contains("`meta` differs after the copy") && why.contains("has changed"), "{why}");
    }
    let refused = MySqlStore::open(&url, &patient()).map(drop);
    assert!(matches!(refused, Err(StoreError::Layout(_))), "{refused:?}");
}
