//! A followed copy: every instant of a run is a prefix of it, damage and gaps are found, and a power cut at any operation
//! keeps what was copied.

use super::*;
use crate::Reads;
use std::cell::Cell;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_000) };
}

/// A clock that is later at each look.
fn now() -> Micros {
    NOW.set(NOW.get() + 1);
    Micros(NOW.get())
}

const LONG: Duration = Duration::from_secs(1 << 40);

fn options() -> Options {
    Options { background: Background::ByHand, busy_wait: Duration::ZERO, now, ..Options::default() }
}

fn open(place: &Place) -> SqliteStore {
    SqliteStore::open(&place.path(), &options()).unwrap()
}

fn copy_of(place: &Place) -> PathBuf {
    place.folder.path().join("follow")
}

fn follower(place: &Place, base_every: Duration) -> Follower {
    let how = FollowOptions { keep: LONG, base_every };
    Follower::start(&options(), &place.path(), &copy_of(place), how).unwrap()
}

/// Steps until the copy has everything. Returns what happened.
fn catch_up(follower: &mut Follower) -> Vec<FollowEvent> {
    let mut events = Vec::new();
    for _ in 0..20 {
        let step = follower.step().unwrap();
        events.extend(step.events);
        if step.caught_up {
            return events;
        }
    }
    panic!("it does not catch up: {events:?}");
}

fn write(store: &SqliteStore, no: i64) -> Micros {
    put(store, [name(no)].into_iter(), no).unwrap();
    Micros(NOW.get())
}

fn name(no: i64) -> String {
    format!("{no:04}")
}

fn plan(copy: &Path, at: Option<Micros>) -> RestorePlan {
    match RestorePlan::find(&options(), copy, at).unwrap() {
        Restorable::Plan(plan) => plan,
        other => panic!("{at:?}: {other:?}"),
    }
}

fn restored(plan: &RestorePlan) -> (Place, SqliteStore) {
    let place = Place::new();
    plan.restore(&options(), &place.path(), false, None).unwrap();
    let store = open(&place);
    (place, store)
}

fn players(store: &SqliteStore) -> Vec<String> {
    let mut names = Vec::new();
    let mut each = |player: PlayerId, _| names.push(player.as_str().to_owned());
    store.scan_scores(BoardNo(1), Window(0), None, usize::MAX, &mut each).unwrap();
    names
}

#[test]
fn every_instant_of_a_run_is_a_prefix_of_it() {
    let place = Place::new();
    let mut store = open(&place);
    let mut at = vec![Micros(0)];
    let mut following = None;
    let mut bases = 0;
    for no in 1..=60 {
        at.push(write(&store, no));
        if no % 7 == 0 {
            store.set_meta("value", name(no).as_bytes()).unwrap();
        }
        if no % 5 == 0 {
            store.work().unwrap();
        }
        if no == 30 {
            // The last batches are read from files that a stop has deleted.
            drop(store);
            store = open(&place);
        }
        if no >= 4 && no % 3 == 0 {
            let follower = following.get_or_insert_with(|| follower(&place, Duration::from_micros(30)));
            let events = catch_up(follower);
            assert_eq!(
                events.contains(&FollowEvent::Gap("there is no base yet".into())),
                no == 6,
                "{events:?}"
            );
            assert_eq!(
                events.iter().filter(|event| matches!(event, FollowEvent::Gap(_))).count(),
                usize::from(no == 6)
            );
            bases += events.iter().filter(|event| matches!(event, FollowEvent::Base { .. })).count();
        }
        if no == 43 {
            // The follower was away, and the journal still has what it lacks.
            following = Some(follower_again(&place, following.take()));
        }
    }
    assert!(bases > 2, "{bases}");
    for no in 7..=60_i64 {
        let plan = plan(&copy_of(&place), Some(at[usize::try_from(no).unwrap()]));
        let (_place, store) = restored(&plan);
        assert_eq!(players(&store), (1..=no).map(name).collect::<Vec<_>>(), "{plan:?}");
        assert_eq!(plan.left_out, 60 - u64::try_from(no).unwrap());
        // The copy has this value from the next step on.
        let value = store.meta("value").unwrap().map(|value| String::from_utf8(value).unwrap());
        assert!(value <= Some(name(no)) && (no < 13 || value.is_some()), "{no}: {value:?}");
    }
    let newest = plan(&copy_of(&place), None);
    assert_eq!((newest.reached, newest.left_out, newest.next), (at[60], 0, None));
    assert_eq!(restored(&newest).1.meta("value").unwrap(), Some(name(56).into_bytes()));
    let early = RestorePlan::find(&options(), &copy_of(&place), Some(at[3])).unwrap();
    assert!(matches!(early, Restorable::TooEarly(Some(first)) if first > at[6]), "{early:?}");
}

