//! The effect of a clock that jumps on periods: scores follow the clock, and nothing is closed before the clock is trusted.

use crate::intercepted::Intercepted;
use crate::world::{DAY, World, board, idempotency, rule};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_ranking::PageQuery;
use tally_rules::clock::ClockBounds;
use tally_rules::contest::{Prize, PrizeTies};
use tally_rules::definition::{BoardSpec, Update};
use tally_rules::instant::SECOND;
use tally_rules::ledger::{Amount, Currency};
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::score::ScoreInput;
use tally_rules::{Micros, Origin};
use tally_service::periods::scheduler;
use tally_service::periods::view::list;
use tally_service::scores::submit::{NewScore, submit};
use tally_service::secret::Secret;
use tally_service::{Background, Clock, Failure, Fault, Keys, Progress, Settings, Tally, boards};
use tally_store::sqlite::{Options, SqliteStore};
use tally_testkit::LogLines;
use tracing::Level;

const HOUR: i64 = 3_600 * SECOND;
/// A wrong reading of the clock is this far ahead.
const AHEAD: i64 = 25 * HOUR;

/// A wall clock that jumps.
#[derive(Default)]
struct Wall(Arc<AtomicI64>);

impl Wall {
    fn jump(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

fn daily(clock: &Wall, boot: bool) -> World {
    let world = World::with_ahead(10 * DAY + HOUR, 1, &clock.0, boot);
    let periods = Some(vec![rule("daily", "0 0 * * *", "UTC", 9, 0)]);
    world.put(&BoardSpec { periods, update: Some(Update::Sum), ..BoardSpec::default() }).unwrap();
    world
}

fn send(world: &World, name: &str, score: i64) {
    let (_, done) = world.wait(submit(&world.tally(), world.score(name, ScoreInput::Int(score)))).unwrap();
    assert_eq!(done.closed_periods, Vec::<String>::new());
}

/// Players of a period, best first.
fn names(world: &World, period: &str) -> Vec<String> {
    let query = PageQuery { limit: 100, ..PageQuery::default() };
    let page = world.view(period).unwrap().read(&*world.tally().store, |order| order.page(&query)).unwrap();
    page.entries.iter().map(|place| place.player.as_str().to_owned()).collect()
}

/// Closes what is due, and returns the closed days.
fn closed(world: &World) -> Vec<i64> {
    scheduler::close_due(&world.tally()).unwrap();
    let listed = list(&world.tally().boards.get(&board()).unwrap(), world.now());
    let blocks = listed.iter().filter(|one| world.view(&one.period).unwrap().blocks());
    blocks.map(|one| one.start.0 / DAY).collect()
}

#[test]
fn one_wrong_reading_harms_no_period() {
    let clock = Wall::default();
    let world = daily(&clock, false);
    send(&world, "ann", 9);
    clock.jump(AHEAD);
    send(&world, "early", 1);
    assert_eq!(closed(&world), [] as [i64; 0], "nothing is closed by a clock in doubt");
    assert_eq!(world.tally().clock_jump(), Some(AHEAD));
    clock.jump(-AHEAD);
    assert_eq!(closed(&world), [] as [i64; 0]);
    assert_eq!(world.tally().clock_jump(), None, "the jump was undone");
    world.stop();
    world.start();
    assert!(world.tally().newest_ahead() > 24 * HOUR);
    // Later ones of the same score come behind.
    send(&world, "dee", 3);
    send(&world, "bob", 3);
    send(&world, "cid", 3);
    assert_eq!(names(&world, "daily"), ["ann", "dee", "bob", "cid"]);
    assert_eq!(closed(&world), [] as [i64; 0]);
    world.advance(DAY);
    assert_eq!(closed(&world), [10]);
    assert_eq!(names(&world, "daily:previous"), ["ann", "dee", "bob", "cid"]);
    assert_eq!(names(&world, "daily"), ["early"]);
    send(&world, "eve", 5);
    assert_eq!(names(&world, "daily"), ["eve", "early"]);
    world.stop();
}

#[test]
fn a_restart_in_doubt_closes_nothing() {
    let clock = Wall::default();
    let world = daily(&clock, false);
    send(&world, "ann", 9);
    clock.jump(AHEAD);
    assert_eq!(closed(&world), [] as [i64; 0]);
    world.stop();
    world.start();
    assert_eq!(closed(&world), [] as [i64; 0]);
    clock.jump(-AHEAD);
    assert_eq!(closed(&world), [] as [i64; 0]);
    assert!(world.tally().clock_jump().is_some(), "no clock is known to be right");
    send(&world, "bob", 1);
    assert_eq!(names(&world, "daily"), ["ann", "bob"]);
    world.advance(ClockBounds::default().steady);
    assert_eq!(closed(&world), [] as [i64; 0], "it is still that day");
    assert_eq!(world.tally().clock_jump(), None);
    world.stop();
    world.start();
    assert_eq!(world.tally().clock_jump(), None);
    world.advance(DAY);
    assert_eq!(closed(&world), [10]);
    world.stop();
}

#[test]
fn a_jump_while_no_server_runs_is_found_at_the_start() {
    let clock = Wall::default();
    let world = daily(&clock, true);
    send(&world, "ann", 9);
    scheduler::close_due(&world.tally()).unwrap();
    world.stop();
    clock.jump(AHEAD);
    world.advance(HOUR);
    world.start();
    assert_eq!(closed(&world), [] as [i64; 0]);
    assert_eq!(world.tally().clock_jump(), Some(AHEAD));
    world.stop();
    world.start();
    assert_eq!(world.tally().clock_jump(), Some(AHEAD), "another start knows as much");
    clock.jump(-AHEAD);
    assert_eq!(closed(&world), [] as [i64; 0]);
    assert_eq!(world.tally().clock_jump(), None, "the jump was undone");
    // Time in which no server runs is no jump.
    world.stop();
    world.advance(DAY);
    world.start();
    assert_eq!(world.tally().clock_jump(), None);
    assert_eq!(closed(&world), [10]);
    world.stop();
}

#[test]
fn a_new_time_is_trusted_after_a_while() {
    let clock = Wall::default();
    let world = daily(&clock, false);
    send(&world, "ann", 9);
    scheduler::close_due(&world.tally()).unwrap();
    clock.jump(AHEAD);
    assert_eq!(closed(&world), [] as [i64; 0]);
    world.advance(ClockBounds::default().steady);
    assert_eq!(closed(&world), [10]);
    // A clock that goes back is in doubt as well, and opens nothing.
    clock.jump(-AHEAD);
    assert!(closed(&world).contains(&10));
    assert_eq!(world.tally().clock_jump(), Some(-AHEAD));
    world.stop();
}

#[test]
fn a_request_is_not_done_twice_because_of_a_jump() {
    let clock = Wall::default();
    let world = daily(&clock, false);
    let ask = || {
        let new =
            NewScore { idempotency: Some(idempotency("once")), ..world.score("ann", ScoreInput::Int(5)) };
        world.wait(submit(&world.tally(), new)).unwrap().1
    };
    assert!(!ask().replayed);
    clock.jump(AHEAD);
    let again = ask();
    assert_eq!((again.replayed, again.record.score), (true, 5));
    clock.jump(-AHEAD);
    assert!(ask().replayed);
    world.advance(AHEAD);
    assert!(!ask().replayed, "it is forgotten by a clock that is trusted");
    world.stop();
}

/// The outcome is stored with the time of a clock that is behind. It is no older for that when the clock is right again.
#[test]
fn a_request_is_not_done_twice_because_a_clock_was_behind() {
    let clock = Wall::default();
    let world = daily(&clock, false);
    let ask = |key: &str| {
        let new = NewScore { idempotency: Some(idempotency(key)), ..world.score("ann", ScoreInput::Int(5)) };
        world.wait(submit(&world.tally(), new)).unwrap().1
    };
    world.put(&BoardSpec::default()).unwrap();
    assert!(!ask("before").replayed);
    clock.jump(-AHEAD);
    assert!(!ask("once").replayed);
    assert!(ask("before").replayed);
    clock.jump(AHEAD);
    assert_eq!(world.tally().clock_jump(), None, "the jump was undone");
    let again = ask("once");
    assert_eq!((again.replayed, again.record.score), (true, 10));
    world.advance(AHEAD);
    assert!(!ask("once").replayed);
    world.stop();
}

/// The outcome of a request while a new time is in doubt is no older for that once the new time is trusted.
#[test]
fn a_request_is_not_done_twice_because_a_new_time_is_trusted() {
    let clock = Wall::default();
    let world = daily(&clock, false);
    let ask = || {
        let new =
            NewScore { idempotency: Some(idempotency("once")), ..world.score("ann", ScoreInput::Int(5)) };
        world.wait(submit(&world.tally(), new)).unwrap().1
    };
    assert_eq!(world.tally().clock_jump(), None);
    clock.jump(AHEAD);
    assert!(!ask().replayed);
    world.advance(ClockBounds::default().steady);
    assert_eq!(world.tally().clock_jump(), None, "the new time is trusted");
    assert!(ask().replayed);
    world.stop();
}

#[test]
fn time_that_only_passes_is_trusted() {
    let world = World::new(10 * DAY + HOUR);
    for days in [1, 40, 4_000] {
        world.advance(days * DAY);
        assert_eq!(world.tally().clock_jump(), None);
    }
    assert_eq!(world.tally().newest_ahead(), 0);
    world.stop();
}

/// Prizes of a period that is over come before a change of its rule and before its board goes. Requests that have to wait
/// for the clock are rejected, and nothing waits meanwhile.
#[test]
fn a_board_whose_prizes_wait_for_the_clock_is_neither_changed_nor_deleted() {
    let clock = Wall::default();
    let world = World::with_ahead(10 * DAY + HOUR, 1, &clock.0, false);
    let amount = Amount::new(7).unwrap();
    let table = vec![Prize { from: 1, to: 1, currency: Currency::parse("KRW").unwrap(), amount }];
    let prizes = PeriodPrizes { table, ties: PrizeTies::Split, from: None };
    let daily = |keep| {
        let rule = PeriodRule { prizes: prizes.clone(), ..rule("daily", "0 0 * * *", "UTC", keep, 0) };
        BoardSpec { periods: Some(vec![rule]), update: Some(Update::Sum), ..BoardSpec::default() }
    };
    let delete = || {
        let tally = world.tally();
        let delete = move || boards::delete(&tally, &board(), &Origin::BACKGROUND, None);
        world.wait(async { tokio::task::spawn_blocking(delete).await.unwrap() })
    };
    world.put(&daily(9)).unwrap();
    send(&world, "ann", 9);
    clock.jump(AHEAD);
    let refused = |done| matches!(done, Err(Failure::Fault(Fault::NotClosed)));
    assert!(refused(world.put(&daily(5))));
    assert!(refused(delete().map(drop)));
    world.put(&daily(9)).unwrap();
    assert_eq!(world.view("daily:1970-01-11").unwrap().total(), 1, "nothing was done");
    clock.jump(-AHEAD);
    world.put(&daily(5)).unwrap();
    assert!(!delete().unwrap());
    world.stop();
}

/// From 1 s on the difference from the clock of the store is a line of the log, once each time; from 5 s on it is a doubt.
#[test]
fn a_small_difference_from_the_clock_of_the_store_is_a_warning_and_no_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
    let store = Intercepted::new(Arc::new(sqlite));
    let clock = Clock::of(|| Micros(1_700_000_000_000_000));
    // Every reading of the clock is made by this thread, whose log lines are counted.
    let background = Background::ByHand(std::thread::yield_now);
    let (secret, settings) = (Secret::new([1; 32]), Settings { background, ..Settings::default() });
    let keys = Keys::load(Arc::clone(&store) as _, secret.clone(), clock.clone(), &settings).unwrap();
    let (keys, progress) = (Arc::new(keys), Progress::default());
    let tally = Tally::start(Arc::clone(&store) as _, keys, clock, settings, &progress).unwrap();
    let lines = LogLines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let rows = [
            // (how far the clock is ahead, whether it is trusted, the warnings and the errors so far)
            (SECOND, true, (0, 0)),
            (SECOND + 1, true, (1, 0)),
            (4 * SECOND, true, (1, 0)),
            (-5 * SECOND, true, (1, 0)),
            (0, true, (1, 0)),
            (-SECOND - 1, true, (2, 0)),
            (-2 * SECOND, true, (2, 0)),
            (5 * SECOND + 1, false, (2, 1)),
            (6 * SECOND, false, (2, 1)),
            (2 * SECOND, true, (2, 1)),
            (0, true, (2, 1)),
        ];
        for (ahead, is_trusted, wanted) in rows {
            store.set_clock_ahead(ahead);
            for _ in 0..3 {
                assert_eq!(tally.trusted_now().is_some(), is_trusted, "{ahead}");
            }
            let warned = lines.count(Level::WARN, "the clock is not the store's: set it by NTP");
            let doubted = lines.count(Level::ERROR, "the clock has jumped, or is not the store's");
            assert_eq!((warned, doubted), wanted, "{ahead}");
        }
        assert_eq!(lines.count(Level::WARN, "the clock is trusted again"), 1);
    });
    tally.drain();
}
