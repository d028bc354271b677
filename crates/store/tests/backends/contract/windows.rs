//! Periods, the blocks of closed ones, and their purge.

use super::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tally_rules::period::TimeSpan;
use tally_store::{BlockKey, Garbage, StoredBlock, WindowKey, WindowRow};
use tally_testkit::{GIVE_UP, SetAtEnd};

pub(super) fn window(board: u32, window: u64) -> WindowKey {
    WindowKey { board: BoardNo(board), window: Window(window) }
}

pub(crate) fn row(window: u64, closed: bool, version: u32) -> WindowRow {
    let span = TimeSpan { start: Micros(-1), end: Micros(i64::MAX) };
    WindowRow { window: Window(window), rule: 7, span, closed, version, stale: closed, total: window }
}

pub(super) fn block(of: WindowKey, version: u32, block: u64) -> (BlockKey, StoredBlock) {
    let entries = vec![u8::try_from(block).unwrap(); 3];
    (BlockKey { window: of, version, block }, StoredBlock { distinct_better: block, entries })
}

fn blocks_of(store: &dyn Store, of: WindowKey, version: u32) -> usize {
    (0..10)
        .filter(|number| store.block(&BlockKey { window: of, version, block: *number }).unwrap().is_some())
        .count()
}

pub(crate) fn periods_read_back_and_are_replaced(backend: &dyn Backend) {
    let store = open(backend);
    let last = i64::MAX.cast_unsigned();
    let windows = vec![
        (window(1, 5), Some(row(5, false, 0))),
        (window(1, last), Some(row(last, true, 1))),
        (window(2, 5), Some(row(5, true, 9))),
    ];
    write(&*store, &WriteSet { windows, ..WriteSet::default() }).unwrap();
    assert_eq!(store.windows(BoardNo(1)).unwrap(), [row(5, false, 0), row(last, true, 1)]);
    let windows = vec![(window(1, 5), Some(row(5, true, 2))), (window(1, last), None)];
    write(&*store, &WriteSet { windows, ..WriteSet::default() }).unwrap();
    drop(store);
    let store = open(backend);
    assert_eq!(store.windows(BoardNo(1)).unwrap(), [row(5, true, 2)]);
    assert_eq!(store.windows(BoardNo(2)).unwrap(), [row(5, true, 9)]);
}

pub(crate) fn blocks_read_back_by_version(backend: &dyn Backend) {
    let store = open(backend);
    let of = window(1, 5);
    let blocks = vec![block(of, 1, 0), block(of, 1, 1), block(of, 2, 0)];
    write(&*store, &WriteSet { blocks: blocks.clone(), ..WriteSet::default() }).unwrap();
    drop(store);
    let store = open(backend);
    for (key, block) in blocks {
        assert_eq!(store.block(&key).unwrap(), Some(block));
    }
    assert_eq!((blocks_of(&*store, of, 1), blocks_of(&*store, of, 2), blocks_of(&*store, of, 3)), (2, 1, 0));
    let keys = [key(1, 5, "a"), key(1, 5, "b")];
    write(&*store, &scores(vec![(keys[1].clone(), Some(record(3)))])).unwrap();
    assert_eq!(store.records(&keys).unwrap(), [None, Some(record(3))]);
}

