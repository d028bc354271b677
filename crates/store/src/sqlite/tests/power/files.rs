//! Power cuts while the files of a store are replaced: by a restore, and by a migration.

use super::cuts::only_tables;
use super::*;
use crate::Reads;
use std::path::Path;
use tally_testkit::disk::{PowerCut, scratch_folder};

/// Files of schema 9, as a killed server left them.
const OLD: [&str; 3] = ["", ".journal-1", ".journal-1-wal"];

/// Cuts the power at every operation of `work` on a disk with the files of `from`; `check` checks each image, whatever the cut.
fn cut(from: &Path, work: &dyn Fn(&Arc<SimulatedDisk>), check: &dyn Fn(&Arc<SimulatedDisk>, u64)) -> u64 {
    let scratch = scratch_folder();
    let mut rng = Rng::of("power cuts while files are replaced");
    let copy = |to: &Path| {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    let (mut at, mut checked) = (1, Checked::default());
    loop {
        let place = scratch.path().join("live");
        copy(&place);
        let disk = SimulatedDisk::at(&place);
        disk.stop_at(at);
        work(&disk);
        let ended = !disk.stopped();
        for image in 0..4 {
            let place = scratch.path().join("image");
            let stats = match image {
                0 => disk.image_of(PowerCut::DropAll, &place),
                1 => disk.image_of(PowerCut::KeepAll, &place),
                _ => disk.image(&mut rng, &place),
            };
            stats.unwrap();
            if checked.is_new(&place) {
                check(&SimulatedDisk::at(&place), at);
            }
            std::fs::remove_dir_all(&place).unwrap();
        }
        drop(disk);
        std::fs::remove_dir_all(&place).unwrap();
        if ended {
            return at;
        }
        at += 1;
    }
}

#[test]
fn a_restore_that_is_cut_leaves_the_old_store_the_new_one_or_a_refusal() {
    cut_a_restore();
}

pub(super) fn cut_a_restore() {
    let from = Place::new();
    put(&from.open().unwrap(), ["new".to_owned()].into_iter(), 1).unwrap();
    let old = Place::new();
    backup(&from.path(), &old.folder.path().join("copy.db"), &mut |_, _| {}).unwrap();
    let store = old.open().unwrap();
    put(&store, ["old".to_owned()].into_iter(), 1).unwrap();
    let old = old.killed();
    let seen = std::cell::Cell::new([0; 3]);
    let copy_of = |disk: &SimulatedDisk| disk.folder().join("copy.db");
    let work = |disk: &Arc<SimulatedDisk>| {
        let _cut = restore_on(&options(disk), (&copy_of(disk), &path_on(disk)), true, None);
    };
    let check = |disk: &Arc<SimulatedDisk>, at: u64| {
        let mut counts = seen.get();
        let store = match open_on(disk) {
            Ok(store) => store,
            Err(StoreError::Layout(_)) => {
                counts[2] += 1;
                restore_on(&options(disk), (&copy_of(disk), &path_on(disk)), false, None).unwrap();
                open_on(disk).unwrap()
            }
            Err(other) => panic!("cut at {at}: {other}"),
        };
        match (score(&store, "old"), score(&store, "new")) {
            (Some(1), None) => counts[0] += 1,
            (None, Some(1)) => counts[1] += 1,
            other => panic!("cut at {at}: {other:?}"),
        }
        seen.set(counts);
        drop(store);
        only_tables(disk).unwrap();
    };
    let operations = cut(old.folder.path(), &work, &check);
    assert!(operations > 10 && seen.get().iter().all(|count| *count > 0), "{operations}, {:?}", seen.get());
}

#[test]
fn a_migration_that_is_cut_loses_nothing() {
    let old = Place::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v9.db");
    for more in OLD {
        let from = format!("{}{more}", fixture.display());
        std::fs::copy(from, format!("{}{more}", old.path().display())).unwrap();
    }
    let work = |disk: &Arc<SimulatedDisk>| {
        if let Ok(store) = open_on(disk) {
            let _cut = put(&store, ["later".to_owned()].into_iter(), 1);
        }
    };
    let check = |disk: &Arc<SimulatedDisk>, at: u64| {
        let store = open_on(disk).unwrap_or_else(|error| panic!("cut at {at}: {error}"));
        assert_eq!(score(&store, "ann"), Some(i64::MAX), "cut at {at}");
        let bans = store.bans(BoardNo(1)).unwrap();
        assert_eq!(bans.len(), 1, "cut at {at}: of the journal");
        put(&store, ["more".to_owned()].into_iter(), 1).unwrap();
    };
    assert!(cut(old.folder.path(), &work, &check) > 50);
}
