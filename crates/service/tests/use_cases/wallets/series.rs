//! Series of contests: made ahead, played and settled by the clock; missed contests; the effect of a change or an end of one.

use crate::wallets::world::{Kind, World, code, idempotency, refused, settings, start};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_rules::contest::definition;
use tally_rules::contest::series::{MISSED_MAX, SeriesSpec};
use tally_rules::contest::{ContestId, ContestRight, ContestState, Prize};
use tally_rules::ledger::Amount;
use tally_rules::score::ScoreInput;
use tally_rules::{Micros, Origin, PlayerId, Rejection};
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::{apply, change, read, scheduler, series};
use tally_service::scores::submit::{self, NewScore};
use tally_service::{Failure, Fault, Tally};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// Every day in Seoul: opens at midnight, is played from nine to six. The clock of the tests begins on 2023-11-15 at 07:13.
fn daily() -> SeriesSpec {
    let prize = Prize { from: 1, to: 1, currency: code("KRW"), amount: Amount::new(100).unwrap() };
    let template = definition::ContestSpec {
        title: Some("Daily".into()),
        prizes: Some(vec![prize]),
        ..definition::ContestSpec::default()
    };
    let text = |text: &str| Some(text.to_owned());
    SeriesSpec {
        template,
        open: text("0 0 * * *"),
        start: text("0 9 * * *"),
        end: text("0 18 * * *"),
        time_zone: text("Asia/Seoul"),
        ahead: None,
    }
}

fn name(text: &str) -> ContestId {
    ContestId::new(text).unwrap()
}

/// Every contest: its name, its state, and when it reached that in hours from `zero`.
fn all(tally: &Tally, zero: Micros) -> Vec<(String, ContestState, i64)> {
    let listed = read::list(tally, None, None, 1_000).unwrap().rows;
    let shown = |(id, record): (ContestId, tally_rules::contest::ContestRecord)| {
        (id.as_str().to_owned(), record.state, (record.since.0 - zero.0).div_euclid(HOUR))
    };
    listed.into_iter().map(shown).collect()
}

fn row(name: &str, state: ContestState, hours: i64) -> (String, ContestState, i64) {
    (name.to_owned(), state, hours)
}

#[test]
fn a_series_makes_plays_and_settles_its_contests_by_itself() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let tally = &world.tally;
        let ann = world.member("ann", 0);
        let player = PlayerId::new(&ann.0.to_string()).unwrap();
        let id = name("daily");
        let boss = ContestActor::SERVER;
        let (made, _) = series::create(tally, &id, &boss, &daily(), None).unwrap();
        // 2023-11-14T15:00:00Z is midnight in Seoul.
        let zero = Micros(1_699_974_000 * SECOND);
        // The next one starts at nine, and exists and is open.
        assert_eq!(made.last, Some(name("daily-202311150900")));
        scheduler::do_due(tally).unwrap();
        assert_eq!(all(tally, zero), [row("daily-202311150900", ContestState::Open, 7)]);
        let exists = Rejection::SeriesExists(id.as_str().into());
        assert_eq!(refused(series::create(tally, &id, &boss, &daily(), None)), exists);
        apply::apply(tally, &name("daily-202311150900"), &ContestActor::SERVER, &player, None).unwrap();
        let both = std::slice::from_ref(&player);
        apply::decide(tally, &name("daily-202311150900"), &ContestActor::ADMIN, both, true, None).unwrap();
        world.advance(3 * HOUR);
        scheduler::do_due(tally).unwrap();
        let wanted = [
            row("daily-202311150900", ContestState::Running, 9),
            row("daily-202311160900", ContestState::Draft, 9),
        ];
        assert_eq!(all(tally, zero), wanted);
        let board = name("daily-202311150900").board(None);
        let (score, subscore, at) = (ScoreInput::Int(5), None, None);
        let new = NewScore { board, player, score, subscore, at, idempotency: None };
        world.wait(submit::submit(tally, new)).unwrap();
        world.advance(DAY);
        scheduler::do_due(tally).unwrap();
        let of_first = tally.store.ledger().contest(&name("daily-202311150900")).unwrap().unwrap();
        assert_eq!((of_first.state, of_first.members), (ContestState::Settled, 1));
        assert_eq!(world.balance(ann), 100);
        let rest = [
            row("daily-202311160900", ContestState::Running, 33),
            row("daily-202311170900", ContestState::Draft, 33),
        ];
        assert_eq!(all(tally, zero)[1..], rest);
        world.end(&[ann]);
    }
}

