//! Errors of each operation of the workload, and of each read, once or for a while.

use super::cuts::{Walked, check_images, only_tables};
use super::lines::Failing;
use super::workload::{Run, STEPS, Step};
use super::*;
use tally_testkit::LogLines;
use tally_testkit::disk::{DiskError, DiskFault, Operation};

/// One in this many operations fails; `TALLY_SOAK` makes it all of them.
const STRIDE: u64 = 60;

/// The number of attempts of a store on a disk that works again.
const TRIES: usize = 3;

const KINDS: [DiskError; 3] = [DiskError::Io, DiskError::Full, DiskError::ShortWrite];

#[test]
fn an_error_of_any_operation_is_answered_and_overcome() {
    let mut rng = Rng::of("errors of the disk");
    let injected = walk(&mut rng, STRIDE / soak(), 1).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(injected > 40, "{injected}");
}

/// One in this many reads fails; `TALLY_SOAK` makes it all of them.
const READ_STRIDE: u64 = 60;

#[test]
fn a_read_that_fails_is_answered_and_overcome() {
    let mut rng = Rng::of("reads that fail");
    let whole = SimulatedDisk::new();
    Run::new(Arc::clone(&whole)).all();
    let (reads, stride) = (whole.reads(), (READ_STRIDE / soak()).max(1));
    let mut injected = 0;
    for at in (1 + rng.below(stride)..=reads).step_by(usize::try_from(stride).unwrap()) {
        let disk = SimulatedDisk::new();
        // Every third error lasts for a while.
        let length = if rng.below(3) == 0 { 1 + rng.below(40) } else { 1 };
        let fault = |more| DiskFault::new(at + more, DiskError::Io).of(Operation::Read);
        (0..length).for_each(|more| disk.fail(fault(more)));
        injected +=
            one(&disk, &mut rng, 1).unwrap_or_else(|wrong| panic!("read {at}, {length} times: {wrong}"));
    }
    assert!(injected > 10, "{injected} of {reads}");
}

/// Injects an error at each `stride`-th operation. Returns the number of errors.
pub(super) fn walk(rng: &mut Rng, stride: u64, images: u64) -> Result<u64, String> {
    let stride = usize::try_from(stride.max(1)).unwrap();
    let first = usize::try_from(rng.below(stride as u64)).unwrap();
    at_each(rng, images, &KINDS, &|at, _, _| at % stride == first)
}

/// Injects an error at each operation that `wanted` chooses by its position, its kind and its file.
pub(super) fn at_each(
    rng: &mut Rng,
    images: u64,
    kinds: &[DiskError],
    wanted: &dyn Fn(usize, Operation, &str) -> bool,
) -> Result<u64, String> {
    let whole = SimulatedDisk::new();
    Run::new(Arc::clone(&whole)).all();
    let mut injected = 0;
    for (at, (operation, path)) in whole.history().into_iter().enumerate() {
        if !wanted(at, operation, &path.to_string_lossy()) {
            continue;
        }
        for kind in kinds {
            // Every third error lasts for a while.
            let length = if rng.below(3) == 0 { 1 + rng.below(12) } else { 1 };
            let disk = SimulatedDisk::new();
            (0..length).for_each(|more| disk.fail(DiskFault::new(at as u64 + 1 + more, *kind)));
            injected += one(&disk, rng, images).map_err(|wrong| {
                format!("{kind:?} at {operation:?} {} ({at}), {length} times: {wrong}", path.display())
            })?;
        }
    }
    Ok(injected)
}

fn one(disk: &Arc<SimulatedDisk>, rng: &mut Rng, images: u64) -> Result<u64, String> {
    let lines = LogLines::default();
    tracing::subscriber::with_default(lines.clone(), || one_told(disk, rng, images, &lines))
}

fn one_told(disk: &Arc<SimulatedDisk>, rng: &mut Rng, images: u64, lines: &LogLines) -> Result<u64, String> {
    let mut failing = Failing::default();
    let mut run = Run::new(Arc::clone(disk));
    let (mut before, mut looks) = (0, 0);
    for step in STEPS {
        let failures = run.failures;
        run.step(*step);
        failing.take(lines).map_err(|wrong| format!("after {step:?}: {wrong}"))?;
        let is_told = matches!(step, Step::Work | Step::Settle) && run.store.is_some();
        if is_told && run.failures > failures && failing.is_empty() {
            return Err(format!("{step:?} failed, and the log does not say so"));
        }
        if *step == Step::Reopen {
            // The log lines of another store are separate.
            failing = Failing::default();
        }
        run.check_reads().map_err(|wrong| format!("after {step:?}: {wrong}"))?;
        // A power cut soon after an error shows whether it was repaired.
        looks = if disk.injected() > before { 2 } else { looks };
        before = disk.injected();
        if looks > 0 {
            looks -= 1;
            check_images(&run, rng, images, &mut Walked::default())
                .map_err(|wrong| format!("a power cut after {step:?}: {wrong}"))?;
        }
    }
    disk.heal();
    let store = match run.store.take() {
        Some(store) => store,
        None => open_on(disk).map_err(|error| format!("it does not start: {error}"))?,
    };
    // Other descriptors of a file may still report the same error.
    let mut tries = (0..TRIES).map(|_| put(&store, ["last".to_owned()].into_iter(), 1));
    if !tries.any(|done| done.is_ok()) {
        return Err("it does not go on".into());
    }
    run.answers.check(&store)?;
    store.checkpoint().map_err(|error| format!("it does not settle: {error}"))?;
    failing.take(lines)?;
    if !failing.is_empty() {
        return Err(format!("the log does not say that it is over: {failing:?}"));
    }
    drop(store);
    only_tables(disk)?;
    check_images(&run, rng, images, &mut Walked::default())
        .map_err(|wrong| format!("at the end: {wrong}"))?;
    Ok(disk.injected())
}

/// Each of these kinds of operation fails from the n-th on, for one file of the copy.
#[test]
fn a_backup_that_fails_leaves_no_file() {
    let until = STEPS.iter().position(|step| matches!(step, Step::Backup)).unwrap();
    let back_up = |disk: &Arc<SimulatedDisk>| {
        let mut run = Run::new(Arc::clone(disk));
        STEPS[..=until].iter().for_each(|step| run.step(*step));
        let names = std::fs::read_dir(disk.folder()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("copy.db")).collect::<Vec<_>>()
    };
    let mut failed = 0;
    for (file, kinds) in [
        ("copy.db.new", [Operation::Write, Operation::Sync]),
        ("copy.db.new-wal", [Operation::Write, Operation::Sync]),
        ("copy.db.new-journal", [Operation::Write, Operation::Sync]),
        ("copy.db", [Operation::Rename, Operation::Create]),
    ] {
        for at in (1..=9).chain([20, 30]) {
            let disk = SimulatedDisk::new();
            disk.fail(DiskFault::new(at, DiskError::Io).of(kinds[0]).on(file).lasting());
            disk.fail(DiskFault::new(1, DiskError::Io).of(kinds[1]).on(file).lasting());
            let left = back_up(&disk);
            if disk.injected() > 0 {
                assert_eq!(left, Vec::<std::ffi::OsString>::new(), "{kinds:?} {file} {at}");
                failed += 1;
            }
        }
    }
    assert!(failed > 20, "{failed}");
}
