//! The journal: a start finds its batches after a kill and reports corruption, and a store at rest has none.

use super::*;
use crate::Reads;
use crate::plan::Durability;
use crate::sqlite::journal::Journal;
use crate::sqlite::journal_rows::Identity;
use std::io::{Seek, SeekFrom, Write};

fn names_of_journal(place: &Place) -> Vec<String> {
    place.names().into_iter().filter(|name| name.contains("journal")).collect()
}

fn log(place: &Place) -> PathBuf {
    place.folder.path().join("tally.db.journal-1-wal")
}

/// A store that was killed after this number of batches of one row each, one player after the other.
fn killed_after(batches: i64, durability: Durability) -> Place {
    let place = Place::new();
    let store = place.open().unwrap();
    for batch in 1..=batches {
        put_as(&store, [format!("{batch:04}")].into_iter(), batch, durability).unwrap();
    }
    place.killed()
}

fn players(store: &SqliteStore) -> Vec<String> {
    let mut names = Vec::new();
    let mut each = |player: PlayerId, _| names.push(player.as_str().to_owned());
    store.scan_scores(BoardNo(1), Window(0), None, usize::MAX, &mut each).unwrap();
    names
}

/// A flush begins when much of a file is used. Only written bytes count as used, even if the reused file is long already.
#[test]
fn a_file_that_is_used_again_counts_what_is_written_anew() {
    let place = Place::new();
    let store = place.folder.path().join("tally.db");
    let identity = Identity { store: [1; 16], number: 1 };
    let mut journal = Journal::create(&Files::default(), &store, identity, Duration::from_secs(1)).unwrap();
    let append = |journal: &mut Journal, first: u64, count: u64, bytes: usize| {
        for no in first..first + count {
            journal.make_room(bytes).unwrap();
            journal.append((no, Micros(0)), 0, &vec![7; bytes], false).unwrap();
        }
    };
    append(&mut journal, 1, 32, 1 << 20);
    assert!(journal.used() > 32 << 20);
    assert!(journal.empty().unwrap(), "no connection reads it");
    assert_eq!(journal.used(), 0);
    append(&mut journal, 33, 400, 100);
    // A row of a few bytes takes a page or two.
    assert!(journal.used() < 8 << 20, "{} bytes for 400 small rows", journal.used());
}

#[test]
fn a_store_that_was_only_read_has_no_journal() {
    let place = Place::new();
    let store = place.open().unwrap();
    assert_eq!(score(&store, "ann"), None);
    assert_eq!(store.boards().unwrap(), []);
    store.set_meta("a", b"b").unwrap();
    assert_eq!(names_of_journal(&place), [""; 0]);
    put(&store, ["ann".to_owned()].into_iter(), 1).unwrap();
    assert!(!names_of_journal(&place).is_empty());
}

#[test]
fn settling_leaves_tables_that_any_client_reads_and_the_store_goes_on() {
    let place = Place::new();
    let store = place.open().unwrap();
    let shell = Connection::open(place.path()).unwrap();
    for round in 1..4 {
        put(&store, ["ann".to_owned()].into_iter(), round).unwrap();
        store.checkpoint().unwrap();
        assert_eq!(names_of_journal(&place), [""; 0]);
        let seen = shell.query_row("SELECT score FROM scores", [], |row| row.get(0));
        assert_eq!(seen, Ok(round));
        assert_eq!(gauge(&store, "unflushed_rows"), 0.0);
    }
    store.checkpoint().unwrap();
}