#[test]
fn what_was_missed_of_a_series_happens_in_order_before_any_request() {
    let world = World::new(Kind::Sqlite);
    let tally = &world.tally;
    series::create(tally, &name("daily"), &ContestActor::ADMIN, &daily(), None).unwrap();
    let zero = Micros(1_699_974_000 * SECOND);
    tally.drain();
    // Unavailable for three days, back at 07:13.
    let late = Arc::new(AtomicI64::new(world.now().0 + 3 * DAY));
    let next = start(Arc::clone(&tally.store), &late, settings()).unwrap();
    let there = all(&next, zero);
    let names: Vec<&str> = there.iter().map(|one| one.0.as_str()).collect();
    let days = [15, 16, 17, 18].map(|day| format!("daily-202311{day}0900"));
    assert_eq!(names, days);
    let states: Vec<ContestState> = there.iter().map(|one| one.1).collect();
    assert_eq!(
        states,
        [ContestState::Settled, ContestState::Settled, ContestState::Settled, ContestState::Open]
    );
    // As of its own time: it opened at midnight.
    assert_eq!(there[3].2, 72);
    let second = read::get(&next, &name("daily-202311160900")).unwrap();
    assert_eq!(second.report.map(|report| report.enrolled), Some(0));
    assert_eq!(second.contest.ends_at, Some(zero.plus(42 * HOUR)));
    next.drain();
    // Unavailable for so long that those before the last are left out.
    late.fetch_add(2 * MISSED_MAX as i64 * DAY, Ordering::SeqCst);
    let last = start(Arc::clone(&tally.store), &late, settings()).unwrap();
    let there = all(&last, zero);
    assert_eq!(there.len(), days.len() + MISSED_MAX + 1);
    assert_eq!(there.iter().filter(|one| one.1 == ContestState::Settled).count(), there.len() - 1);
    last.drain();
}

#[test]
fn many_readers_make_a_contest_once() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let tally = &world.tally;
        let spec = SeriesSpec { ahead: Some(2), ..daily() };
        series::create(tally, &name("daily"), &ContestActor::SERVER, &spec, None).unwrap();
        // One made by hand with the name of another: it is neither made again nor changed.
        let taken =
            definition::ContestSpec { title: Some("By hand".into()), ..definition::ContestSpec::default() };
        change::create(tally, &name("daily-202311170900"), &ContestActor::SERVER, &taken, None).unwrap();
        world.advance(3 * DAY);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // One may meet a contest that another has begun a moment ago, whose leaderboard is not known yet, and reads
                // again.
                scope.spawn(|| {
                    while let Err(failure) = scheduler::do_due(tally) {
                        assert!(matches!(failure, Failure::Fault(Fault::Contention(_))), "{failure:?}");
                        std::thread::yield_now();
                    }
                });
            }
        });
        scheduler::do_due(tally).unwrap();
        let names: Vec<String> = all(tally, Micros(0)).into_iter().map(|one| one.0).collect();
        assert_eq!(names, [15, 16, 17, 18, 19].map(|day| format!("daily-202311{day}0900")));
        let by_hand = read::get(tally, &name("daily-202311170900")).unwrap();
        assert_eq!((by_hand.state, by_hand.series), (ContestState::Draft, None));
        world.end(&[]);
    }
}

