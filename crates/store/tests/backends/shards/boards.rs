//! Boards and periods that are changed while one of the databases is unavailable: true on the first, and known to the other
//! before it is used again.

use super::*;
use crate::contract::{create, load};
use tally_rules::period::TimeSpan;
use tally_rules::{Definition, Micros};
use tally_store::{
    BoardChange, BoardNo, Garbage, Maintenance, Reads, Transactions, Window, WindowKey, WindowRow,
};

const PART: Window = Window(7);

fn alter(store: &dyn Store, changes: &WriteSet) -> Result<(), StoreError> {
    store.run(&ReadSet::default(), &mut |_| changes.clone()).map(drop)
}

/// A period of board 2 as one that has begun.
fn begun(row: bool) -> WriteSet {
    let span = TimeSpan { start: Micros(0), end: Micros(9) };
    let row = row.then_some(WindowRow {
        window: PART,
        rule: 0,
        span,
        closed: false,
        version: 0,
        stale: false,
        total: 0,
    });
    let key = WindowKey { board: BoardNo(2), window: PART };
    let garbage = if row.is_none() { vec![Garbage::Window(key)] } else { Vec::new() };
    WriteSet { windows: vec![(key, row)], garbage, ..WriteSet::default() }
}

#[test]
fn a_database_that_was_away_learns_of_boards_before_it_is_used() {
    for anew in [false, true] {
        let world = World::new();
        let mut store = open(&world.through);
        for name in ["gone", "stays"] {
            create(&store, name, &Definition::default()).unwrap();
        }
        let player = counters(&store, "p").scores.into_iter();
        let player = player.map(|key| key.player).find(|player| store.shard_of(player) == 1).unwrap();
        let of = |board: u32, window: Window| key(board, window.0, player.as_str());
        for key in [of(1, Window(0)), of(2, Window(0)), of(2, PART)] {
            let mut changes = scores(vec![(key.clone(), Some(record(5)))]);
            if key.window == PART {
                changes.windows = begun(true).windows;
            }
            let plan = ReadSet { boards: vec![key.board], scores: vec![key], ..ReadSet::default() };
            store.run(&plan, &mut |_| changes.clone()).unwrap();
        }
        world.cut_off(1);
        let boards = vec![
            BoardChange::Delete(BoardNo(1)),
            BoardChange::Redefine(BoardNo(2), Definition::sorted_set()),
        ];
        alter(&store, &WriteSet { boards, ..WriteSet::default() }).unwrap();
        alter(&store, &begun(false)).unwrap();
        // Its name is free.
        create(&store, "gone", &Definition::default()).unwrap();
        let names: Vec<_> = store.boards().unwrap().into_iter().map(|row| row.no).collect();
        assert_eq!(names, [BoardNo(2), BoardNo(3)]);
        // The purge list of the first stays until the other knows.
        is_away(&store.purge_deleted(100));
        is_away(&store.records(&[of(2, Window(0))]));
        is_away(&store.unpurged(&[WindowKey { board: BoardNo(2), window: PART }], 1));
        if anew {
            drop(store);
            store = open(&world.urls);
        } else {
            world.proxies[1].pass();
            retry_while_unavailable(|| store.records(&[of(2, Window(0))]));
        }
        let boards: Vec<BoardNo> = (1..4).map(BoardNo).collect();
        let plan = ReadSet { boards, scores: vec![of(2, Window(0))], ..ReadSet::default() };
        let live = retry_while_unavailable(|| {
            store.run(&plan, &mut |_| WriteSet::default()).map(|_| load(&store, &plan))
        });
        let live: Vec<bool> = live.boards.iter().map(Option::is_some).collect();
        assert_eq!(live, [false, true, true], "anew: {anew}");
        assert!(store.windows(BoardNo(2)).unwrap().is_empty());
        while store.purge_deleted(100).unwrap() > 0 {}
        let found = store.records(&[of(1, Window(0)), of(2, Window(0)), of(2, PART)]).unwrap();
        assert_eq!(found, [None, Some(record(5)), None], "anew: {anew}");
        let unpurged =
            |shard| store.unpurged(&[WindowKey { board: BoardNo(2), window: PART }], shard).unwrap();
        assert_eq!([unpurged(0), unpurged(1)], [Vec::new(), Vec::new()]);
        // The number of the period can be used again.
        let plan = ReadSet { boards: vec![BoardNo(2)], scores: vec![of(2, PART)], ..ReadSet::default() };
        store.run(&plan, &mut |_| scores(vec![(of(2, PART), Some(record(6)))])).unwrap();
        while store.purge_deleted(100).unwrap() > 0 {}
        assert_eq!(store.records(&[of(2, PART)]).unwrap(), [Some(record(6))]);
    }
}

#[test]
fn a_start_tells_what_a_killed_process_had_no_time_for() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls: Vec<String> = (0..2).map(|_| server.create_database()).collect();
    let store = open(&urls);
    for name in ["a", "b"] {
        create(&store, name, &Definition::default()).unwrap();
    }
    drop(store);
    // As if it had been killed between the two: the other database does not know board 2, nor that 1 is deleted.
    let [first, other] = [0, 1].map(|at| urls[at as usize].rsplit('/').next().unwrap().to_owned());
    for (database, table, rows) in
        [(&first, "boards", "`no` = 1"), (&other, "boards", "`no` = 2"), (&other, "revisions", "board = 2")]
    {
        server.sql(&format!("DELETE FROM {database}.{table} WHERE {rows}"));
    }
    server.sql(&format!("UPDATE {first}.revisions SET gone = 1 WHERE board = 1"));
    server.sql(&format!("INSERT INTO {first}.deleted_boards VALUES (1)"));
    server.sql(&format!("UPDATE {other}.meta SET value = '2' WHERE name = 'store.next_board'"));
    let store = open(&urls);
    let names = server.sql(&format!("SELECT id FROM {other}.boards"));
    assert_eq!(names.trim(), "b");
    let plan = counters(&store, "p");
    let there = plan.scores.iter().find(|key| store.shard_of(&key.player) == 1).unwrap();
    let plan =
        ReadSet { boards: vec![BoardNo(1), BoardNo(2)], scores: vec![there.clone()], ..ReadSet::default() };
    let live: Vec<bool> = load(&store, &plan).boards.iter().map(Option::is_some).collect();
    assert_eq!(live, [false, true]);
}