#[test]
fn idle_changes_are_flushed_by_themselves() {
    let place = Place::new();
    let options = Options { flush_idle: Duration::from_millis(1), ..Options::default() };
    let store = SqliteStore::open(&place.path(), &options).unwrap();
    let shell = Connection::open(place.path()).unwrap();
    for round in 1..4 {
        put(&store, ["ann".to_owned()].into_iter(), round).unwrap();
        while shell.query_row("SELECT max(score) FROM scores", [], |row| row.get(0)) != Ok(Some(round)) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn what_a_killed_process_left_is_there_again() {
    for durability in [Durability::Commit, Durability::Relaxed] {
        let place = killed_after(300, durability);
        assert_eq!(names_of_journal(&place), ["tally.db.journal-1", "tally.db.journal-1-wal"]);
        let store = place.open().unwrap();
        assert_eq!(names_of_journal(&place), [""; 0]);
        let wanted: Vec<_> = (1..=300).map(|batch| format!("{batch:04}")).collect();
        assert_eq!(players(&store), wanted);
        put(&store, ["0007".to_owned()].into_iter(), -1).unwrap();
        assert_eq!(score(&place.killed().open().unwrap(), "0007"), Some(-1));
    }
}

#[test]
fn two_files_are_read_in_the_order_of_their_batches() {
    let place = Place::new();
    let store = place.open().unwrap();
    // From here on there is an emptied file for reuse, so no new one has to be listed in the tables.
    put(&store, ["ann".to_owned()].into_iter(), 0).unwrap();
    store.shared.flushing.flush_now(&store.shared).unwrap();
    // Files are reused, so the later batches are sometimes in the first and sometimes in the second. The tables cannot be
    // written meanwhile.
    for round in 0..5 {
        put(&store, ["ann".to_owned(), "bob".to_owned()].into_iter(), round * 10).unwrap();
        let tables = store.shared.tables();
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| store.shared.flushing.flush_now(&store.shared));
            while store.shared.memtables().flushing.is_none() {
                std::thread::yield_now();
            }
            put(&store, ["bob".to_owned()].into_iter(), round * 10 + 1).unwrap();
            let killed = place.killed();
            assert_eq!(names_of_journal(&killed).len(), 4);
            let found = killed.open().unwrap();
            assert_eq!(
                (score(&found, "ann"), score(&found, "bob")),
                (Some(round * 10), Some(round * 10 + 1))
            );
            drop(tables);
            flush.join().unwrap().unwrap();
        });
    }
    assert!(names_of_journal(&place).len() <= 6, "{:?}", place.names());
}

#[test]
fn a_torn_tail_was_not_acknowledged_and_is_dropped() {
    // Only the last batch: its page is cut off, or was never written.
    for damage in [
        |log: &mut std::fs::File| log.write_all(&[0; 4096]),
        |log: &mut std::fs::File| log.write_all(&[0xab; 4096]),
    ] {
        let place = killed_after(5, Durability::Commit);
        let mut file = std::fs::OpenOptions::new().read(true).write(true).open(log(&place)).unwrap();
        let frames = frames(&place);
        file.seek(SeekFrom::Start(frames[4] + 24)).unwrap();
        damage(&mut file).unwrap();
        assert_eq!(players(&place.open().unwrap()), ["0001", "0002", "0003", "0004"]);
    }
}

/// The offsets of the last page of each batch in the log.
fn frames(place: &Place) -> Vec<u64> {
    let bytes = std::fs::read(log(place)).unwrap();
    let at = |frame: usize| 32 + frame * (24 + 4096);
    (0..)
        .map_while(|frame| Some((at(frame), bytes.get(at(frame)..at(frame) + 24)?)))
        .take_while(|(_, head)| head[..4] != [0; 4])
        .filter(|(_, head)| head[4..8] != [0; 4])
        .map(|(at, _)| at as u64)
        .collect()
}

#[test]
fn damage_in_the_middle_is_said_and_nothing_is_changed() {
    let place = killed_after(20, Durability::Commit);
    for batch in [0, 1, 10, 17] {
        let place = place.killed();
        let at = frames(&place)[batch] + 24 + 4000;
        let mut file = std::fs::OpenOptions::new().write(true).open(log(&place)).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[0xab; 7]).unwrap();
        drop(file);
        for _ in 0..2 {
            let refused = place.open().unwrap_err();
            let StoreError::Corrupt(text) = refused else { panic!("{refused}") };
            assert!(text.contains(&format!("breaks off after batch {batch}")), "{text}");
        }
        assert!(names_of_journal(&place).contains(&"tally.db.journal-1-wal".to_owned()));
    }
}

