//! Backups beside a store that is written and flushed continuously, and restoring them.

use super::*;
use crate::Reads;
use std::sync::atomic::AtomicBool;

fn copy_of(place: &Place) -> PathBuf {
    place.folder.path().join("copy.db")
}

fn back_up(place: &Place, to: &Path) -> Copied {
    backup(&place.path(), to, &mut |done, total| assert!(done <= total)).unwrap()
}

/// Every transaction gives all players one score. A copy with two scores has half of a transaction; a copy with a lower
/// score than acknowledged lost one.
#[test]
fn a_copy_is_one_moment_and_has_what_was_acknowledged_before() {
    const PLAYERS: usize = 50;
    let place = Place::new();
    let store = place.open().unwrap();
    let write = |round| put(&store, (0..PLAYERS).map(|row| format!("{row}")), round).unwrap();
    write(1);
    let acknowledged = std::sync::atomic::AtomicI64::new(1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        scope.spawn(|| {
            for round in 2.. {
                write(round);
                acknowledged.store(round, Ordering::SeqCst);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                store.shared.flushing.flush_now(&store.shared).unwrap();
            }
        });
        for round in 0..12 {
            let copy = place.folder.path().join(format!("copy-{round}.db"));
            let before = acknowledged.load(Ordering::SeqCst);
            let copied = back_up(&place, &copy);
            assert_eq!(copied.records as usize, PLAYERS);
            let copy = SqliteStore::open(&copy, &Options::default()).unwrap();
            let seen = score(&copy, "0").unwrap();
            assert!(seen >= before, "{seen} is older than {before}");
            for row in 0..PLAYERS {
                assert_eq!(score(&copy, &format!("{row}")), Some(seen), "half of a transaction");
            }
        }
    });
}

#[test]
fn a_copy_is_one_file_and_brings_everything_back() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 1).unwrap();
    store.checkpoint().unwrap();
    put(&store, ["bob".to_owned()].into_iter(), 2).unwrap();
    store.set_meta("a", b"b").unwrap();
    let copied = back_up(&place, &copy_of(&place));
    assert_eq!((copied.records, copied.boards), (2, 0));
    let beside = |name: &str| place.names().into_iter().filter(|other| other.starts_with(name)).count();
    assert_eq!(beside("copy.db"), 1, "{:?}", place.names());
    // A killed store gives the same copy.
    let killed = place.killed();
    std::fs::remove_file(copy_of(&killed)).unwrap();
    assert_eq!(back_up(&killed, &copy_of(&killed)), copied);
    for copy in [copy_of(&place), copy_of(&killed)] {
        let new = Place::new();
        assert_eq!(restore(&copy, &new.path(), false, None).unwrap(), copied);
        let store = new.open().unwrap();
        assert_eq!((score(&store, "ann"), score(&store, "bob")), (Some(1), Some(2)));
        assert_eq!(store.meta("a").unwrap().as_deref(), Some(&b"b"[..]));
    }
}

#[test]
fn a_restore_replaces_only_what_it_is_told_to_and_nothing_in_use() {
    let from = Place::new();
    put(&from.open().unwrap(), ["ann".to_owned()].into_iter(), 1).unwrap();
    back_up(&from, &copy_of(&from));
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, ["bob".to_owned()].into_iter(), 2).unwrap();
    let refused = restore(&copy_of(&from), &place.path(), true, None).unwrap_err();
    assert!(matches!(refused, StoreError::Locked(_)), "{refused}");
    assert_eq!(score(&store, "bob"), Some(2));
    // A killed store with a journal, which must not be used with the tables of another store.
    let killed = place.killed();
    let refused = restore(&copy_of(&from), &killed.path(), false, None).unwrap_err();
    assert!(matches!(&refused, StoreError::Row(text) if text.contains("already")), "{refused}");
    restore(&copy_of(&from), &killed.path(), true, None).unwrap();
    let restored = killed.open().unwrap();
    assert_eq!((score(&restored, "ann"), score(&restored, "bob")), (Some(1), None));
}

#[test]
fn what_is_no_sound_copy_is_refused_untouched() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, (0..3000).map(|row| format!("{row}")), 1).unwrap();
    back_up(&place, &copy_of(&place));
    let again = backup(&place.path(), &copy_of(&place), &mut |_, _| {});
    assert!(matches!(&again, Err(StoreError::Row(text)) if text.contains("there already")), "{again:?}");
    let none = backup(&place.folder.path().join("none.db"), &place.folder.path().join("x"), &mut |_, _| {});
    assert!(matches!(&none, Err(StoreError::Unavailable(_))), "{none:?}");
    let new = Place::new();
    let refused = |change: &dyn Fn(&Path)| {
        let bad = new.folder.path().join("bad.db");
        std::fs::copy(copy_of(&place), &bad).unwrap();
        change(&bad);
        let before = new.files();
        let refused = restore(&bad, &new.path(), false, None).unwrap_err();
        assert!(before == new.files(), "{:?}", new.names());
        std::fs::remove_file(&bad).unwrap();
        refused
    };
    let later = migrate::version(migrate::MIGRATIONS) + 1;
    let newer = refused(&|path| {
        Connection::open(path).unwrap().pragma_update(None, "user_version", later).unwrap();
    });
    assert_eq!(newer, StoreError::TooNew { found: later, known: later - 1 });
    let torn = refused(&|path| {
        let mut bytes = std::fs::read(path).unwrap();
        let length = bytes.len();
        bytes[length / 2..length / 2 + 9000].fill(0xab);
        std::fs::write(path, bytes).unwrap();
    });
    assert!(matches!(torn, StoreError::Corrupt(_)), "{torn}");
    let text = refused(&|path| std::fs::write(path, "player,score\n".repeat(50)).unwrap());
    assert!(matches!(text, StoreError::NotOurs(_)), "{text}");
}
