//! Periods at their boundaries, on a live board, and with files of the past.

use crate::world::{DAY, World, board, idempotency, player, rule};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tally_ranking::{PageQuery, RankedEntry};
use tally_rules::definition::{BoardSpec, Ranking, Update};
use tally_rules::event::{Event, EventKind};
use tally_rules::instant::SECOND;
use tally_rules::period::PeriodRule;
use tally_rules::score::ScoreInput;
use tally_rules::{Micros, Origin, Rejection};
use tally_service::Failure;
use tally_service::periods::scheduler;
use tally_service::periods::view::list;
use tally_service::players::erase::ban;
use tally_service::scores::import::{NewChunk, NewLine, import};
use tally_service::scores::submit::Submitted;
use tally_service::scores::submit::{NewScore, submit, submit_batch};
use tally_store::Topic;

const HOUR: i64 = 3_600 * SECOND;

/// Submits; returns the names of periods that are closed already.
fn send(world: &World, name: &str, score: i64, at: Option<Micros>) -> Result<Vec<String>, Failure> {
    let new = NewScore { at, ..world.score(name, ScoreInput::Int(score)) };
    world.wait(submit(&world.tally(), new)).map(|(_, done)| done.closed_periods)
}

/// A whole window.
fn page(world: &World, period: &str) -> Result<Vec<RankedEntry>, Rejection> {
    let query = PageQuery { limit: 1_000, ..PageQuery::default() };
    Ok(world.view(period)?.read(&*world.tally().store, |order| order.page(&query)).unwrap().entries)
}