/// A power cut leaves any bytes in unsynced pages, even bytes that look like rows of much later batches.
#[test]
fn torn_pages_behind_the_end_prove_nothing() {
    assert_eq!(players(&torn_behind_the_end().open().unwrap()).len(), 5);
}

/// A store of five batches, followed by a page of a batch that was never whole.
pub(super) fn torn_behind_the_end() -> Place {
    let later = killed_after(20, Durability::Commit);
    let frame = 24 + 4096;
    let at = usize::try_from(frames(&later)[17]).unwrap();
    let torn = std::fs::read(log(&later)).unwrap()[at..at + frame].to_vec();
    let place = killed_after(5, Durability::Commit);
    let end = frames(&place)[4] + frame as u64;
    let mut file = std::fs::OpenOptions::new().write(true).open(log(&place)).unwrap();
    file.seek(SeekFrom::Start(end)).unwrap();
    file.write_all(&torn).unwrap();
    place
}

/// A batch that fills several pages is proof as well.
#[test]
fn a_long_batch_behind_damage_is_proof() {
    let place = Place::new();
    let store = place.open().unwrap();
    for batch in 0..4 {
        put(&store, (0..2000).map(|row| format!("{batch} {row}")), 1).unwrap();
    }
    let killed = place.killed();
    let at = frames(&killed)[0] + 24 + 4000;
    let mut file = std::fs::OpenOptions::new().write(true).open(log(&killed)).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&[0xab; 7]).unwrap();
    let refused = killed.open().unwrap_err();
    assert!(refused.to_string().contains("breaks off after batch 0"), "{refused}");
    let repaired = repair(&killed.path(), &Options::default(), None).unwrap();
    assert_eq!(repaired.last, 0);
    assert_eq!(players(&killed.open().unwrap()), [""; 0]);
}

/// The disk may have any part of asynchronous commits when the machine stops. A hole among them is no corruption.
#[test]
fn a_hole_among_what_was_not_synced_is_no_damage() {
    let place = killed_after(20, Durability::Relaxed);
    let mut file = std::fs::OpenOptions::new().write(true).open(log(&place)).unwrap();
    file.seek(SeekFrom::Start(frames(&place)[9] + 24)).unwrap();
    file.write_all(&[0; 4096]).unwrap();
    assert_eq!(players(&place.open().unwrap()).len(), 9);
}

/// Runs SQL on the journal of a killed store.
fn journal_sql(place: &Place, sql: &str) {
    let journal = Connection::open(place.folder.path().join("tally.db.journal-1")).unwrap();
    // Closing the connection must leave the log.
    journal.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    journal.execute_batch(sql).unwrap();
}

