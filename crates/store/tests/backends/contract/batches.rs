//! Transactions: all of one or nothing, durable, and decided on the present state.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tally_store::{KeyChange, SLOW, Slow, WaitStage};

pub(crate) fn an_empty_store_has_nothing(backend: &dyn Backend) {
    let store = open(backend);
    assert_eq!(store.boards().unwrap(), []);
    assert_eq!(store.keys().unwrap(), []);
    assert_eq!(walk(&*store, BoardNo(1), Window(0), 10), []);
    assert_eq!(store.count_scores(BoardNo(1), Window(0)).unwrap(), 0);
    assert_eq!(store.meta("anything").unwrap(), None);
    assert_eq!(store.expire_requests(Micros(i64::MAX), 10).unwrap(), 0);
    assert_eq!(store.purge_deleted(10).unwrap(), 0);
    let plan = ReadSet {
        boards: vec![BoardNo(0), BoardNo(7), BoardNo(u32::MAX)],
        board_names: vec![BoardId::new("a").unwrap()],
        scores: vec![key(1, 0, "a")],
        requests: vec![request("s", "k")],
        ..ReadSet::default()
    };
    let loaded = load(&*store, &plan);
    assert_eq!(loaded.boards, [None; 3]);
    assert_eq!(loaded.board_names, [None]);
    assert_eq!(loaded.scores, [None]);
    assert_eq!(loaded.requests, [None]);
}

/// Changes of every table whose last row cannot be stored: an existing key, after a missing board.
fn changes_with_a_bad_last_row(next: BoardNo) -> WriteSet {
    let id = BoardId::new("second").unwrap();
    let board = BoardRow { no: next, id, definition: Definition::default(), created_at: Micros(1) };
    WriteSet {
        scores: vec![(key(1, 0, "ann"), None), (key(1, 0, "bob"), Some(record(9)))],
        requests: vec![(request("s", "k"), stored(1, 1, Outcome::Removed))],
        boards: vec![BoardChange::Delete(BoardNo(1)), BoardChange::Create(board)],
        keys: vec![KeyChange::Create(key_row("k1", 2))],
        ..WriteSet::default()
    }
}

fn with_a_board_a_record_and_a_key(store: &dyn Store) {
    assert_eq!(create(store, "first", &Definition::default()).unwrap(), BoardNo(1));
    let keys = vec![KeyChange::Create(key_row("k1", 1))];
    write(store, &WriteSet { keys, ..scores(vec![(key(1, 0, "ann"), Some(record(5)))]) }).unwrap();
}

pub(crate) fn nothing_is_done_when_the_last_row_is_refused(backend: &dyn Backend) {
    let store = open(backend);
    with_a_board_a_record_and_a_key(&*store);
    let check = |store: &dyn Store| {
        assert_eq!(walk(store, BoardNo(1), Window(0), 10), [(key(1, 0, "ann").player, record(5))]);
        let plan = ReadSet {
            board_names: vec![BoardId::new("first").unwrap(), BoardId::new("second").unwrap()],
            requests: vec![request("s", "k")],
            ..ReadSet::default()
        };
        let loaded = load(store, &plan);
        assert_eq!(loaded.board_names.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
        assert_eq!(loaded.requests, [None]);
        assert_eq!(loaded.next_board, BoardNo(2), "the number was not given");
        assert_eq!(store.keys().unwrap(), [key_row("k1", 1)]);
        assert_eq!(store.purge_deleted(10).unwrap(), 0);
    };
    let refused = write(&*store, &changes_with_a_bad_last_row(BoardNo(2)));
    assert!(matches!(refused, Err(StoreError::Row(_))), "{refused:?}");
    check(&*store);
    drop(store);
    check(&*open(backend));
}

pub(crate) fn a_store_goes_on_after_a_refused_row(backend: &dyn Backend) {
    let store = open(backend);
    with_a_board_a_record_and_a_key(&*store);
    for round in 0..3 {
        let refused = write(&*store, &changes_with_a_bad_last_row(BoardNo(2)));
        assert!(matches!(refused, Err(StoreError::Row(_))), "{refused:?}");
        write(&*store, &scores(vec![(key(1, 0, "ann"), Some(record(round)))])).unwrap();
        assert_eq!(load(&*store, &plan_of(vec![key(1, 0, "ann")])).scores, [Some(record(round))]);
    }
}

pub(crate) fn a_panic_in_decide_does_nothing(backend: &dyn Backend) {
    let store = open(backend);
    let before = scores(vec![(key(1, 0, "ann"), Some(record(1)))]);
    write(&*store, &before).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        store
            .run(&plan_of(vec![key(1, 0, "ann")]), &mut |_| std::panic::resume_unwind(Box::new("on purpose")))
    }));
    assert!(panicked.is_err());
    assert_eq!(load(&*store, &plan_of(vec![key(1, 0, "ann")])).scores, [Some(record(1))]);
    write(&*store, &scores(vec![(key(1, 0, "ann"), Some(record(2)))])).unwrap();
}

