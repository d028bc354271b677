//! Closed periods whose records change afterwards, on a disk that fails at every operation in turn; and forgotten ones that begin
//! anew.
//!
//! Checks a reply against the state. After a success, readers of the closed period see the change or get a retry error.
//! After a failure that says so, nothing was done. Not here: power cuts (`simulation`).

use crate::disk_world::{DAY, MIDNIGHT, World, player};
use tally_rules::contest::{Prize, PrizeTies};
use tally_rules::ledger::{Amount, Currency};
use tally_rules::period::PeriodPrizes;
use tally_rules::{Origin, Rejection};
use tally_service::periods::{prizes, scheduler};
use tally_service::{Failure, Fault, boards};
use tally_store::plan::ALL_TIME;
use tally_store::{Maintenance, Reads, ScoreKey, WindowKey};
use tally_testkit::disk::{DiskError, DiskFault};

/// More background steps than any of these needs.
const LOOKS: usize = 1_000;

/// A change of a period that is closed.
#[derive(Clone, Copy, Debug)]
enum Change {
    Ban,
    Erase,
    Import,
}

impl Change {
    fn run(self, world: &World) -> Result<(), Failure> {
        match self {
            Self::Ban => world.ban("bob", true),
            Self::Erase => world.erase("bob"),
            Self::Import => world.import(1, &[("bob", 9)], (0, 1), true),
        }
    }

    /// The players in the period afterwards, best first.
    fn done(self) -> &'static [(&'static str, i64)] {
        match self {
            Self::Ban | Self::Erase => &[("ann", 3), ("cid", 1)],
            Self::Import => &[("bob", 9), ("ann", 3), ("cid", 1)],
        }
    }
}

/// The players in the closed period at first.
const BEFORE: &[(&str, i64)] = &[("ann", 3), ("bob", 2), ("cid", 1)];

fn named(entries: &[(&str, i64)]) -> Vec<(String, i64)> {
    entries.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect()
}

/// A world with a closed day of three.
fn closed_day() -> World {
    let world = World::new(10 * DAY);
    world.put(MIDNIGHT, 9, PeriodPrizes::default()).unwrap();
    for (name, score) in BEFORE {
        world.submit(name, *score);
    }
    world.advance(DAY);
    world.tally().work().unwrap();
    assert_eq!(world.page("daily:previous").unwrap(), named(BEFORE));
    world
}

/// Whether the change is present, by its records and bans.
fn is_done(world: &World, change: Change) -> bool {
    match change {
        Change::Ban => world.is_banned("bob"),
        Change::Erase => world.record("bob").is_none(),
        Change::Import => world.record("bob") == Some(9),
    }
}

/// One change on a disk that fails from its `nth` operation on; returns whether it reached that operation.
fn try_at(change: Change, nth: u64, is_lasting: bool) -> bool {
    let world = closed_day();
    let fault = DiskFault::new(nth, DiskError::Io);
    world.disk.fail(if is_lasting { fault.lasting() } else { fault });
    let answer = change.run(&world);
    let has_failed = world.disk.injected() > 0;
    let context = format!("{change:?}, {nth}, {is_lasting}: {answer:?}");
    world.disk.heal();
    world.until_lanes_work();
    let there = is_done(&world, change);
    match &answer {
        Ok(()) => {
            assert!(there, "{context}");
            match world.page("daily:previous") {
                Ok(page) => assert_eq!(page, named(change.done()), "{context}"),
                Err(Failure::Fault(Fault::RanksUnavailable(_))) => assert!(has_failed, "{context}"),
                Err(failure) => panic!("{failure}: {context}"),
            }
        }
        Err(Failure::Fault(Fault::OutcomeUnknown(_))) => {}
        Err(_) => assert!(!there, "{context}"),
    }
    // The scheduler ends it, without a start.
    assert!((0..LOOKS).any(|_| world.tally().work().is_ok()), "{context}");
    let wanted = if there { change.done() } else { BEFORE };
    assert_eq!(world.page("daily:previous").unwrap(), named(wanted), "{context}");
    world.stop();
    has_failed
}

#[test]
fn an_answer_is_true_of_closed_periods_whatever_the_disk_does() {
    for change in [Change::Ban, Change::Erase, Change::Import] {
        for is_lasting in [false, true] {
            let failed = (1..).take_while(|nth| try_at(change, *nth, is_lasting)).count();
            assert!(failed > 3, "{change:?} has met {failed} faults");
        }
    }
}

/// The lines of an abandoned import are in the archive of their period all the same.
#[test]
fn the_scheduler_writes_what_an_import_has_left() {
    let world = closed_day();
    world.import(1, &[("bob", 9)], (0, 1), false).unwrap();
    world.tally().work().unwrap();
    assert_eq!(world.page("daily:previous").unwrap(), named(Change::Import.done()));
    assert!(world.store().windows(world.board().no).unwrap().iter().all(|row| !row.stale));
    world.stop();
}

