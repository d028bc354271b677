//! The write-ahead log of the tables, and the settings of connections: synced, bounded, flushed.

use super::*;
use crate::Reads;

fn setting(connection: &Connection, name: &str) -> i64 {
    connection.pragma_query_value(None, name, |row| row.get(0)).unwrap()
}

#[test]
fn every_connection_has_the_settings_that_make_commits_durable() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 7).unwrap();
    let tables = store.shared.tables();
    let writer = store.shared.writer();
    let journal = writer.journal.as_ref().unwrap().connection();
    for connection in [tables.connection(), journal] {
        // 2 is FULL: the log is synced at every commit.
        assert_eq!(setting(connection, "synchronous"), 2);
        assert_eq!(setting(connection, "fullfsync"), 1);
        assert_eq!(setting(connection, "wal_autocheckpoint"), 0);
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }
    let reader = store.shared.readers.lend();
    assert!(reader.execute("DELETE FROM scores", []).is_err(), "readers cannot write");
}

#[test]
fn the_log_of_the_tables_stays_within_its_bound() {
    const BYTES_MAX: u64 = 1 << 20;
    let place = Place::new();
    let options = Options { wal_bytes_max: BYTES_MAX, ..Options::default() };
    let store = SqliteStore::open(&place.path(), &options).unwrap();
    let mut longest = 0;
    for round in 0..100_i64 {
        put(&store, (0..100).map(|row| format!("{:05}", (round * 7919 + row * 104_729) % 20_000)), round)
            .unwrap();
        store.shared.flushing.flush_now(&store.shared).unwrap();
        longest = longest.max(log_bytes(&place));
    }
    // The limit is checked after a commit, so one commit may exceed it.
    let commit_bytes = 200 * 4096;
    assert!(longest <= BYTES_MAX + commit_bytes, "{longest}");
    assert!(gauge(&store, "checkpoints") > 0.0);
}

#[test]
fn a_reader_with_an_old_snapshot_is_waited_for_briefly_and_the_log_recovers() {
    let place = Place::new();
    let options =
        Options { wal_bytes_max: 64 << 10, busy_wait: Duration::from_millis(100), ..Options::default() };
    let store = SqliteStore::open(&place.path(), &options).unwrap();
    let write = |score| put(&store, (0..2000).map(|row| format!("{row:04}")), score);
    write(0).unwrap();
    let mut rounds = 0;
    let mut seen = Vec::new();
    // The writes and flushes happen inside the scan: its snapshot stays, the log grows past its limit, and nothing fails.
    let mut each = |_: PlayerId, record: Record| {
        if rounds < 3 {
            rounds += 1;
            write(rounds).unwrap();
            store.shared.flushing.flush_now(&store.shared).unwrap();
        }
        seen.push(record.score);
    };
    store.scan_scores(BoardNo(1), Window(0), None, usize::MAX, &mut each).unwrap();
    assert_eq!(seen, vec![0; 2000], "a walk reads one moment");
    assert!(gauge(&store, "checkpoints_hindered") > 0.0);
    assert!(log_bytes(&place) > options.wal_bytes_max);
    for score in 4..8 {
        put(&store, (0..10).map(|row| format!("{row:04}")), score).unwrap();
        store.shared.flushing.flush_now(&store.shared).unwrap();
    }
    assert!(gauge(&store, "wal_bytes") <= options.wal_bytes_max as f64);
    assert_eq!(score(&store, "0001"), Some(7));
    assert_eq!(score(&store, "1999"), Some(3));
}

#[test]
fn emptying_the_log_leaves_nothing_that_a_crash_could_bring_back() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, (0..100).map(|row| format!("{row}")), 1).unwrap();
    store.shared.flushing.flush_now(&store.shared).unwrap();
    assert!(log_bytes(&place) > 0);
    store.checkpoint().unwrap();
    assert_eq!(log_bytes(&place), 0);
}

fn log_bytes(place: &Place) -> u64 {
    std::fs::metadata(place.folder.path().join("tally.db-wal")).unwrap().len()
}

/// Past the limit, a write waits for a reader that does not end. Far beyond it, changes wait in the journal instead.
#[test]
fn far_beyond_its_bound_the_log_of_the_tables_does_not_grow() {
    const BYTES_MAX: u64 = 16 << 10;
    let place = Place::new();
    let options = Options {
        wal_bytes_max: BYTES_MAX,
        background: Background::ByHand,
        busy_wait: Duration::ZERO,
        ..Options::default()
    };
    let store = SqliteStore::open(&place.path(), &options).unwrap();
    let write = |score| put(&store, (0..200).map(|row| format!("{row:04}")), score).unwrap();
    write(0);
    store.checkpoint().unwrap();
    let shell = Connection::open(place.path()).unwrap();
    shell.execute_batch("BEGIN; SELECT count(*) FROM scores").unwrap();
    let mut score_now = 0;
    let refused = loop {
        score_now += 1;
        write(score_now);
        match store.work() {
            Ok(()) => assert!(score_now < 200, "it grows for ever"),
            Err(refused) => break refused,
        }
    };
    assert!(
        matches!(&refused, StoreError::Unavailable(why) if why.contains("holds the write-ahead log")),
        "{refused}"
    );
    let length = log_bytes(&place);
    assert!(length > BYTES_MAX, "{length}");
    for _ in 0..5 {
        score_now += 1;
        write(score_now);
        store.work().unwrap_err();
    }
    assert_eq!(log_bytes(&place), length);
    assert_eq!(score(&store, "0001"), Some(score_now), "nothing is lost meanwhile");
    shell.execute_batch("COMMIT").unwrap();
    store.work().unwrap();
    assert!(gauge(&store, "wal_bytes") <= BYTES_MAX as f64 + 200.0 * 4096.0);
}