pub(crate) fn what_was_acknowledged_is_there_after_reopening(backend: &dyn Backend) {
    for round in 0..5 {
        let store = open(backend);
        let have = load(&*store, &plan_of(vec![key(1, 2, "ann"), key(1, 2, "bob")])).scores;
        let before = (round > 0).then(|| record(round - 1));
        assert_eq!(have, [before, before]);
        let both = ["ann", "bob"].map(|player| (key(1, 2, player), Some(record(round))));
        write(&*store, &scores(both.to_vec())).unwrap();
    }
}

/// Each of 8 threads adds to a shared and to its own record of the same database, 50 times: no transaction of records spans two.
pub(crate) fn concurrent_increments_lose_nothing(backend: &dyn Backend) {
    const THREADS: usize = 8;
    const ROUNDS: i64 = 50;
    let store = open(backend);
    let database = |name: &str| store.shard_of(&key(1, 0, name).player);
    let beside = |name: &String| database(name) == database("shared");
    let names = (0..).map(|number| format!("thread {number}")).filter(beside).take(THREADS);
    std::thread::scope(|scope| {
        for name in names {
            let store = &*store;
            scope.spawn(move || {
                let plan = plan_of(vec![key(1, 0, "shared"), key(1, 0, &name)]);
                for _ in 0..ROUNDS {
                    let add = |loaded: &Loaded| {
                        let old = loaded.scores.iter().map(|old| old.map_or(0, |old| old.score));
                        let new = old.map(|old| Some(Record { score: old + 1, subscore: 0, at: Micros(0) }));
                        scores(plan.scores.iter().cloned().zip(new).collect())
                    };
                    run(store, &plan, &mut { add }).unwrap();
                }
            });
        }
    });
    let found = walk(&*store, BoardNo(1), Window(0), 100);
    let counts: Vec<i64> = found.iter().map(|(_, record)| record.score).collect();
    assert_eq!(counts.len(), 1 + THREADS);
    assert_eq!(counts[0], ROUNDS * THREADS as i64, "of all threads");
    assert!(counts[1..].iter().all(|count| *count == ROUNDS), "{counts:?}");
}

pub(crate) fn lists_are_answered_in_the_order_of_the_plan(backend: &dyn Backend) {
    let store = open(backend);
    for (number, name) in [(1, "b"), (2, "a"), (3, "c")] {
        assert_eq!(create(&*store, name, &Definition::default()).unwrap(), BoardNo(number));
    }
    write(&*store, &WriteSet { boards: vec![BoardChange::Delete(BoardNo(3))], ..WriteSet::default() })
        .unwrap();
    let rows = [("ä", 1), ("b", 2), ("d", 4)];
    write(&*store, &scores(rows.map(|(player, score)| (key(1, 0, player), Some(record(score)))).to_vec()))
        .unwrap();
    let requests = vec![(request("s", "b"), stored(2, 0, Outcome::Removed))];
    write(&*store, &WriteSet { requests, ..WriteSet::default() }).unwrap();
    let plan = ReadSet {
        boards: [1, 2, 3, 4].map(BoardNo).to_vec(),
        board_names: ["a", "b", "c"].map(|name| BoardId::new(name).unwrap()).to_vec(),
        requests: ["a", "b", "c"].map(|key| request("s", key)).to_vec(),
        ..plan_of(["a", "b", "c", "d", "ä"].map(|player| key(1, 0, player)).to_vec())
    };
    let loaded = load(&*store, &plan);
    assert_eq!(live(&loaded), [true, true, false, false]);
    let numbers: Vec<_> = loaded.board_names.iter().map(|row| row.as_ref().map(|row| row.no.0)).collect();
    assert_eq!(numbers, [Some(2), Some(1), None]);
    assert_eq!(loaded.next_board, BoardNo(4));
    let found: Vec<_> = loaded.scores.iter().map(|row| row.map(|row| row.score)).collect();
    assert_eq!(found, [None, Some(2), None, Some(4), Some(1)]);
    assert_eq!(loaded.requests, [None, Some(stored(2, 0, Outcome::Removed)), None]);
}

