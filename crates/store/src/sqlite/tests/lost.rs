//! Files that are missing, of another store, or left by an interrupted command: the start reports them, and the operator's
//! remedy works.

use super::*;
use std::fs;

/// A store with rows in the tables, in one journal file, and in the next.
pub(super) fn killed() -> Place {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 1).unwrap();
    store.shared.flushing.flush_now(&store.shared).unwrap();
    for round in 2..=20 {
        put(&store, ["bob".to_owned()].into_iter(), round).unwrap();
    }
    place.killed()
}

pub(super) fn journal_files(place: &Place) -> Vec<PathBuf> {
    let names = place.names().into_iter().filter(|name| name.contains(".journal-"));
    names.map(|name| place.folder.path().join(name)).collect()
}

fn refused(place: &Place) -> String {
    let before = journal_files(place);
    let StoreError::Corrupt(text) = place.open().unwrap_err() else { panic!("another error") };
    assert!(text.contains("`tally repair`"), "{text}");
    // The missing file can still be restored beside the others.
    assert!(before.iter().all(|path| path.exists()), "{before:?}, {:?}", place.names());
    text
}

#[test]
fn a_journal_file_that_is_missing_or_empty_is_noticed() {
    let files = journal_files(&killed()).len();
    assert_eq!(files, 4);
    for file in 0..files {
        for empty in [false, true] {
            let place = killed();
            let path = &journal_files(&place)[file];
            if empty {
                fs::write(path, "").unwrap()
            } else {
                fs::remove_file(path).unwrap()
            }
            if path.to_string_lossy().ends_with("-wal") || !empty {
                let text = refused(&place);
                assert!(text.contains("missing or empty"), "{text}");
            } else {
                place.open().unwrap_err();
            }
        }
    }
    let place = killed();
    journal_files(&place).iter().for_each(|path| fs::remove_file(path).unwrap());
    assert!(refused(&place).contains("missing or empty"));
}

#[test]
fn a_repair_goes_on_with_what_is_sure_to_be_there_and_keeps_the_rest() {
    let place = killed();
    let nothing = repair(&place.path(), &Options::default(), None).unwrap();
    assert_eq!((nothing.wrong, nothing.set_aside), (None, Vec::new()));
    let store = place.open().unwrap();
    assert_eq!((score(&store, "ann"), score(&store, "bob")), (Some(1), Some(20)));
    drop(store);
    let place = killed();
    let log = journal_files(&place).into_iter().find(|path| {
        path.to_string_lossy().ends_with("-wal")
            && fs::metadata(path).unwrap().len() > 0
            && !path.to_string_lossy().contains("journal-1-")
    });
    fs::write(log.unwrap(), "").unwrap();
    refused(&place);
    let repaired = repair(&place.path(), &Options::default(), None).unwrap();
    assert!(repaired.wrong.unwrap().contains("missing or empty"));
    assert_eq!(repaired.set_aside.len(), 2);
    assert!(repaired.set_aside.iter().all(|path| path.exists()));
    for round in 0..2 {
        let store = place.open().unwrap();
        assert_eq!(score(&store, "ann"), Some(1));
        assert_eq!(score(&store, "bob"), (round > 0).then_some(7), "it was in the file that is gone");
        put(&store, ["bob".to_owned()].into_iter(), 7).unwrap();
    }
}

#[test]
fn a_journal_of_another_store_is_not_flushed() {
    let (place, other) = (killed(), killed());
    for (mine, its) in journal_files(&place).iter().zip(journal_files(&other)) {
        fs::copy(its, mine).unwrap();
    }
    assert!(refused(&place).contains("another store"), "{}", refused(&place));
    // The same for a restored store beside the journal of its former state.
    let copy = place.folder.path().join("copy.db");
    let before = killed();
    backup(&before.path(), &copy, &mut |_, _| {}).unwrap();
    let kept: Vec<_> =
        journal_files(&before).into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
    restore(&copy, &before.path(), true, None).unwrap();
    kept.iter().for_each(|(bytes, path)| fs::write(path, bytes).unwrap());
    assert!(refused(&before).contains("another store"));
}

#[test]
fn tables_that_are_older_than_their_journal_are_noticed() {
    let place = Place::new();
    drop(place.open().unwrap());
    let tables = fs::read(place.path()).unwrap();
    let store = place.open().unwrap();
    put(&store, ["ann".to_owned()].into_iter(), 1).unwrap();
    let killed = place.killed();
    fs::write(killed.path(), tables).unwrap();
    fs::remove_file(killed.folder.path().join("tally.db-wal")).unwrap();
    assert!(refused(&killed).contains("do not list it"), "{}", refused(&killed));
}

#[test]
fn an_interrupted_restore_is_refused_by_a_start_and_finished_by_a_restore() {
    let place = killed();
    let copy = place.folder.path().join("copy.db");
    backup(&place.path(), &copy, &mut |_, _| {}).unwrap();
    fs::write(files::restore_mark(&place.path()), "").unwrap();
    journal_files(&place).iter().for_each(|path| fs::remove_file(path).unwrap());
    let rejection = place.open().unwrap_err();
    assert!(
        matches!(&rejection, StoreError::Layout(text) if text.contains("`tally restore`")),
        "{rejection}"
    );
    assert!(matches!(repair(&place.path(), &Options::default(), None), Err(StoreError::Layout(_))));
    // Nothing more can be lost, so the restore needs no force.
    restore(&copy, &place.path(), false, None).unwrap();
    assert_eq!(score(&place.open().unwrap(), "bob"), Some(20));
    assert!(!files::restore_mark(&place.path()).exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_server_is_kept_out_where_the_lock_file_was_removed() {
    let place = Place::new();
    let first = place.open().unwrap();
    fs::remove_file(place.folder.path().join("tally.db.lock")).unwrap();
    let refused = place.open().unwrap_err();
    assert!(matches!(refused, StoreError::Locked(_)), "{refused}");
    put(&first, ["ann".to_owned()].into_iter(), 1).unwrap();
    drop(first);
    assert_eq!(score(&place.open().unwrap(), "ann"), Some(1));
}