#[test]
fn rows_that_cannot_be_are_damage() {
    let rows = [
        ("DELETE FROM batches WHERE no = 3", "batch 3 is missing before batch 4"),
        ("DELETE FROM batches WHERE no = 1", "batch 1 is missing before batch 2"),
        (
            "UPDATE batches SET body = CAST(body || 'x' AS BLOB) WHERE no = 2",
            "batch 2 is not what was written",
        ),
        ("UPDATE batches SET synced = 9 WHERE no = 5", "batch 5 is not what was written"),
        ("UPDATE batches SET no = 9 WHERE no = 5", "batch 9 is not what was written"),
    ];
    for (sql, wanted) in rows {
        let place = killed_after(5, Durability::Commit);
        journal_sql(&place, sql);
        let refused = place.open().unwrap_err();
        let StoreError::Corrupt(text) = refused else { panic!("{refused}") };
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn a_journal_of_a_later_version_or_of_others_is_not_touched() {
    let later = migrate::version(migrate::MIGRATIONS) + 1;
    for (sql, newer) in
        [(format!("PRAGMA user_version = {later}"), true), ("PRAGMA application_id = 7".to_owned(), false)]
    {
        let place = killed_after(5, Durability::Commit);
        // Such a version wrote it outside of the log.
        journal_sql(&place, &format!("{sql}; PRAGMA journal_mode = DELETE"));
        let before = place.files();
        let refused = place.open().unwrap_err();
        assert!(before == place.files(), "{:?}", place.names());
        if newer {
            assert_eq!(refused, StoreError::TooNew { found: later, known: later - 1 });
        } else {
            assert!(matches!(refused, StoreError::NotOurs(_)), "{refused}");
        }
    }
}

#[test]
fn files_are_used_again_and_again() {
    let place = Place::new();
    let store = place.open().unwrap();
    let mut lengths = Vec::new();
    for round in 0..10 {
        for row in 0..50 {
            put(&store, [format!("{row}")].into_iter(), round).unwrap();
        }
        store.shared.flushing.flush_now(&store.shared).unwrap();
        lengths.push(gauge(&store, "journal_bytes"));
        assert!(gauge(&store, "journal_files") <= 2.0);
    }
    assert_eq!(lengths[3], lengths[9], "{lengths:?}");
    assert_eq!(score(&store, "49"), Some(9));
}

/// A backup reads a journal file while it is emptied: it keeps its snapshot.
#[test]
fn a_file_with_a_reader_is_not_overwritten() {
    let place = Place::new();
    let options = Options { busy_wait: Duration::from_millis(10), ..Options::default() };
    let store = SqliteStore::open(&place.path(), &options).unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 1).unwrap();
    let reader = Connection::open(place.folder.path().join("tally.db.journal-1")).unwrap();
    let count = |reader: &Connection| -> i64 {
        reader.query_row("SELECT count(*) FROM batches", [], |row| row.get(0)).unwrap()
    };
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(count(&reader), 1);
    for round in 2..20 {
        put(&store, ["ann".to_owned()].into_iter(), round).unwrap();
        store.shared.flushing.flush_now(&store.shared).unwrap();
        assert_eq!(count(&reader), 1);
    }
    reader.execute_batch("COMMIT").unwrap();
    drop(reader);
    assert_eq!(score(&place.killed().open().unwrap(), "ann"), Some(19));
}

#[test]
fn relaxed_transactions_are_synced_in_time_and_by_the_next_commit() {
    let place = Place::new();
    let store = place.open().unwrap();
    put_as(&store, ["ann".to_owned()].into_iter(), 1, Durability::Relaxed).unwrap();
    put_as(&store, ["bob".to_owned()].into_iter(), 2, Durability::Relaxed).unwrap();
    assert_eq!(score_as(&store, "ann", Durability::Relaxed), Some(1), "seen at once");
    assert_eq!(gauge(&store, "unsynced_transactions"), 2.0);
    assert!(gauge(&store, "unsynced_bytes") > 0.0);
    // A transaction that waits covers those before it, even if it only reads.
    assert_eq!(score_as(&store, "bob", Durability::Commit), Some(2));
    assert_eq!(gauge(&store, "unsynced_transactions"), 0.0);
    put_as(&store, ["ann".to_owned()].into_iter(), 3, Durability::Relaxed).unwrap();
    put(&store, ["eve".to_owned()].into_iter(), 3).unwrap();
    assert_eq!(gauge(&store, "unsynced_transactions"), 0.0);
    assert_eq!(store.shared.unsynced.synced(), 4);
    // The thread syncs by itself.
    put_as(&store, ["ann".to_owned()].into_iter(), 4, Durability::Relaxed).unwrap();
    while gauge(&store, "unsynced_transactions") > 0.0 {
        std::thread::yield_now();
    }
    assert_eq!(store.shared.unsynced.synced(), 5);
    // Rotation to another file leaves nothing unsynced.
    put_as(&store, ["ann".to_owned()].into_iter(), 5, Durability::Relaxed).unwrap();
    store.shared.flushing.flush_now(&store.shared).unwrap();
    assert_eq!((gauge(&store, "unsynced_transactions"), store.shared.unsynced.synced()), (0.0, 6));
}

#[test]
fn the_backlog_of_relaxed_transactions_is_bounded() {
    let place = Place::new();
    let store = place.open().unwrap();
    let mut most: f64 = 0.0;
    for round in 0..60 {
        let many = (0..5000).map(|row| format!("{row:050}"));
        put_as(&store, many, round, Durability::Relaxed).unwrap();
        most = most.max(gauge(&store, "unsynced_bytes"));
    }
    assert!(most > 0.0 && most <= f64::from(8 << 20), "{most}");
}

#[test]
fn after_a_sync_that_failed_the_journal_is_mended_before_it_is_added_to() {
    let place = Place::new();
    let store = place.open().unwrap();
    put_as(&store, ["ann".to_owned()].into_iter(), 1, Durability::Relaxed).unwrap();
    store.shared.unsynced.fail("on purpose".into());
    put_as(&store, ["bob".to_owned()].into_iter(), 2, Durability::Relaxed).unwrap();
    // The repair flushed the log into the journal file, which is as durable.
    assert_eq!(store.shared.unsynced.failed(), None);
    assert_eq!(store.shared.unsynced.synced(), 1);
    let found = place.killed();
    assert_eq!(players(&found.open().unwrap()), ["ann", "bob"]);
    // Nothing is appended if the repair fails.
    let reader = Connection::open(place.folder.path().join("tally.db.journal-1")).unwrap();
    reader.busy_timeout(Duration::ZERO).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM batches").unwrap();
    store.shared.writer().journal.as_ref().unwrap().connection().busy_timeout(Duration::ZERO).unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 3).unwrap();
    store.shared.unsynced.fail("on purpose".into());
    let refused = put(&store, ["ann".to_owned()].into_iter(), 4);
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(why)) if why.starts_with("on purpose")),
        "{refused:?}"
    );
    reader.execute_batch("COMMIT").unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 5).unwrap();
    assert_eq!(score(&store, "ann"), Some(5));
}

