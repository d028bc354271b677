//! What periods do at their boundaries, on a board that lives, and with files of the past.

mod world;

use tally_ranking::PageQuery;
use tally_rules::definition::{Ranking, Update, Wish};
use tally_rules::instant::SECOND;
use tally_rules::period::PeriodRule;
use tally_rules::score::Given;
use tally_rules::{Micros, Refusal};
use tally_service::Failure;
use tally_service::periods::keeper;
use tally_service::periods::view::list;
use tally_service::players::erase::ban;
use tally_service::scores::command::Submitted;
use tally_service::scores::import::{NewChunk, NewLine, import};
use tally_service::scores::submit::{NewScore, submit};
use world::{DAY, World, board, identity, player, rule};

const HOUR: i64 = 3_600 * SECOND;

#[test]
fn a_boundary_belongs_to_the_next_period_and_memory_comes_back() {
    let world = World::new(10 * DAY - 5);
    let periods = Some(vec![rule("daily", "0 0 * * *", "UTC", 2, 0)]);
    world.put(&Wish { periods, update: Some(Update::Latest), ..Wish::default() }).unwrap();
    for (step, score) in (0..10).zip(1..) {
        world.advance(1);
        world.submit(&format!("p{step}"), score, None).unwrap();
    }
    keeper::close_due(&world.tally()).unwrap();
    let names = |period| {
        let page = world.page(period).unwrap();
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
        world.submit("again", 1, None).unwrap();
    }
    keeper::close_due(&world.tally()).unwrap();
    let listed = list(&found, world.now());
    let states: Vec<&str> = listed.iter().map(|one| one.state).collect();
    assert_eq!(states, ["open", "closed", "closed"]);
    assert!(world.page("daily:1970-01-10").is_err());
    drop(found);
    world.stop();
}

#[test]
fn periods_are_added_changed_and_removed_on_a_live_board() {
    let world = World::new(10 * DAY + HOUR);
    world.put(&Wish { update: Some(Update::Sum), ..Wish::default() }).unwrap();
    world.submit("ann", 5, None).unwrap();
    let daily = rule("daily", "0 0 * * *", "UTC", 9, 0);
    world.put(&Wish { periods: Some(vec![daily.clone()]), ..Wish::default() }).unwrap();
    assert!(world.page("daily").unwrap().is_empty(), "an added period starts empty");
    world.submit("ann", 7, None).unwrap();
    assert_eq!(world.page("daily").unwrap()[0].record.score, 7);
    assert_eq!(world.page("all_time").unwrap()[0].record.score, 12);
    // From noon to noon: the present period still ends at midnight.
    let noon = PeriodRule { schedule: "0 12 * * *".into(), ..daily };
    world.put(&Wish { periods: Some(vec![noon]), ..Wish::default() }).unwrap();
    world.stop();
    world.advance(22 * HOUR);
    world.start();
    world.submit("ann", 1, None).unwrap();
    assert_eq!(world.page("daily").unwrap()[0].record.score, 8, "it is still the same period");
    world.advance(2 * HOUR);
    world.submit("bob", 2, None).unwrap();
    assert_eq!(world.page("daily").unwrap().len(), 1);
    let newest = list(&world.tally().boards.get(&board()).unwrap(), world.now())[0].clone();
    assert_eq!((newest.start, newest.end), (Micros(11 * DAY), Micros(11 * DAY + DAY / 2)));
    world.put(&Wish { periods: Some(Vec::new()), ..Wish::default() }).unwrap();
    assert!(world.page("daily").is_err());
    assert_eq!(world.page("all_time").unwrap().len(), 2);
    world.stop();
}

#[test]
fn a_changed_schedule_counts_from_the_next_boundary_even_where_nobody_has_scored() {
    let world = World::new(10 * DAY + HOUR);
    let daily = rule("daily", "0 0 * * *", "UTC", 9, 0);
    world.put(&Wish { periods: Some(vec![daily.clone()]), ..Wish::default() }).unwrap();
    let noon = PeriodRule { schedule: "0 12 * * *".into(), ..daily };
    world.put(&Wish { periods: Some(vec![noon]), ..Wish::default() }).unwrap();
    let present = || list(&world.tally().boards.get(&board()).unwrap(), world.now())[0].clone();
    assert_eq!((present().start, present().end), (Micros(10 * DAY), Micros(11 * DAY)));
    world.stop();
    world.start();
    world.advance(13 * HOUR);
    world.submit("ann", 1, None).unwrap();
    assert_eq!((present().end, present().total), (Micros(11 * DAY), 1));
    world.advance(11 * HOUR);
    assert_eq!((present().start, present().end), (Micros(11 * DAY), Micros(11 * DAY + DAY / 2)));
    world.stop();
}