pub(crate) fn decide_sees_what_the_transaction_before_wrote(backend: &dyn Backend) {
    let store = open(backend);
    let plan = plan_of(vec![key(1, 0, "ann")]);
    for round in 0..20 {
        let mut seen = None;
        run(&*store, &plan, &mut |loaded| {
            seen = loaded.scores[0].map(|record| record.score);
            scores(vec![(key(1, 0, "ann"), Some(record(round)))])
        })
        .unwrap();
        assert_eq!(seen, (round > 0).then_some(round - 1));
        // Readers see it as soon as it was acknowledged, too.
        assert_eq!(walk(&*store, BoardNo(1), Window(0), 2)[0].1, record(round));
    }
}

pub(crate) fn a_thousand_rows_are_one_transaction(backend: &dyn Backend) {
    const ROWS: usize = 1000;
    let store = open(backend);
    let name = |number: usize| format!("player-{:04}-{}", number * 7919 % ROWS, "x".repeat(100));
    let rows = (0..ROWS).map(|number| (key(3, 1, &name(number)), Some(record(number as i64)))).collect();
    write(&*store, &scores(rows)).unwrap();
    let plan = plan_of((0..ROWS).map(|number| key(3, 1, &name(number))).collect());
    let mut sum = 0;
    run(&*store, &plan, &mut |loaded| {
        sum = loaded.scores.iter().map(|row| row.unwrap().score).sum();
        let twice =
            |(key, row): (&ScoreKey, &Option<Record>)| (key.clone(), Some(record(row.unwrap().score * 2)));
        scores(plan.scores.iter().zip(&loaded.scores).map(twice).collect())
    })
    .unwrap();
    let expected: i64 = (0..ROWS as i64).sum();
    assert_eq!(sum, expected);
    let found = walk(&*store, BoardNo(3), Window(1), 333);
    assert_eq!(found.len(), ROWS);
    assert_eq!(found.iter().map(|(_, record)| record.score).sum::<i64>(), expected * 2);
}

pub(crate) fn unsorted_plans_and_changes_are_bugs(backend: &dyn Backend) {
    let store = open(backend);
    let panics = |plan: ReadSet, changes: WriteSet| {
        let hook = AssertUnwindSafe(|| store.run(&plan, &mut |_| changes.clone()));
        let panicked = catch_unwind(hook).is_err();
        assert!(panicked, "{plan:?} {changes:?}");
    };
    let (a, b) = (key(1, 0, "a"), key(1, 0, "b"));
    panics(ReadSet { scores: vec![b.clone(), a.clone()], ..ReadSet::default() }, WriteSet::default());
    panics(ReadSet { scores: vec![a.clone(), a.clone()], ..ReadSet::default() }, WriteSet::default());
    panics(ReadSet { boards: vec![BoardNo(2), BoardNo(1)], ..ReadSet::default() }, WriteSet::default());
    panics(ReadSet { requests: vec![request("s", "k"); 2], ..ReadSet::default() }, WriteSet::default());
    let unsorted = vec![(b, Some(record(1))), (a, None)];
    panics(ReadSet::default(), WriteSet { scores: unsorted, ..WriteSet::default() });
    let twice = vec![BoardChange::Delete(BoardNo(1)); 2];
    panics(ReadSet::default(), WriteSet { boards: twice, ..WriteSet::default() });
    assert_eq!(walk(&*store, BoardNo(1), Window(0), 10), []);
}

pub(crate) fn a_transaction_that_takes_long_is_listed_with_what_it_waited_for(backend: &dyn Backend) {
    let store = open(backend);
    with_a_board_a_record_and_a_key(&*store);
    let changes = scores(vec![(key(1, 0, "ann"), Some(record(6)))]);
    let plan = ReadSet { boards: vec![BoardNo(1)], ..ReadSet::default() };
    // On a busy machine another stage may take longer, and other transactions may be slow as well.
    let found = [2, 10, 40].into_iter().find_map(|times| {
        let mut decide = |_: &Loaded| {
            std::thread::sleep(times * SLOW);
            changes.clone()
        };
        store.run(&plan, &mut decide).unwrap();
        let is_it = |slow: &Slow| slow.cause == WaitStage::Decide && slow.waited >= 2 * SLOW;
        store.slow().into_iter().find(is_it)
    });
    let slow = store.slow();
    let found = found.unwrap_or_else(|| panic!("{slow:?}"));
    assert!(found.took >= found.waited, "{found:?}");
    let counted = store.gauges().into_iter().find(|(name, _)| *name == "slow_transactions").unwrap().1;
    assert!(counted >= slow.len() as f64);
}
