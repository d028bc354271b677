//! The write-ahead log: synced at every commit, bounded, folded.

use super::*;

#[test]
fn every_connection_has_the_settings_that_make_commits_durable() {
    let store_at = Place::new();
    let store = store_at.open().unwrap();
    let writer = store.writer();
    let setting = |name: &str| -> i64 { writer.pragma_query_value(None, name, |row| row.get(0)).unwrap() };
    // 2 is FULL: the log is synced at every commit.
    assert_eq!(setting("synchronous"), 2);
    assert_eq!(setting("fullfsync"), 1);
    assert_eq!(setting("wal_autocheckpoint"), 0);
    let mode: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    drop(writer);
    let reader = store.readers.lend();
    assert!(reader.execute("DELETE FROM scores", []).is_err(), "readers cannot write");
}

fn log_bytes(place: &Place) -> u64 {
    std::fs::metadata(place.folder.path().join("tally.db-wal")).unwrap().len()
}

fn gauge(store: &SqliteStore, name: &str) -> f64 {
    store.gauges().into_iter().find(|(gauge, _)| *gauge == name).unwrap().1
}

#[test]
fn a_busy_writers_log_stays_within_its_bound() {
    const BYTES_MAX: u64 = 1 << 20;
    let place = Place::new();
    let options = Options { wal_bytes_max: BYTES_MAX, ..Options::default() };
    let store = SqliteStore::open(&place.path(), &options).unwrap();
    let mut longest = 0;
    for round in 0..400_i64 {
        put(&store, (0..20).map(|row| format!("{:05}", (round * 7919 + row * 104_729) % 20_000)), round)
            .unwrap();
        longest = longest.max(log_bytes(&place));
    }
    // The bound is looked at after a commit, so one commit may stand above it.
    let commit_bytes = 40 * 4096;
    assert!(longest <= BYTES_MAX + commit_bytes, "{longest}");
    assert!(longest >= BYTES_MAX / 4, "{longest}: folded all the time");
    let folds = gauge(&store, "checkpoints_by_thread") + gauge(&store, "checkpoints_by_writer");
    assert!(folds + gauge(&store, "checkpoints_forced") > 0.0);
}

#[test]
fn a_reader_with_an_old_snapshot_is_waited_for_briefly_and_the_log_recovers() {
    let place = Place::new();
    let options = Options { wal_bytes_max: 64 << 10, ..Options::default() };
    let store = SqliteStore::open(&place.path(), &options).unwrap();
    put(&store, (0..2000).map(|row| format!("{row:04}")), 0).unwrap();
    let mut rounds = 0;
    let mut seen = Vec::new();
    // The writes happen inside the walk: its snapshot stays, the log grows past its bound, and no write fails.
    let mut each = |_: PlayerId, record: Record| {
        if rounds < 3 {
            rounds += 1;
            put(&store, (0..2000).map(|row| format!("{row:04}")), rounds).unwrap();
        }
        seen.push(record.score);
    };
    store.walk_scores(BoardNo(1), Part(0), None, usize::MAX, &mut each).unwrap();
    assert_eq!(seen, vec![0; 2000], "a walk reads one moment");
    assert!(gauge(&store, "checkpoints_hindered") > 0.0);
    assert!(log_bytes(&place) > options.wal_bytes_max);
    for score in 4..8 {
        put(&store, (0..10).map(|row| format!("{row:04}")), score).unwrap();
    }
    assert!(log_bytes(&place) <= options.wal_bytes_max, "{}", log_bytes(&place));
    assert_eq!(score(&store, "0001"), Some(7));
    assert_eq!(score(&store, "1999"), Some(3));
}

#[test]
fn emptying_the_log_leaves_nothing_that_a_crash_could_bring_back() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, (0..100).map(|row| format!("{row}")), 1).unwrap();
    assert!(log_bytes(&place) > 0);
    assert!(store.checkpoints.empty_log());
    assert_eq!(log_bytes(&place), 0);
}