#[test]
fn a_change_counts_for_what_is_made_later_and_an_end_leaves_what_there_is() {
    let world = World::new(Kind::Sqlite);
    let tally = &world.tally;
    let (id, boss) = (name("daily"), ContestActor::SERVER);
    let key = idempotency("one", 1);
    let first = series::create(tally, &id, &boss, &daily(), key.as_ref()).unwrap();
    assert_eq!(series::create(tally, &id, &boss, &daily(), key.as_ref()).unwrap(), (first.0, true));
    let nobody = ActingAs::Member(PlayerId::new("p").unwrap()).by(Origin::BACKGROUND);
    assert_eq!(
        refused(series::patch(tally, &id, &nobody, &SeriesSpec::default(), None)),
        Rejection::Forbidden(ContestRight::Key)
    );
    let title = definition::ContestSpec { title: Some("Later".into()), ..definition::ContestSpec::default() };
    let later = SeriesSpec { template: title, ahead: Some(2), ..SeriesSpec::default() };
    let (changed, _) = series::patch(tally, &id, &boss, &later, None).unwrap();
    assert_eq!(changed.last, Some(name("daily-202311160900")));
    let titles: Vec<String> =
        read::list(tally, None, None, 9).unwrap().rows.into_iter().map(|one| one.1.contest.title).collect();
    assert_eq!(titles, ["Daily", "Later"]);
    // A contest that is only named like those of the series is none of them.
    let spec = definition::ContestSpec { title: Some("Other".into()), ..definition::ContestSpec::default() };
    change::create(tally, &name("daily-0"), &boss, &spec, None).unwrap();
    let of_series = |series: &str, after: Option<&str>, limit: usize| -> Vec<String> {
        let after = after.map(name);
        let filter = read::ContestFilter { series: Some(name(series)), prefix: None };
        let found = read::list_filtered(tally, &filter, None, after.as_ref(), limit).unwrap();
        assert_eq!(found.1, None);
        found.0.rows.into_iter().map(|(id, _)| id.as_str().to_owned()).collect()
    };
    let both = ["daily-202311150900", "daily-202311160900"];
    assert_eq!(of_series("daily", None, 9), both);
    assert_eq!(of_series("daily", None, 1), both[..1]);
    assert_eq!(of_series("daily", Some(both[0]), 9), both[1..]);
    assert!(of_series("dail", None, 9).is_empty() && of_series("daily-2", None, 9).is_empty());
    // By another schedule from now on: one of today's names exists already.
    let twice = SeriesSpec { start: Some("0 9,10 * * *".into()), ..SeriesSpec::default() };
    let (changed, _) = series::patch(tally, &id, &boss, &twice, None).unwrap();
    assert_eq!(changed.last, Some(name("daily-202311151000")));
    let gone = idempotency("two", 2);
    assert!(!series::delete(tally, &id, &boss, gone.as_ref()).unwrap());
    assert!(series::delete(tally, &id, &boss, gone.as_ref()).unwrap());
    assert_eq!(refused(series::delete(tally, &id, &boss, None)), Rejection::SeriesNotFound);
    assert_eq!(refused(series::get(tally, &id)), Rejection::SeriesNotFound);
    assert_eq!(refused(series::patch(tally, &id, &boss, &later, None)), Rejection::SeriesNotFound);
    // Its contests are played and settled without it, and nothing more is made.
    world.advance(5 * DAY);
    scheduler::do_due(tally).unwrap();
    let made = all(tally, Micros(0)).into_iter().filter(|one| one.0 != "daily-0");
    let states: Vec<_> = made.map(|one| (one.0, one.1)).collect();
    let settled = ["daily-202311150900", "daily-202311151000", "daily-202311160900"];
    assert_eq!(states, settled.map(|id| (id.to_owned(), ContestState::Settled)));
    world.end(&[]);
}

#[test]
fn schedules_that_cannot_be_are_named_one_by_one() {
    let world = World::new(Kind::Sqlite);
    let pointers = |spec: &SeriesSpec| {
        let done = series::create(&world.tally, &name("x"), &ContestActor::SERVER, spec, None);
        match refused(done) {
            Rejection::InvalidContest(wrong) => wrong.into_iter().map(|one| one.pointer).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    let text = |text: &str| Some(text.to_owned());
    let wrong =
        SeriesSpec { open: text("@daily"), end: text("0 0 30 2 *"), time_zone: text("Mars/Base"), ..daily() };
    assert_eq!(pointers(&wrong), ["/time_zone", "/open", "/end"]);
    let crowded = SeriesSpec { start: text("* * * * *"), ..daily() };
    assert_eq!(pointers(&crowded), ["/end"]);
    let none = SeriesSpec { template: definition::ContestSpec::default(), ..daily() };
    assert_eq!(pointers(&none), ["/template/title"]);
    world.end(&[]);
}
