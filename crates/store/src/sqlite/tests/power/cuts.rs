//! Power cuts at each operation of the workload.

use super::workload::Run;
use super::*;
use std::path::Path;
use tally_testkit::disk::{PowerCut, scratch_folder};

/// The test cuts the power at one in this many operations; `TALLY_SOAK` makes it all of them.
const STRIDE: u64 = 12;

/// The number of random images for each cut, beside the one that lost everything and the one that lost nothing.
const IMAGES: u64 = 3;

#[test]
fn a_power_cut_anywhere_loses_nothing_acknowledged_and_brings_nothing_refused() {
    let mut rng = Rng::of("power cuts");
    let found = walk(&mut rng, STRIDE / soak(), IMAGES).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(found.cuts > 60 && found.lost > 0, "{found:?}");
}

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct Walked {
    cuts: u64,
    images: u64,
    /// Images that lack something that was not promised: the proof that a cut loses what it may.
    lost: u64,
}

/// Cuts the power at each `stride`-th operation.
pub(super) fn walk(rng: &mut Rng, stride: u64, images: u64) -> Result<Walked, String> {
    let whole = SimulatedDisk::new();
    let mut run = Run::new(Arc::clone(&whole));
    run.all();
    assert_eq!((run.failures, run.answers.unknown()), (0, 0));
    drop(run.store.take());
    check_bypass(&whole);
    let mut walked = Walked::default();
    let stride = usize::try_from(stride.max(1)).unwrap();
    for at in (1 + rng.below(stride as u64)..=whole.operations()).step_by(stride) {
        let disk = SimulatedDisk::new();
        disk.stop_at(at);
        let mut run = Run::new(Arc::clone(&disk));
        run.all();
        drop(run.store.take());
        walked.cuts += 1;
        check_images(&run, rng, images, &mut walked).map_err(|wrong| {
            let history = disk.history();
            let from = history.len().min(usize::try_from(at).unwrap()).saturating_sub(6);
            let to = history.len().min(from + 8);
            format!("power cut at operation {at}: {wrong}\nthe last operations: {:?}", &history[from..to])
        })?;
    }
    Ok(walked)
}

/// Checks that every image of the present disk has what was promised, and that the store continues there.
pub(super) fn check_images(run: &Run, rng: &mut Rng, images: u64, walked: &mut Walked) -> Result<(), String> {
    let scratch = scratch_folder();
    let mut checked = Checked::default();
    for image in 0..images + 2 {
        let place = scratch.path().join(image.to_string());
        let stats = match image {
            0 => run.disk.image_of(PowerCut::DropAll, &place),
            1 => run.disk.image_of(PowerCut::KeepAll, &place),
            _ => run.disk.image(rng, &place),
        };
        let stats = stats.unwrap();
        walked.images += 1;
        walked.lost += u64::from(stats.dropped + stats.torn > 0);
        if checked.is_new(&place) {
            check_image(run, &place).map_err(|wrong| format!("image {image}, {stats:?}: {wrong}"))?;
        }
        std::fs::remove_dir_all(&place).unwrap();
    }
    Ok(())
}

fn check_image(run: &Run, place: &Path) -> Result<(), String> {
    let disk = SimulatedDisk::at(place);
    let store = open_on(&disk).map_err(|error| format!("it does not start: {error}"))?;
    run.answers.check(&store)?;
    put(&store, ["later".to_owned()].into_iter(), 1)
        .map_err(|error| format!("it does not go on: {error}"))?;
    drop(store);
    only_tables(&disk)?;
    let store = open_on(&disk).map_err(|error| format!("it does not start again: {error}"))?;
    run.answers.check(&store)?;
    assert_eq!(score(&store, "later"), Some(1));
    drop(store);
    let copy = place.join("copy.db");
    if copy.exists() {
        let store =
            SqliteStore::open(&copy, &options(&disk)).map_err(|error| format!("the copy: {error}"))?;
        run.answers.check_copy(&store).map_err(|wrong| format!("the copy: {wrong}"))?;
    }
    Ok(())
}

/// Checks that a stopped store has only tables.
pub(super) fn only_tables(disk: &SimulatedDisk) -> Result<(), String> {
    let names = std::fs::read_dir(disk.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".journal-")).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("files are left over: {left:?}")) }
}

/// Checks that only the lock file is written without the simulated disk.
pub(super) fn check_bypass(disk: &SimulatedDisk) {
    let mut past = disk.unrecorded().unwrap();
    past.retain(|path| !path.to_string_lossy().ends_with(".lock"));
    assert!(past.is_empty(), "{past:?}");
}