/// A repeated answer has the ranks of now, of the period that it names, wherever that is by now.
#[test]
fn a_replay_into_a_closed_period_has_its_ranks() {
    for ranking in Ranking::ALL {
        let world = World::new(11 * DAY - HOUR);
        let periods = Some(vec![rule("daily", "0 0 * * *", "UTC", 9, 0)]);
        let only = Wish { periods, all_time: Some(false), ranking: Some(*ranking), ..Wish::default() };
        world.put(&only).unwrap();
        let send = |name: &str, score: i64, key: &str| {
            world.advance(1);
            let new = NewScore { identity: Some(identity(key)), ..world.score(name, Given::Int(score)) };
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
        keeper::close_due(&world.tally()).unwrap();
        assert!(world.view("daily:previous").unwrap().blocks());
        check("closed");
        world.wait(ban(&world.tally(), &board(), player("ann"), true, None)).unwrap();
        let hidden = send("ann", 20, "again");
        assert_eq!(ranks(&hidden), (None, None), "a hidden player has no ranks");
        world.wait(ban(&world.tally(), &board(), player("ann"), false, None)).unwrap();
        world.stop();
        world.start();
        check("started again");
        world.stop();
    }
}

/// Many callers stream through a boundary; each score is in exactly the period of its own instant.
#[test]
fn a_stream_crosses_a_boundary_exactly() {
    let world = World::new(10 * DAY - 2_000);
    let daily = rule("daily", "0 0 * * *", "UTC", 9, 0);
    world.put(&Wish { periods: Some(vec![daily]), all_time: Some(false), ..Wish::default() }).unwrap();
    let tally = world.tally();
    let send = |caller: usize| {
        let tally = std::sync::Arc::clone(&tally);
        async move {
            let mut done = Vec::new();
            for number in 0..200 {
                let new = NewScore {
                    board: board(),
                    player: player(&format!("p{caller}-{number}")),
                    score: Given::Int(1),
                    subscore: None,
                    at: None,
                    identity: None,
                };
                let (_, submitted) = submit(&tally, new).await.unwrap();
                done.push((submitted.record.at, submitted.period));
                tokio::task::yield_now().await;
            }
            done
        }
    };
    let clock = || {
        (0..400).for_each(|_| {
            world.advance(10);
            std::thread::sleep(std::time::Duration::from_micros(200));
        })
    };
    let all = std::thread::scope(|scope| {
        scope.spawn(clock);
        world.wait(async {
            let callers: Vec<_> = (0..16).map(|caller| tokio::spawn(send(caller))).collect();
            let mut all = Vec::new();
            for caller in callers {
                all.extend(caller.await.unwrap());
            }
            all
        })
    });
    world.advance(4_000);
    keeper::close_due(&world.tally()).unwrap();
    let of = |at: &Micros| if at.0 < 10 * DAY { "daily:1970-01-10" } else { "daily:1970-01-11" };
    assert!(all.iter().all(|(at, period)| period == of(at)));
    for period in ["daily:1970-01-10", "daily:1970-01-11"] {
        let wanted = all.iter().filter(|(_, of)| of == period).count();
        assert!(wanted > 0, "nobody scored in {period}");
        let found = world.view(period).unwrap();
        assert_eq!(found.total(), wanted as u64, "{period}");
        let page = found.page(&*world.tally().store, &PageQuery { limit: 5_000, ..PageQuery::default() });
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
        .put(&Wish { periods, all_time: Some(false), update: Some(Update::Sum), ..Wish::default() })
        .unwrap();
    let late = world.submit("x", 1, Some(Micros(0)));
    assert!(matches!(late, Err(Failure::Refused(Refusal::PeriodClosed))));
    let line = |line: u64| NewLine {
        line,
        player: player(if line.is_multiple_of(2) { "even" } else { "odd" }),
        score: Given::Int(1),
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
    assert!(world.page("monthly:1970-01-01").is_err(), "not before the file is done");
    world.wait(import(&world.tally(), chunk(41..=61, true))).unwrap();
    let totals =
        |period: &str| world.page(period).unwrap().iter().map(|place| place.record.score).collect::<Vec<_>>();
    assert_eq!(totals("monthly:1970-01-01"), [16, 15]);
    assert_eq!(totals("monthly:1970-02-01"), [14, 14]);
    assert_eq!(totals("monthly:1970-03-01"), [1, 1]);
    world.stop();
    world.start();
    assert_eq!(totals("monthly:1970-02-20"), [14, 14]);
    world.stop();
}