#[test]
fn writers_wait_where_there_is_no_room_and_are_told_why_there_will_be_none() {
    let place = Place::new();
    let options =
        Options { memtable_bytes_max: 1 << 20, busy_wait: Duration::from_millis(10), ..Options::default() };
    let store = SqliteStore::open(&place.path(), &options).unwrap();
    for round in 0..30 {
        put(&store, (0..1000).map(|row| format!("{round} {row}")), round).unwrap();
        assert!(gauge(&store, "unflushed_bytes") < 1.5 * f64::from(1 << 20));
    }
    assert!(gauge(&store, "flushes") > 2.0);
    // The tables cannot be written: what fits is accepted, the rest is refused.
    let shell = Connection::open(place.path()).unwrap();
    store.checkpoint().unwrap();
    // The first write lists its journal file in the tables.
    put(&store, ["ann".to_owned()].into_iter(), 1).unwrap();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut taken = 0;
    let refused = loop {
        match put(&store, (0..1000).map(|row| format!("more {taken} {row}")), 1) {
            Ok(()) => taken += 1,
            Err(refused) => break refused,
        }
    };
    assert!(
        matches!(&refused, StoreError::Unavailable(text) if text.contains("cannot be flushed")),
        "{refused}"
    );
    assert!(taken > 2, "{taken}");
    shell.execute_batch("ROLLBACK").unwrap();
    // The store continues by itself.
    put(&store, ["ann".to_owned()].into_iter(), 1).unwrap_or_else(|_| store.checkpoint().unwrap());
    store.checkpoint().unwrap();
    assert_eq!(store.count_scores(BoardNo(1), Window(0)).unwrap(), (30 + taken) * 1000 + 1);
}