fn follower_again(place: &Place, old: Option<Follower>) -> Follower {
    drop(old);
    follower(place, Duration::from_micros(30))
}

#[test]
fn a_gap_is_found_and_begins_a_new_base() {
    let place = Place::new();
    let store = open(&place);
    write(&store, 1);
    let mut first = follower(&place, LONG);
    catch_up(&mut first);
    let until = write(&store, 2);
    catch_up(&mut first);
    let taken = Follower::start(
        &options(),
        &place.path(),
        &copy_of(&place),
        FollowOptions { keep: LONG, base_every: LONG },
    );
    assert!(matches!(taken, Err(StoreError::Locked(_))));
    drop(first);
    let lost = write(&store, 3);
    store.checkpoint().unwrap();
    let mut second = follower(&place, LONG);
    let events = catch_up(&mut second);
    assert!(events.contains(&FollowEvent::Gap("batch 3 is gone".into())), "{events:?}");
    let later = write(&store, 4);
    catch_up(&mut second);
    let of_gap = plan(&copy_of(&place), Some(lost));
    assert_eq!((of_gap.reached, of_gap.next), (until, None));
    assert!(of_gap.gap_until.is_some_and(|from| from > lost && from < later));
    assert_eq!(players(&restored(&of_gap).1), [name(1), name(2)]);
    assert_eq!(players(&restored(&plan(&copy_of(&place), Some(later))).1).len(), 4);
    // A store that was replaced by an older one has other batches with the same numbers.
    drop(store);
    restore_again(&place, &of_gap);
    let events = catch_up(&mut second);
    assert!(
        events.iter().any(|event| matches!(event, FollowEvent::Gap(why) if why.contains("another"))),
        "{events:?}"
    );
    assert_eq!(players(&restored(&plan(&copy_of(&place), None)).1), [name(1), name(2)]);
}

fn restore_again(place: &Place, plan: &RestorePlan) {
    let taken = plan.restore(&options(), &place.path(), false, None).unwrap_err();
    assert!(matches!(taken, StoreError::Row(_)), "{taken}");
    plan.restore(&options(), &place.path(), true, None).unwrap();
}

#[test]
fn a_damaged_or_missing_file_is_found() {
    let place = Place::new();
    let store = open(&place);
    write(&store, 1);
    let mut follower = follower(&place, LONG);
    catch_up(&mut follower);
    let at: Vec<_> = (2..40)
        .map(|no| {
            let at = write(&store, no);
            catch_up(&mut follower);
            at
        })
        .collect();
    drop(follower);
    let copy = copy_of(&place);
    plan(&copy, None);
    let mut checked = 0;
    for entry in std::fs::read_dir(&copy).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "lock" {
            continue;
        }
        let whole = std::fs::read(&path).unwrap();
        let find = |bytes: Option<&[u8]>| {
            match bytes {
                Some(bytes) => std::fs::write(&path, bytes).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            RestorePlan::find(&options(), &copy, None).unwrap()
        };
        let missing = find(None);
        assert!(!matches!(missing, Restorable::Plan(_)), "{name}: {missing:?}");
        for byte in (0..whole.len()).step_by(whole.len() / 40 + 1).filter(|_| !name.starts_with("head")) {
            let mut bytes = whole.clone();
            bytes[byte] ^= 4;
            let found = find(Some(&bytes));
            assert!(matches!(found, Restorable::Damaged { .. }), "{name} at {byte}: {found:?}");
            checked += 1;
        }
        let cut = find(Some(&whole[..whole.len() / 2]));
        if name.starts_with("frames") {
            let Restorable::Damaged { until: Some(until), .. } = cut else { panic!("{cut:?}") };
            // What was before the damage can still be had.
            let plan = plan(&copy, Some(until));
            assert!(at.contains(&until) && plan.reached == until, "{until:?}");
        } else if !name.starts_with("head") {
            assert!(matches!(cut, Restorable::Damaged { .. }), "{name}: {cut:?}");
        }
        std::fs::write(&path, &whole).unwrap();
    }
    assert!(checked > 60, "{checked}");
}

