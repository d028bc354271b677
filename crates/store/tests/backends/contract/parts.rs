//! Periods, the blocks of closed ones, and their purge.

use super::*;
use tally_rules::period::Span;
use tally_store::{Block, BlockKey, Gone, PartKey, PartRow};

pub(super) fn part(board: u32, part: u64) -> PartKey {
    PartKey { board: BoardNo(board), part: Part(part) }
}

pub(crate) fn row(part: u64, closed: bool, version: u32) -> PartRow {
    let span = Span { start: Micros(-1), end: Micros(i64::MAX) };
    PartRow { part: Part(part), rule: 7, span, closed, version, stale: closed, total: part }
}

pub(super) fn block(of: PartKey, version: u32, block: u64) -> (BlockKey, Block) {
    let entries = vec![u8::try_from(block).unwrap(); 3];
    (BlockKey { part: of, version, block }, Block { distinct_better: block, entries })
}

fn blocks_of(store: &dyn Store, of: PartKey, version: u32) -> usize {
    (0..10)
        .filter(|number| store.block(&BlockKey { part: of, version, block: *number }).unwrap().is_some())
        .count()
}

pub(crate) fn periods_read_back_and_are_replaced(backend: &dyn Backend) {
    let store = open(backend);
    let last = i64::MAX.cast_unsigned();
    let parts = vec![
        (part(1, 5), Some(row(5, false, 0))),
        (part(1, last), Some(row(last, true, 1))),
        (part(2, 5), Some(row(5, true, 9))),
    ];
    write(&*store, &Changes { parts, ..Changes::default() }).unwrap();
    assert_eq!(store.parts(BoardNo(1)).unwrap(), [row(5, false, 0), row(last, true, 1)]);
    let parts = vec![(part(1, 5), Some(row(5, true, 2))), (part(1, last), None)];
    write(&*store, &Changes { parts, ..Changes::default() }).unwrap();
    drop(store);
    let store = open(backend);
    assert_eq!(store.parts(BoardNo(1)).unwrap(), [row(5, true, 2)]);
    assert_eq!(store.parts(BoardNo(2)).unwrap(), [row(5, true, 9)]);
}

pub(crate) fn blocks_read_back_by_version(backend: &dyn Backend) {
    let store = open(backend);
    let of = part(1, 5);
    let blocks = vec![block(of, 1, 0), block(of, 1, 1), block(of, 2, 0)];
    write(&*store, &Changes { blocks: blocks.clone(), ..Changes::default() }).unwrap();
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

pub(crate) fn what_is_gone_is_purged_and_nothing_else(backend: &dyn Backend) {
    let store = open(backend);
    let (gone, kept) = (part(1, 5), part(1, 6));
    let rows = [("a", 5), ("b", 5), ("a", 6)];
    let rows = rows.map(|(player, part)| (key(1, part, player), Some(record(1))));
    let blocks = vec![block(gone, 1, 0), block(gone, 1, 1), block(kept, 1, 0), block(kept, 2, 0)];
    let gone_things = vec![Gone::Part(gone), Gone::Blocks(kept, 1)];
    write(&*store, &Changes { blocks, gone: gone_things, ..scores(rows.to_vec()) }).unwrap();
    assert_eq!(store.purge_deleted(3).unwrap(), 3);
    drop(store);
    let store = open(backend);
    assert_eq!(store.purge_deleted(100).unwrap(), 2);
    assert_eq!(store.purge_deleted(100).unwrap(), 0);
    assert_eq!(
        (blocks_of(&*store, gone, 1), blocks_of(&*store, kept, 1), blocks_of(&*store, kept, 2)),
        (0, 0, 1)
    );
    assert_eq!(store.count_scores(BoardNo(1), Part(5)).unwrap(), 0);
    assert_eq!(store.count_scores(BoardNo(1), Part(6)).unwrap(), 1);
}
