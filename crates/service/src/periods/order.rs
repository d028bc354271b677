//! The order of a closed period: loaded from its records, written in blocks, and read from them.
//!
//! Blocks are written under a new version in transactions of bounded size; the last one makes that version the one that
//! is read. A crash in between leaves the old order in force and rows that are written over or purged.

use crate::boards::Board;
use crate::failure::{Failure, Fault};
use tally_ranking::{PartOrder, Source, StoredBlock};
use tally_rules::{Micros, PlayerId, Record};
use tally_store::{
    Block, BlockKey, BoardNo, Changes, Gone, Part, PartKey, PartRow, Plan, ScoreKey, Store, StoreError,
};

/// Blocks of one transaction.
const BLOCKS_AT_ONCE: usize = 64;
/// Rows read in one go: large enough to hide the statement, small enough to show progress.
const WALK_ROWS: usize = 50_000;

/// Loads the order of a part from its records, without those who are hidden. `each` sees every record's instant.
pub(crate) fn load(
    store: &dyn Store,
    board: &Board,
    part: Part,
    order: &PartOrder,
    mut each: impl FnMut(Micros, u64),
) -> Result<(), Failure> {
    let mut loading = order.loading();
    let mut after = None;
    loop {
        let (mut last, mut newest) = (None, Micros(i64::MIN));
        let walked =
            store.walk_scores(board.no, part, after.as_ref(), WALK_ROWS, &mut |player, record| {
                newest = newest.max(record.at);
                if !board.hides(&player) {
                    loading.push(&player, &record);
                }
                last = Some(player);
            })?;
        each(newest, walked as u64);
        if walked < WALK_ROWS {
            break;
        }
        after = last;
    }
    let twice = |twice| Fault::Broken(format!("board `{}`: {twice}", board.id.as_str()));
    Ok(order.load(loading).map_err(twice)?)
}

/// Writes the order of a part, which must not change meanwhile, and closes it. An empty part goes instead.
pub(crate) fn write(
    store: &dyn Store,
    board: BoardNo,
    row: &PartRow,
    order: &PartOrder,
) -> Result<Option<PartRow>, StoreError> {
    let key = PartKey { board, part: row.part };
    let version = row.version + 1;
    let mut blocks: Vec<(BlockKey, Block)> = Vec::new();
    let flush = |blocks: &mut Vec<(BlockKey, Block)>| {
        let changes = Changes { blocks: std::mem::take(blocks), ..Changes::default() };
        store.run(&Plan::default(), &mut |_| changes.clone())
    };
    let total = order.blocks(|block, stored| {
        let StoredBlock { distinct_better, entries } = stored;
        blocks.push((BlockKey { part: key, version, block }, Block { distinct_better, entries }));
        if blocks.len() == BLOCKS_AT_ONCE { flush(&mut blocks) } else { Ok(()) }
    })?;
    flush(&mut blocks)?;
    let closed = PartRow { closed: true, version, stale: false, total, ..*row };
    let mut changes = Changes::default();
    // Hidden players have records and no place: they may be shown again.
    let empty = total == 0 && store.walk_scores(board, row.part, None, 1, &mut |_, _| {})? == 0;
    if empty {
        changes.parts.push((key, None));
        changes.gone.push(Gone::Part(key));
    } else {
        changes.parts.push((key, Some(closed)));
        if row.version > 0 {
            changes.gone.push(Gone::Blocks(key, row.version));
        }
    }
    store.run(&Plan::default(), &mut |_| changes.clone())?;
    Ok((!empty).then_some(closed))
}

/// Forgets closed periods.
pub(crate) fn forget(store: &dyn Store, board: BoardNo, parts: &[Part]) -> Result<(), StoreError> {
    let changes = removal(board, parts);
    if changes.is_empty() { Ok(()) } else { store.run(&Plan::default(), &mut |_| changes.clone()) }
}

/// The changes that remove parts.
pub(crate) fn removal(board: BoardNo, parts: &[Part]) -> Changes {
    let mut keys: Vec<PartKey> = parts.iter().map(|part| PartKey { board, part: *part }).collect();
    keys.sort_unstable();
    Changes {
        parts: keys.iter().map(|key| (*key, None)).collect(),
        gone: keys.into_iter().map(Gone::Part).collect(),
        ..Changes::default()
    }
}

/// The blocks and records of a closed part.
pub(crate) struct StoredPart<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) board: BoardNo,
    pub(crate) row: PartRow,
}

impl Source for StoredPart<'_> {
    type Error = StoreError;

    fn block(&self, block: u64) -> Result<StoredBlock, StoreError> {
        let part = PartKey { board: self.board, part: self.row.part };
        let found = self.store.block(&BlockKey { part, version: self.row.version, block })?;
        let Block { distinct_better, entries } = found.ok_or_else(|| self.corrupt(block))?;
        Ok(StoredBlock { distinct_better, entries })
    }

    fn record(&self, player: &PlayerId) -> Result<Option<Record>, StoreError> {
        let key = ScoreKey { board: self.board, part: self.row.part, player: player.clone() };
        Ok(self.store.records(std::slice::from_ref(&key))?.pop().flatten())
    }

    fn corrupt(&self, block: u64) -> StoreError {
        StoreError::Corrupt(format!("block {block} of part {} of board {}", self.row.part.0, self.board.0))
    }
}