/// A number of a deleted window is used again after its purge, which the journal does not have.
#[test]
fn a_window_that_is_used_again_keeps_its_new_rows() {
    let place = Place::new();
    let store = open(&place);
    let mut follower = follower(&place, LONG);
    catch_up(&mut follower);
    let window = crate::WindowKey { board: BoardNo(9), window: Window(6) };
    let row = |player: &str| {
        let player = PlayerId::new(player).unwrap();
        ScoreKey { board: window.board, window: window.window, player }
    };
    let record = Record { score: 1, subscore: 0, at: Micros(0) };
    let write =
        |changes: WriteSet| store.run(&ReadSet::default(), &mut |_| changes.clone()).map(drop).unwrap();
    write(WriteSet { scores: vec![(row("old"), Some(record))], ..WriteSet::default() });
    catch_up(&mut follower);
    write(WriteSet { garbage: vec![crate::Garbage::Window(window)], ..WriteSet::default() });
    assert!(store.purge_deleted(100).unwrap() > 0);
    write(WriteSet { scores: vec![(row("new"), Some(record))], ..WriteSet::default() });
    assert_eq!(catch_up(&mut follower), [], "no new base");
    let (_place, store) = restored(&plan(&copy_of(&place), None));
    store.purge_deleted(100).unwrap();
    assert_eq!(store.records(&[row("old"), row("new")]).unwrap(), [None, Some(record)]);
}

#[test]
fn old_files_are_removed_and_every_instant_that_is_kept_stays() {
    let place = Place::new();
    let store = open(&place);
    let how = FollowOptions { keep: Duration::from_micros(150), base_every: Duration::from_micros(40) };
    let mut follower = Follower::start(&options(), &place.path(), &copy_of(&place), how).unwrap();
    let mut at = Vec::new();
    let mut removed = 0;
    for no in 1..=200 {
        at.push(write(&store, no));
        let events = catch_up(&mut follower);
        removed += events.iter().filter(|event| matches!(event, FollowEvent::Removed(_))).count();
    }
    assert!(removed > 3, "{removed}");
    let from = Micros(NOW.get() - 150);
    let kept: Vec<_> = (1..).zip(&at).filter(|(_, at)| **at >= from).collect();
    assert!(kept.len() > 20 && kept.len() < 190, "{}", kept.len());
    for (no, at) in kept.into_iter().step_by(7) {
        assert_eq!(players(&restored(&plan(&copy_of(&place), Some(*at))).1).len(), no);
    }
    assert!(std::fs::read_dir(copy_of(&place)).unwrap().count() < 24, "the folder has a bound");
}

/// Files of archives are there before the frames that name them.
#[test]
fn files_of_archives_are_copied_and_unfinished_ones_are_not() {
    let place = Place::new();
    let store = open(&place);
    let archive = place.folder.path().join("archive");
    std::fs::create_dir(&archive).unwrap();
    std::fs::write(archive.join("2026-01"), "old").unwrap();
    write(&store, 1);
    let mut follower = follower(&place, LONG);
    catch_up(&mut follower);
    std::fs::write(archive.join("2026-02"), "ne").unwrap();
    std::fs::write(archive.join("2026-03.part"), "unfinished").unwrap();
    write(&store, 2);
    catch_up(&mut follower);
    std::fs::write(archive.join("2026-02"), "new").unwrap();
    write(&store, 3);
    catch_up(&mut follower);
    let read = |name: &str| std::fs::read_to_string(copy_of(&place).join("archive").join(name)).ok();
    let copied = ["2026-01", "2026-02", "2026-03.part"].map(read);
    assert_eq!(copied, [Some("old".into()), Some("new".into()), None]);
}