#[test]
fn a_boundary_belongs_to_the_next_period_and_memory_comes_back() {
    let world = World::new(10 * DAY - 5);
    let periods = Some(vec![rule("daily", "0 0 * * *", "UTC", 2, 0)]);
    world.put(&BoardSpec { periods, update: Some(Update::Latest), ..BoardSpec::default() }).unwrap();
    for (step, score) in (0..10).zip(1..) {
        world.advance(1);
        send(&world, &format!("p{step}"), score, None).unwrap();
    }
    scheduler::close_due(&world.tally()).unwrap();
    let names = |period| {
        let page = page(&world, period).unwrap();
        page.iter().map(|place| place.player.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("daily"), ["p9", "p8", "p7", "p6", "p5", "p4"]);
    assert_eq!(names("daily:previous"), ["p3", "p2", "p1", "p0"]);
    let found = world.tally().boards.get(&board()).unwrap();
    assert_eq!(found.periods().rules[0].live.len(), 1, "the closed period is in memory no more");
    assert!(world.view("daily:previous").unwrap().blocks());
    // Only two are kept.
    for _ in 0..4 {
        world.advance(DAY);
        send(&world, "again", 1, None).unwrap();
    }
    scheduler::close_due(&world.tally()).unwrap();
    let listed = list(&found, world.now());
    let states: Vec<&str> = listed.iter().map(|one| one.state).collect();
    assert_eq!(states, ["open", "closed", "closed"]);
    assert!(page(&world, "daily:1970-01-10").is_err());
    drop(found);
    world.stop();
}

#[test]
fn periods_are_added_changed_and_removed_on_a_live_board() {
    let world = World::new(10 * DAY + HOUR);
    world.put(&BoardSpec { update: Some(Update::Sum), ..BoardSpec::default() }).unwrap();
    send(&world, "ann", 5, None).unwrap();
    let daily = rule("daily", "0 0 * * *", "UTC", 9, 0);
    world.put(&BoardSpec { periods: Some(vec![daily.clone()]), ..BoardSpec::default() }).unwrap();
    assert!(page(&world, "daily").unwrap().is_empty(), "an added period starts empty");
    send(&world, "ann", 7, None).unwrap();
    assert_eq!(page(&world, "daily").unwrap()[0].record.score, 7);
    assert_eq!(page(&world, "all_time").unwrap()[0].record.score, 12);
    // From noon to noon: the present period still ends at midnight.
    let noon = PeriodRule { schedule: "0 12 * * *".into(), ..daily };
    world.put(&BoardSpec { periods: Some(vec![noon]), ..BoardSpec::default() }).unwrap();
    world.stop();
    world.advance(22 * HOUR);
    world.start();
    send(&world, "ann", 1, None).unwrap();
    assert_eq!(page(&world, "daily").unwrap()[0].record.score, 8, "it is still the same period");
    world.advance(2 * HOUR);
    send(&world, "bob", 2, None).unwrap();
    assert_eq!(page(&world, "daily").unwrap().len(), 1);
    let newest = list(&world.tally().boards.get(&board()).unwrap(), world.now())[0].clone();
    assert_eq!((newest.start, newest.end), (Micros(11 * DAY), Micros(11 * DAY + DAY / 2)));
    world.put(&BoardSpec { periods: Some(Vec::new()), ..BoardSpec::default() }).unwrap();
    assert!(page(&world, "daily").is_err());
    assert_eq!(page(&world, "all_time").unwrap().len(), 2);
    world.stop();
}

#[test]
fn a_changed_schedule_counts_from_the_next_boundary_even_without_scores() {
    let world = World::new(10 * DAY + HOUR);
    let daily = rule("daily", "0 0 * * *", "UTC", 9, 0);
    world.put(&BoardSpec { periods: Some(vec![daily.clone()]), ..BoardSpec::default() }).unwrap();
    let noon = PeriodRule { schedule: "0 12 * * *".into(), ..daily };
    world.put(&BoardSpec { periods: Some(vec![noon]), ..BoardSpec::default() }).unwrap();
    let present = || list(&world.tally().boards.get(&board()).unwrap(), world.now())[0].clone();
    assert_eq!((present().start, present().end), (Micros(10 * DAY), Micros(11 * DAY)));
    world.stop();
    world.start();
    world.advance(13 * HOUR);
    send(&world, "ann", 1, None).unwrap();
    assert_eq!((present().end, present().total), (Micros(11 * DAY), 1));
    world.advance(11 * HOUR);
    assert_eq!((present().start, present().end), (Micros(11 * DAY), Micros(11 * DAY + DAY / 2)));
    world.stop();
}

#[test]
fn a_changed_schedule_counts_from_where_an_empty_period_ended() {
    let world = World::new(10 * DAY + HOUR);
    let daily = rule("daily", "0 0 * * *", "UTC", 9, 0);
    world.put(&BoardSpec { periods: Some(vec![daily.clone()]), ..BoardSpec::default() }).unwrap();
    let noon = PeriodRule { schedule: "0 12 * * *".into(), ..daily };
    world.put(&BoardSpec { periods: Some(vec![noon]), ..BoardSpec::default() }).unwrap();
    world.advance(DAY);
    scheduler::close_due(&world.tally()).unwrap();
    let present = || list(&world.tally().boards.get(&board()).unwrap(), world.now())[0].clone();
    let half = (Micros(11 * DAY), Micros(11 * DAY + DAY / 2));
    assert_eq!((present().start, present().end), half);
    world.stop();
    world.start();
    assert_eq!((present().start, present().end), half);
    send(&world, "ann", 1, None).unwrap();
    world.advance(DAY);
    scheduler::close_due(&world.tally()).unwrap();
    let listed = list(&world.tally().boards.get(&board()).unwrap(), world.now());
    let starts: Vec<i64> = listed.iter().map(|one| one.start.0).collect();
    assert_eq!(starts, [11 * DAY + DAY / 2, 11 * DAY], "the empty one is left out");
    world.stop();
}

/// A clock that is ahead, or a scheduler that is late, closes nothing.
#[test]
fn a_period_is_listed_as_closed_once_that_is_stored() {
    let world = World::new(10 * DAY + HOUR);
    let periods = Some(vec![rule("daily", "0 0 * * *", "UTC", 9, 60)]);
    world.put(&BoardSpec { periods, ..BoardSpec::default() }).unwrap();
    send(&world, "ann", 1, None).unwrap();
    let found = world.tally().boards.get(&board()).unwrap();
    let state = |now: Micros| list(&found, now).pop().unwrap().state;
    let (now, later) = (world.now(), world.now().plus(2 * DAY));
    assert_eq!((state(now), state(later), state(now)), ("open", "closing", "open"));
    world.advance(2 * DAY);
    scheduler::close_due(&world.tally()).unwrap();
    assert_eq!((state(later), state(now)), ("closed", "closed"));
    world.stop();
}

#[test]
fn what_is_closed_stays_closed() {
    let world = World::new(10 * DAY + HOUR);
    let daily = rule("daily", "0 0 * * *", "UTC", 9, 0);
    let only =
        BoardSpec { periods: Some(vec![daily.clone()]), all_time: Some(false), ..BoardSpec::default() };
    world.put(&only).unwrap();
    for name in ["ann", "bob"] {
        send(&world, name, 1, None).unwrap();
    }
    world.advance(DAY);
    scheduler::close_due(&world.tally()).unwrap();
    let late = || send(&world, "cid", 2, Some(world.now().min(Micros(11 * DAY - 1))));
    let check = |what: &str| {
        assert!(matches!(late(), Err(Failure::Rejected(Rejection::PeriodClosed(_)))), "{what}");
        assert_eq!(page(&world, "daily:1970-01-11").unwrap().len(), 2, "{what}");
    };
    check("closed");
    let longer = PeriodRule { grace_s: 10 * 3_600, ..daily };
    world.put(&BoardSpec { periods: Some(vec![longer]), ..BoardSpec::default() }).unwrap();
    check("with a longer grace");
    world.advance(-2 * HOUR);
    check("with a clock that was set back");
    world.stop();
    world.start();
    check("started again");
    world.stop();
}

#[test]
fn fewer_are_kept_as_soon_as_that_is_wished() {
    let world = World::new(10 * DAY);
    let daily = |keep| Some(vec![rule("daily", "0 0 * * *", "UTC", keep, 0)]);
    world.put(&BoardSpec { periods: daily(9), ..BoardSpec::default() }).unwrap();
    for _ in 0..6 {
        send(&world, "ann", 1, None).unwrap();
        world.advance(DAY);
    }
    let closed = || {
        scheduler::close_due(&world.tally()).unwrap();
        let listed = list(&world.tally().boards.get(&board()).unwrap(), world.now());
        listed.iter().filter(|one| one.state == "closed").map(|one| one.start.0 / DAY).collect::<Vec<_>>()
    };
    assert_eq!(closed(), [15, 14, 13, 12, 11, 10]);
    world.put(&BoardSpec { periods: daily(2), ..BoardSpec::default() }).unwrap();
    assert_eq!(closed(), [15, 14]);
    assert_eq!(page(&world, "daily:1970-01-14"), Err(Rejection::PeriodNotFound));
    world.stop();
}

/// Players are banned and restored while their ranking is being written.
#[test]
fn hiding_meets_closing() {
    let world = World::new(10 * DAY);
    let periods = Some(vec![rule("daily", "0 0 * * *", "UTC", 99, 0)]);
    world.put(&BoardSpec { periods, all_time: Some(false), ..BoardSpec::default() }).unwrap();
    let names: Vec<String> = (0..600).map(|at| format!("p{at}")).collect();
    for _ in 0..2 {
        let row = |name: &String| world.score(name, ScoreInput::Int(1));
        for result in
            world.wait(submit_batch(&world.tally(), names.iter().map(row).collect(), false)).unwrap()
        {
            result.unwrap();
        }
        let tally = world.tally();
        let turn = |name: &str, hide| {
            world.wait(ban(&tally, &board(), player(name), hide, Origin::BACKGROUND, None)).unwrap()
        };
        std::thread::scope(|scope| {
            let banning = scope.spawn(|| {
                for name in names.iter().step_by(100) {
                    turn(name, true);
                }
            });
            world.advance(DAY);
            scheduler::close_due(&world.tally()).unwrap();
            // All reads meanwhile are consistent.
            while !banning.is_finished() {
                let whole = page(&world, "daily:previous").unwrap();
                let ranks = whole.iter().map(|place| place.rank).collect::<Vec<_>>();
                assert_eq!(ranks, (1..=whole.len() as u64).collect::<Vec<_>>());
            }
        });
        scheduler::close_due(&world.tally()).unwrap();
        assert!(world.view("daily:previous").unwrap().blocks());
        assert_eq!(page(&world, "daily:previous").unwrap().len(), 594);
        names.iter().step_by(100).for_each(|name| assert!(!turn(name, false)));
        assert_eq!(page(&world, "daily:previous").unwrap().len(), 600);
    }
    world.stop();
}

/// A replay has the present ranks, of the period that it names, wherever that is by now.
#[test]
fn a_replay_into_a_closed_period_has_its_ranks() {
    for ranking in Ranking::ALL {
        let world = World::new(11 * DAY - HOUR);
        let periods = Some(vec![rule("daily", "0 0 * * *", "UTC", 9, 0)]);
        let only =
            BoardSpec { periods, all_time: Some(false), ranking: Some(*ranking), ..BoardSpec::default() };
        world.put(&only).unwrap();
        let send = |name: &str, score: i64, key: &str| {
            world.advance(1);
            let new =
                NewScore { idempotency: Some(idempotency(key)), ..world.score(name, ScoreInput::Int(score)) };
            world.wait(submit(&world.tally(), new)).map(|(_, done)| done).unwrap()
        };
        send("ann", 10, "a");
        send("bob", 30, "b");
        let first = send("ann", 20, "again");
        let ranks = |done: &Submitted| (done.rank, done.previous.and_then(|previous| previous.rank));
        assert_eq!(ranks(&first), (Some(2), Some(2)));
        send("cid", 15, "c");
        send("dee", 15, "d");
        // Of 30, 20, 15, 15 and without the 20: where would 10 be?
        let (last, shared) = (Some(4), Some(3));
        let wanted = (Some(2), if *ranking == Ranking::Dense { shared } else { last });
        let check = |state: &str| {
            let again = send("ann", 20, "again");
            assert!(again.replayed);
            assert_eq!((again.record, again.changed, &again.period), (first.record, true, &first.period));
            assert_eq!(again.previous.unwrap().record, first.previous.unwrap().record);
            assert_eq!(ranks(&again), wanted, "{ranking} {state}");
            let none = send("ann", 10, "a");
            assert_eq!((ranks(&none), none.previous), ((wanted.0, None), None), "{ranking} {state}");
        };
        check("open");
        world.advance(2 * HOUR);
        scheduler::close_due(&world.tally()).unwrap();
        assert!(world.view("daily:previous").unwrap().blocks());
        check("closed");
        world.wait(ban(&world.tally(), &board(), player("ann"), true, Origin::BACKGROUND, None)).unwrap();
        let banned = send("ann", 20, "again");
        assert_eq!(ranks(&banned), (None, None), "a hidden player has no ranks");
        world.wait(ban(&world.tally(), &board(), player("ann"), false, Origin::BACKGROUND, None)).unwrap();
        world.stop();
        world.start();
        check("started again");
        world.stop();
    }
}

/// Many callers stream through a boundary; each score is in exactly the period of its own instant.
#[test]
fn a_stream_crosses_a_boundary_exactly() {
    const CALLERS: usize = 16;
    const EACH: usize = 200;
    // Each score moves the clock, so half of them are before the boundary, however slow the machine is.
    let world = World::new(10 * DAY - i64::try_from(CALLERS * EACH / 2).unwrap());
    let daily = rule("daily", "0 0 * * *", "UTC", 9, 0);
    world
        .put(&BoardSpec { periods: Some(vec![daily]), all_time: Some(false), ..BoardSpec::default() })
        .unwrap();
    let tally = world.tally();
    let send = |caller: usize| {
        let (tally, now) = (Arc::clone(&tally), world.clock());
        async move {
            let mut done = Vec::new();
            for number in 0..EACH {
                let new = NewScore {
                    board: board(),
                    player: player(&format!("p{caller}-{number}")),
                    score: ScoreInput::Int(1),
                    subscore: None,
                    at: None,
                    idempotency: None,
                };
                let (_, submitted) = submit(&tally, new).await.unwrap();
                done.push((submitted.record.at, submitted.period));
                now.fetch_add(1, Ordering::SeqCst);
            }
            done
        }
    };
    let mut all = world.wait(async {
        let callers: Vec<_> = (0..CALLERS).map(|caller| tokio::spawn(send(caller))).collect();
        let mut all = Vec::new();
        for caller in callers {
            all.extend(caller.await.unwrap());
        }
        all
    });
    world.advance(4_000);
    scheduler::close_due(&world.tally()).unwrap();
    // The clock chooses the period. Instants may be a little ahead of it, and are in the same order.
    all.sort();
    assert!(all.is_sorted_by_key(|(_, period)| period), "periods follow each other as instants do");
    assert!(all.iter().all(|(at, period)| at.0 >= 10 * DAY || period == "daily:1970-01-10"));
    let begins = all.partition_point(|(_, period)| period == "daily:1970-01-10");
    let begins = all[begins..].first().map(|(at, _)| *at);
    let of = |at: &Micros| {
        if begins.is_none_or(|begins| *at < begins) { "daily:1970-01-10" } else { "daily:1970-01-11" }
    };
    for period in ["daily:1970-01-10", "daily:1970-01-11"] {
        let wanted = all.iter().filter(|(_, of)| of == period).count();
        assert!(wanted > 0, "nobody scored in {period}");
        let found = world.view(period).unwrap();
        assert_eq!(found.total(), wanted as u64, "{period}");
        let query = PageQuery { limit: 5_000, ..PageQuery::default() };
        let page = found.read(&*world.tally().store, |order| order.page(&query));
        assert!(page.unwrap().entries.iter().all(|place| of(&place.record.at) == period));
    }
    let found = world.tally().boards.get(&board()).unwrap();
    assert!(found.periods().rules[0].live.iter().all(|live| live.span.start.0 >= 10 * DAY));
    drop((found, tally));
    world.stop();
}

#[test]
fn an_import_fills_closed_periods() {
    let world = World::new(400 * DAY);
    let periods = Some(vec![rule("monthly", "0 0 1 * *", "UTC", 100, 0)]);
    world
        .put(&BoardSpec { periods, all_time: Some(false), update: Some(Update::Sum), ..BoardSpec::default() })
        .unwrap();
    let late = send(&world, "x", 1, Some(Micros(0)));
    assert!(matches!(late, Err(Failure::Rejected(Rejection::PeriodClosed(_)))));
    let line = |line: u64| NewLine {
        line,
        player: player(if line.is_multiple_of(2) { "even" } else { "odd" }),
        score: ScoreInput::Int(1),
        at: Some(Micros((line.cast_signed() - 1) * DAY)),
    };
    let chunk = |lines: std::ops::RangeInclusive<u64>, last| NewChunk {
        board: board(),
        digest: [9; 32],
        lines_before: lines.start() - 1,
        lines_after: *lines.end(),
        rows: lines.map(line).collect(),
        last,
    };
    world.wait(import(&world.tally(), chunk(1..=40, false))).unwrap();
    assert!(page(&world, "monthly:1970-01-01").is_err(), "not before the file is done");
    world.wait(import(&world.tally(), chunk(41..=61, true))).unwrap();
    let totals = |period: &str| {
        page(&world, period).unwrap().iter().map(|place| place.record.score).collect::<Vec<_>>()
    };
    assert_eq!(totals("monthly:1970-01-01"), [16, 15]);
    assert_eq!(totals("monthly:1970-02-01"), [14, 14]);
    assert_eq!(totals("monthly:1970-03-01"), [1, 1]);
    world.stop();
    world.start();
    assert_eq!(totals("monthly:1970-02-20"), [14, 14]);
    world.stop();
}

/// The numbers and names of reported closed periods.
fn told(world: &World) -> Vec<(u64, String, u64)> {
    let tally = world.tally();
    let topic = Topic::Board(tally.boards.get(&board()).unwrap().no);
    let found = tally.store.ledger().events(topic, 0, 100).unwrap();
    let one = |(number, event): (u64, Event)| match event.what {
        EventKind::PeriodClosed(closed) => (number, closed.period, closed.total),
        other => panic!("{other:?}"),
    };
    found.into_iter().map(one).collect()
}

#[test]
fn each_period_with_players_has_one_event_whichever_server_closes_it() {
    let world = World::new(10 * DAY + HOUR);
    world
        .put(&BoardSpec {
            periods: Some(vec![rule("daily", "0 0 * * *", "UTC", 1, 0)]),
            ..BoardSpec::default()
        })
        .unwrap();
    for day in 1..=4 {
        (0..day).for_each(|nth| drop(send(&world, &format!("p{nth}"), 1, None).unwrap()));
        // A day without scores follows: nothing is reported of it. One is closed while no server runs.
        if day == 3 {
            world.stop();
        }
        world.advance(2 * DAY);
        if day == 3 {
            world.start();
        }
        for _ in 0..2 {
            scheduler::close_due(&world.tally()).unwrap();
        }
    }
    let wanted = [(1, 11), (2, 13), (3, 15), (4, 17)];
    let wanted = wanted.map(|(number, day)| (number, format!("daily:1970-01-{day}"), number));
    // More than are kept of the periods themselves.
    assert_eq!(told(&world), wanted);
    // A ban and its restore write the archive anew, and close nothing.
    for banned in [true, false] {
        world.wait(ban(&world.tally(), &board(), player("p0"), banned, Origin::BACKGROUND, None)).unwrap();
    }
    assert_eq!(told(&world), wanted);
    // It is forgotten after seven days; numbers go on.
    world.advance(8 * DAY);
    send(&world, "p0", 1, None).unwrap();
    world.advance(DAY);
    scheduler::close_due(&world.tally()).unwrap();
    let before = Micros(world.now().0 - tally_service::events::KEEP_MICROS);
    // None are left if the tally's own maintenance came first.
    let forgotten = world.tally().store.ledger().expire_events(before, 100).unwrap();
    assert!([0, 4].contains(&forgotten), "{forgotten}");
    assert_eq!(told(&world), [(5, "daily:1970-01-27".to_owned(), 1)]);
}

/// One file of dated lines, whole.
fn file(digest: u8, lines: &[(&str, i64, i64)]) -> NewChunk {
    let line = |(number, (name, score, day)): (u64, &(&str, i64, i64))| NewLine {
        line: number,
        player: player(name),
        score: ScoreInput::Int(*score),
        at: Some(Micros(day * DAY)),
    };
    NewChunk {
        board: board(),
        digest: [digest; 32],
        lines_before: 0,
        lines_after: lines.len() as u64,
        rows: (1..).zip(lines).map(line).collect(),
        last: true,
    }
}

/// The scores of a window, best first.
fn scores(world: &World, period: &str) -> Vec<i64> {
    page(world, period).unwrap().iter().map(|place| place.record.score).collect()
}

fn purge(world: &World) {
    while world.tally().store.purge_deleted(1_000).unwrap() > 0 {}
}

/// Daily periods of sums, of which so many closed ones are kept.
fn daily_sums(keep: u32) -> BoardSpec {
    BoardSpec {
        periods: Some(vec![rule("daily", "0 0 * * *", "UTC", keep, 0)]),
        update: Some(Update::Sum),
        ..BoardSpec::default()
    }
}

#[test]
fn a_period_that_was_forgotten_is_filled_again_without_its_old_rows() {
    let world = World::new(10 * DAY);
    world.put(&daily_sums(1)).unwrap();
    let import = |digest, lines: &[_]| world.wait(import(&world.tally(), file(digest, lines))).unwrap();
    // Written twice: a version of its blocks waits for the purge, and then all of it.
    import(1, &[("ann", 2, 3)]);
    import(2, &[("ann", 3, 3)]);
    import(3, &[("bob", 1, 5)]);
    assert!(page(&world, "daily:1970-01-04").is_err(), "only one is kept");
    world.put(&daily_sums(9)).unwrap();
    import(4, &[("ann", 100, 3)]);
    assert_eq!(scores(&world, "daily:1970-01-04"), [100]);
    purge(&world);
    assert_eq!(scores(&world, "daily:1970-01-04"), [100]);
    world.stop();
    world.start();
    purge(&world);
    assert_eq!(scores(&world, "daily:1970-01-04"), [100]);
    world.stop();
}

#[test]
fn a_large_period_that_was_forgotten_is_purged_before_it_is_filled_again() {
    let world = World::new(10 * DAY);
    world.put(&daily_sums(1)).unwrap();
    let names: Vec<String> = (0..2_000).map(|nth| format!("p{nth}")).collect();
    let lines: Vec<_> = names.iter().map(|name| (&**name, 1, 3)).collect();
    let import = |digest, lines: &[_]| world.wait(import(&world.tally(), file(digest, lines))).unwrap();
    import(1, &lines);
    import(2, &[("bob", 1, 5)]);
    world.put(&daily_sums(9)).unwrap();
    import(3, &[("p7", 100, 3), ("new", 1, 3)]);
    assert_eq!(scores(&world, "daily:1970-01-04"), [100, 1]);
    purge(&world);
    assert_eq!(scores(&world, "daily:1970-01-04"), [100, 1]);
    world.stop();
}

#[test]
fn a_forgotten_period_takes_no_scores_when_the_clock_is_set_back() {
    let world = World::new(10 * DAY + HOUR);
    let periods = Some(vec![rule("daily", "0 0 * * *", "UTC", 0, 0)]);
    world.put(&BoardSpec { periods, update: Some(Update::Sum), ..BoardSpec::default() }).unwrap();
    send(&world, "ann", 5, None).unwrap();
    world.advance(DAY);
    scheduler::close_due(&world.tally()).unwrap();
    world.advance(-DAY);
    // The period begins anew if the purge was done before.
    let late = send(&world, "ann", 100, None).unwrap();
    let counted = if late.is_empty() { vec![100] } else { Vec::new() };
    assert_eq!(scores(&world, "daily"), counted);
    purge(&world);
    world.stop();
    world.start();
    assert_eq!((scores(&world, "daily"), scores(&world, "all_time")), (counted, vec![105]));
    world.stop();
}