pub(crate) fn a_window_waits_until_all_of_it_is_purged(backend: &dyn Backend) {
    let store = open(backend);
    let (gone, other, kept) = (window(1, 5), window(1, 6), window(2, 5));
    let rows = [key(1, 5, "a"), key(1, 5, "b"), key(1, 6, "a"), key(2, 5, "a")];
    let rows = rows.map(|key| (key, Some(record(1))));
    let blocks = vec![block(gone, 1, 0), block(gone, 2, 0), block(other, 1, 0), block(kept, 1, 0)];
    let things = vec![Garbage::Window(other), Garbage::Blocks(gone, 1), Garbage::Window(gone)];
    write(&*store, &WriteSet { blocks, garbage: things, ..scores(rows.to_vec()) }).unwrap();
    let all = [gone, other, kept];
    let unpurged = |store: &dyn Store| {
        let each = (0..store.shards()).flat_map(|shard| store.unpurged(&all, shard).unwrap());
        each.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(unpurged(&*store), [gone, other]);
    assert_eq!(store.unpurged(&[], 0).unwrap(), []);
    drop(store);
    let store = open(backend);
    assert_eq!(unpurged(&*store), [gone, other]);
    assert!(!store.purge_window(gone, 1).unwrap());
    assert_eq!(unpurged(&*store), [gone, other]);
    while !store.purge_window(gone, 2).unwrap() {}
    assert_eq!(unpurged(&*store), [other]);
    assert!(store.purge_window(kept, 100).unwrap());
    let count = |board, window| store.count_scores(BoardNo(board), Window(window)).unwrap();
    assert_eq!((count(1, 5), count(1, 6), count(2, 5)), (0, 1, 1));
    let left = |of| blocks_of(&*store, of, 1) + blocks_of(&*store, of, 2);
    assert_eq!((left(gone), left(other), left(kept)), (0, 1, 1));
    while store.purge_deleted(100).unwrap() > 0 {}
    assert_eq!(unpurged(&*store), []);
    assert_eq!((count(1, 6), count(2, 5)), (0, 1));
}

pub(crate) fn a_window_that_is_used_again_loses_nothing_to_another_purge(backend: &dyn Backend) {
    let store = open(backend);
    let (of, stop) = (window(1, 5), AtomicBool::new(false));
    let rows = |score: i64| {
        let names = (0..20).map(|nth| key(1, 5, &format!("p{nth:02}")));
        scores(names.map(|key| (key, Some(record(score)))).collect())
    };
    std::thread::scope(|scope| {
        let _end = SetAtEnd::new(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                // Both purge the same rows: on a database one of them may be the victim of a deadlock.
                drop(store.purge_deleted(7));
            }
        });
        for life in 0..25 {
            write(&*store, &rows(life)).unwrap();
            write(&*store, &WriteSet { garbage: vec![Garbage::Window(of)], ..WriteSet::default() }).unwrap();
            let began = Instant::now();
            while !matches!(store.purge_window(of, 7), Ok(true)) {
                assert!(began.elapsed() < GIVE_UP, "life {life} is never purged");
            }
            assert_eq!(store.count_scores(BoardNo(1), Window(5)).unwrap(), 0);
            write(&*store, &WriteSet { blocks: vec![block(of, 1, 0)], ..rows(life) }).unwrap();
            std::thread::yield_now();
            let left = store.records(&[key(1, 5, "p00"), key(1, 5, "p19")]).unwrap();
            assert_eq!(left, [Some(record(life)), Some(record(life))], "life {life}");
            assert_eq!(blocks_of(&*store, of, 1), 1, "life {life}");
        }
    });
}

pub(crate) fn what_is_deleted_is_purged_and_nothing_else(backend: &dyn Backend) {
    let store = open(backend);
    let (gone, kept) = (window(1, 5), window(1, 6));
    let rows = [("a", 5), ("b", 5), ("a", 6)];
    let rows = rows.map(|(player, window)| (key(1, window, player), Some(record(1))));
    let blocks = vec![block(gone, 1, 0), block(gone, 1, 1), block(kept, 1, 0), block(kept, 2, 0)];
    let gone_things = vec![Garbage::Window(gone), Garbage::Blocks(kept, 1)];
    write(&*store, &WriteSet { blocks, garbage: gone_things, ..scores(rows.to_vec()) }).unwrap();
    assert_eq!(store.purge_deleted(3).unwrap(), 3);
    drop(store);
    let store = open(backend);
    assert_eq!(store.purge_deleted(100).unwrap(), 2);
    assert_eq!(store.purge_deleted(100).unwrap(), 0);
    assert_eq!(
        (blocks_of(&*store, gone, 1), blocks_of(&*store, kept, 1), blocks_of(&*store, kept, 2)),
        (0, 0, 1)
    );
    assert_eq!(store.count_scores(BoardNo(1), Window(5)).unwrap(), 0);
    assert_eq!(store.count_scores(BoardNo(1), Window(6)).unwrap(), 1);
}