/// A chunk that is committed while the archive of its period is written is in that archive, or the period is still marked.
#[test]
fn a_chunk_that_meets_the_writing_of_its_period_is_not_forgotten() {
    let world = closed_day();
    let crowd: Vec<String> = (0..3_000).map(|nth| format!("p{nth}")).collect();
    let crowd: Vec<(&str, i64)> = crowd.iter().map(|name| (name.as_str(), 1)).collect();
    world.import(1, &crowd, (0, 3_000), true).unwrap();
    for round in 1..=20 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for nth in 0..8 {
                    let line = ("bob", i64::try_from(10 * round + nth).unwrap());
                    world.import(2 * round, &[line], (nth, nth + 1), false).unwrap();
                }
            });
            world.import(2 * round + 1, &[("ann", 4)], (0, 1), true).unwrap();
        });
        let window = world.store().windows(world.board().no).unwrap().remove(0);
        if !window.stale {
            let first = world.page("daily:previous").unwrap().remove(0);
            assert_eq!(Some(first.1), world.record("bob"), "round {round}");
        }
    }
    world.tally().work().unwrap();
    assert_eq!(world.page("daily:previous").unwrap()[0], ("bob".to_owned(), 207));
    world.stop();
}

#[test]
fn prizes_wait_for_a_ranking_that_is_exact() {
    let world = World::new(10 * DAY);
    let (currency, amount) = (Currency::parse("KRW").unwrap(), Amount::new(7).unwrap());
    let table = vec![Prize { from: 1, to: 1, currency, amount }];
    world.put(MIDNIGHT, 9, PeriodPrizes { table, ties: PrizeTies::Split, from: None }).unwrap();
    world.submit("ann", 3);
    world.advance(DAY);
    let tally = world.tally();
    scheduler::close_due(&tally).unwrap();
    world.import(1, &[("bob", 9)], (0, 1), false).unwrap();
    let board = world.board();
    let window = WindowKey { board: board.no, window: board.periods().packed()[0].window };
    let payment = || tally.store.ledger().payment(window).unwrap();
    assert!(matches!(prizes::pay_due(&tally), Err(Failure::Fault(Fault::RanksUnavailable(_)))));
    assert_eq!(payment(), None);
    scheduler::refresh_due(&tally).unwrap();
    prizes::pay_due(&tally).unwrap();
    assert!(payment().is_some());
    drop((board, tally));
    world.stop();
}

/// A schedule that changes needs the number of the present period, which was closed and forgotten by a later time.
#[test]
fn a_schedule_changes_over_what_is_left_of_a_forgotten_period() {
    let world = World::new(10 * DAY);
    world.put(MIDNIGHT, 1, PeriodPrizes::default()).unwrap();
    for _ in 0..2 {
        world.submit("ann", 3);
        world.advance(DAY);
        scheduler::close_due(&world.tally()).unwrap();
    }
    world.advance(-2 * DAY);
    world.put(MIDNIGHT, 2, PeriodPrizes::default()).unwrap();
    world.put("0 12 * * *", 2, PeriodPrizes::default()).unwrap();
    assert_eq!(world.page("daily").unwrap(), []);
    let no = world.board().no;
    let keys: Vec<_> = world
        .board()
        .periods()
        .newest_windows(usize::MAX)
        .iter()
        .map(|window| WindowKey { board: no, window: *window })
        .collect();
    assert_eq!((keys.len(), world.store().unpurged(&keys, 0).unwrap()), (2, Vec::new()));
    world.tally().work().unwrap();
    assert_eq!(world.store().windows(no).unwrap().len(), 2);
    world.stop();
}

/// The batch of the erasure begins the period, so no board knows the period yet.
#[test]
fn an_erasure_takes_out_a_score_of_a_period_that_its_own_batch_begins() {
    let world = World::new(10 * DAY);
    world.put(MIDNIGHT, 9, PeriodPrizes::default()).unwrap();
    world.submit_beside("bob", 3, || world.erase("bob").unwrap()).unwrap();
    let board = world.board();
    let windows = board.periods().newest_windows(usize::MAX);
    assert_eq!(windows.len(), 1);
    let key = |window| ScoreKey { board: board.no, window, player: player("bob") };
    let keys: Vec<_> = std::iter::once(ALL_TIME).chain(windows).map(key).collect();
    assert_eq!(world.store().records(&keys).unwrap(), [None, None]);
    drop(board);
    world.stop();
}

/// Its rows may have been purged by then.
#[test]
fn a_score_of_a_leaderboard_that_is_deleted_meanwhile_begins_no_period() {
    let world = World::new(10 * DAY);
    world.put(MIDNIGHT, 9, PeriodPrizes::default()).unwrap();
    let no = world.board().no;
    let done = world.submit_beside("bob", 3, || {
        boards::delete(&world.tally(), &world.board().id, &Origin::BACKGROUND, None).unwrap();
    });
    assert!(matches!(done, Err(Failure::Rejected(Rejection::LeaderboardNotFound(_)))), "{done:?}");
    assert_eq!(world.store().windows(no).unwrap(), []);
    world.stop();
}
