//! A followed copy on the disk that loses power: what a step reported as copied is restored from every image, and a
//! follower goes on from it.

use super::*;
use crate::sqlite::follow::{FollowOptions, Follower, Restorable, RestorePlan};
use std::path::Path;
use tally_testkit::disk::{PowerCut, scratch_folder};

const HOW: FollowOptions =
    FollowOptions { keep: Duration::from_secs(1 << 40), base_every: Duration::from_secs(1 << 40) };

/// The number of transactions, and of those that a step has reported as copied.
#[derive(Default)]
struct Ran {
    written: i64,
    copied: i64,
}

/// Writes and copies, until the disk stops. The folder of the copy is that of the store, which is the disk.
fn run(disk: &Arc<SimulatedDisk>) -> Ran {
    let mut ran = Ran::default();
    let Ok(mut store) = open_on(disk) else { return ran };
    let mut follower = None;
    for no in 1..=24 {
        let durability = if no % 3 == 0 { Durability::Relaxed } else { Durability::Commit };
        if put_as(&store, [format!("{no:04}")].into_iter(), no, durability).is_err() {
            return ran;
        }
        ran.written = no;
        if no % 5 == 0 && store.work().is_err() {
            return ran;
        }
        if no == 13 {
            drop(store);
            let Ok(again) = open_on(disk) else { return ran };
            store = again;
        }
        if follower.is_none() || no == 17 {
            drop(follower.take());
            follower = Follower::start(&options(disk), &path_on(disk), disk.folder(), HOW).ok();
        }
        for _ in 0..4 {
            match follower.as_mut().map(Follower::step) {
                Some(Ok(step)) if step.caught_up => {
                    ran.copied = no;
                    break;
                }
                Some(Ok(_)) => {}
                _ => return ran,
            }
        }
    }
    ran
}

#[test]
fn a_power_cut_anywhere_keeps_what_was_copied() {
    let mut rng = Rng::of("power cuts of a follower");
    let whole = SimulatedDisk::new();
    assert_eq!(run(&whole).copied, 24);
    let stride = usize::try_from((20 / soak()).max(1)).unwrap();
    let (mut images, mut torn) = (0, 0);
    for at in (1 + rng.below(stride as u64)..=whole.operations()).step_by(stride) {
        let disk = SimulatedDisk::new();
        disk.stop_at(at);
        let ran = run(&disk);
        let (scratch, mut checked) = (scratch_folder(), Checked::default());
        for image in 0..4 {
            let place = scratch.path().join(image.to_string());
            let stats = match image {
                0 => disk.image_of(PowerCut::DropAll, &place),
                1 => disk.image_of(PowerCut::KeepAll, &place),
                _ => disk.image(&mut rng, &place),
            };
            images += 1;
            torn += stats.unwrap().torn;
            if checked.is_new(&place) {
                check(&ran, &place, at);
            }
        }
    }
    assert!(images > 100 && torn > 0, "{images}, {torn}");
}

fn check(ran: &Ran, place: &Path, at: u64) {
    let disk = SimulatedDisk::at(place);
    let find = || RestorePlan::find(&options(&disk), disk.folder(), None).unwrap();
    let restored = |plan: &RestorePlan| {
        let new = Place::new();
        let options = Options { background: Background::ByHand, ..Options::default() };
        plan.restore(&options, &new.path(), false, None).unwrap();
        let store = SqliteStore::open(&new.path(), &options).unwrap();
        (1..=ran.written + 1).take_while(|no| score(&store, &format!("{no:04}")) == Some(*no)).count()
    };
    match find() {
        Restorable::Plan(plan) => {
            let found = restored(&plan);
            assert!(found >= usize::try_from(ran.copied).unwrap(), "cut at {at}: {found}, {}", ran.copied);
        }
        Restorable::TooEarly(None) => assert_eq!(ran.copied, 0, "cut at {at}"),
        other => panic!("cut at {at}: {other:?}"),
    }
    // Both go on.
    let store = open_on(&disk).unwrap();
    put(&store, ["later".to_owned()].into_iter(), 1).unwrap();
    let mut follower = Follower::start(&options(&disk), &path_on(&disk), disk.folder(), HOW).unwrap();
    while !follower.step().unwrap().caught_up {}
    let Restorable::Plan(plan) = find() else { panic!("cut at {at}") };
    assert!(restored(&plan) >= usize::try_from(ran.copied).unwrap(), "cut at {at}");
}
