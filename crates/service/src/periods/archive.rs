//! The archive of a closed period: its ranking is loaded from its records and written in blocks.
//!
//! Blocks are written under a new version in transactions of bounded size; the last one makes readers use that version. A
//! crash in between leaves the old version in force; the new rows are written over or purged.

use super::LiveWindow;
use super::catch_up;
use super::scan::{self, Readers};
use crate::boards::Board;
use crate::damaged;
use crate::failure::{Failure, Fault};
use crate::scores::lane::ScoreLanes;
use crate::servers;
use crate::tally::Tally;
use tally_lanes::BarrierGuard;
use tally_ranking::{ArchiveBlock, ArchiveSource, MemoryRanking, WindowRanking};
use tally_rules::event::{Event, EventKind, PeriodClosed};
use tally_rules::{Micros, PlayerId, Record};
use tally_store::{
    BlockKey, BoardNo, CorruptRow, Garbage, Loaded, ReadSet, Revisions, ScoreKey, ShardSet, Store,
    StoreError, StoredBlock, Topic, Window, WindowKey, WindowRow, WriteSet,
};

/// Blocks of one transaction.
const BLOCKS_AT_ONCE: usize = 64;

/// Loads a ranking from its records, without banned players. `each` gets the progress.
pub(crate) fn load(
    store: &dyn Store,
    board: &Board,
    window: Window,
    ranking: &MemoryRanking,
    readers: Readers,
    mut each: impl FnMut(LoadStep),
) -> Result<(), Failure> {
    let loading = scan::load((store, board, window), ranking, readers, |newest, rows| {
        each(LoadStep::Read { newest, rows });
    })?;
    let of = loading.count();
    let twice = |twice| Fault::Broken(format!("board `{}`: {twice}", board.id.as_str()));
    ranking.load(loading, |placed| each(LoadStep::Placed { placed, of })).map_err(twice)?;
    each(LoadStep::Placed { placed: of, of });
    damaged::log_all(store);
    Ok(())
}

/// The progress of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LoadStep {
    /// Some rows have been read, the newest of that instant.
    Read { newest: Micros, rows: u64 },
    /// So many of all rows that were read are in the ranking.
    Placed { placed: u64, of: u64 },
}

/// Makes a ranking exact, in memory or in Redis, whatever it has.
pub(crate) fn fill(
    store: &dyn Store,
    board: &Board,
    window: Window,
    ranking: &WindowRanking,
    readers: Readers,
    each: impl FnMut(LoadStep),
) -> Result<(), Failure> {
    match ranking {
        WindowRanking::Memory(ranking) => load(store, board, window, ranking, readers, each),
        WindowRanking::Redis(remote) => catch_up::fill(store, (board.no, window), remote.load_all()?, each),
    }
}

/// The ranking of an open window in memory: its own, or one built from its records if it is kept in Redis.
pub(crate) fn in_memory<T>(
    store: &dyn Store,
    board: &Board,
    live: &LiveWindow,
    with: impl FnOnce(&MemoryRanking) -> Result<T, StoreError>,
) -> Result<T, Failure> {
    if let Some(ranking) = live.ranking.memory() {
        return Ok(with(ranking)?);
    }
    let ranking = MemoryRanking::new(&board.definition);
    load(store, board, live.window, &ranking, Readers::Few, |_| {})?;
    Ok(with(&ranking)?)
}

/// The destination of archives: the store, and the lanes that change rows of the same windows, if any run.
#[derive(Clone, Copy)]
pub(crate) struct ArchivePlace<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) lanes: Option<&'a ScoreLanes>,
}

impl<'a> ArchivePlace<'a> {
    /// That of a running service.
    pub(crate) fn of(tally: &'a Tally) -> Self {
        Self { store: &*tally.store, lanes: Some(&tally.lane) }
    }

    /// Keeps the lanes from a batch that depends on an older row of a window. With several servers revisions do that.
    pub(crate) fn hold(self, is_shared: bool) -> Result<Option<BarrierGuard>, StoreError> {
        let held = self.lanes.filter(|_| !is_shared).map(ScoreLanes::hold).transpose();
        held.map_err(|failure| StoreError::Conflict(failure.to_string()))
    }
}

/// The outcome of writing an archive.
#[derive(Debug)]
pub(crate) enum Written {
    /// It is stored; nothing is left of a window without records. The lanes wait until the memory is updated.
    Closed(Option<WindowRow>, Option<BarrierGuard>),
    /// The records have changed meanwhile: the written archive is not in force.
    RecordsChanged,
}

/// The event of a period that is closed: its names, and when that is.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    period: String,
    name: String,
    now: Micros,
}

impl Naming {
    /// Of a window, while its rule is there.
    pub(crate) fn of(board: &Board, row: &WindowRow, now: Micros) -> Option<Self> {
        let periods = board.periods();
        let state = periods.rule_no(row.rule)?;
        Some(Self { period: state.name(row.span.start), name: state.rule.name.clone(), now })
    }

    fn event(self, row: &WindowRow) -> Event {
        let Self { period, name, now } = self;
        let closed = PeriodClosed { period, name, span: row.span, total: row.total };
        Event { at: now, what: EventKind::PeriodClosed(closed) }
    }
}

/// The state of a closed window when its ranking begins to be read.
#[derive(Clone, Debug)]
pub(crate) struct Basis<'a> {
    board: &'a Board,
    /// The revisions of its board, if other servers change that too.
    revisions: Option<Revisions>,
    /// How many batches of this server had changed its records.
    batches: u64,
}

impl<'a> Basis<'a> {
    /// Of a window, as it is now.
    pub(crate) fn of(board: &'a Board, window: Window) -> Self {
        Self { board, revisions: board.shared_revisions(), batches: board.stale.count(window) }
    }
}

/// Writes the archive of a window and closes it. An empty window is removed instead, unless it is to be kept. It writes
/// nothing for a deleted board, or if another server has changed the board since. So servers that write the same blocks at
/// once write the same. The window stays outdated if a batch of this server has changed its records since.
pub(crate) fn write(
    place: ArchivePlace<'_>,
    Basis { board, revisions, batches }: Basis<'_>,
    (row, naming): (&WindowRow, Option<Naming>),
    ranking: &MemoryRanking,
    keep_empty: bool,
) -> Result<Written, StoreError> {
    let (counts, board) = (&board.stale, board.no);
    let (store, key) = (place.store, WindowKey { board, window: row.window });
    let (version, changes) = (row.version + 1, ranking.changes());
    let run = |changes: WriteSet| {
        // In the end every database is locked, so the reads are current.
        let alone = !changes.windows.is_empty();
        let shards =
            if alone && revisions.is_some() { ShardSet::first(store.shards()) } else { ShardSet::default() };
        let plan = ReadSet { boards: vec![board], exclusive: alone, shards, ..ReadSet::default() };
        let mut moved = false;
        let mut decide = |loaded: &Loaded| {
            moved = revisions.as_ref().is_some_and(|known| {
                let mut elsewhere = loaded.boards_elsewhere.iter().map(|(shard, boards)| (*shard, boards[0]));
                let is_other =
                    |(shard, now): (usize, Option<u64>)| now.is_some_and(|now| !known.holds(shard, now));
                is_other((0, loaded.boards[0])) || elsewhere.any(is_other)
            });
            if moved || loaded.boards[0].is_none() { WriteSet::default() } else { changes.clone() }
        };
        servers::run(store, &plan, &mut decide).map(|_| moved)
    };
    let (mut blocks, mut moved): (Vec<(BlockKey, StoredBlock)>, _) = (Vec::new(), false);
    let total = ranking.blocks(|block, stored| {
        let ArchiveBlock { distinct_better, entries } = stored;
        blocks.push((BlockKey { window: key, version, block }, StoredBlock { distinct_better, entries }));
        if blocks.len() < BLOCKS_AT_ONCE {
            return Ok::<(), StoreError>(());
        }
        moved |= run(WriteSet { blocks: std::mem::take(&mut blocks), ..WriteSet::default() })?;
        Ok(())
    })?;
    let held = place.hold(revisions.is_some())?;
    if moved || ranking.changes() != changes {
        return Ok(Written::RecordsChanged);
    }
    let stale = counts.count(row.window) != batches;
    let closed = WindowRow { closed: true, version, stale, total, ..*row };
    let mut last = WriteSet { blocks, ..WriteSet::default() };
    // Banned players have records and no rank: they may be restored.
    let empty = total == 0
        && !keep_empty
        && store.scan_scores(board, row.window, None, 1, &mut |_, _| {})? == 0
        && !damaged::has_records(store, board, row.window);
    last.windows.push((key, (!empty).then_some(closed)));
    // Lists leave out those that have no players.
    if row.total == 0 && total > 0 {
        let event = naming.map(|naming| (Topic::Board(board), naming.event(&closed)));
        last.ledger.events.extend(event);
    }
    if row.version > 0 {
        last.garbage.push(Garbage::Blocks(key, row.version));
    }
    if run(last)? {
        return Ok(Written::RecordsChanged);
    }
    if !stale {
        counts.forget(row.window);
    }
    Ok(Written::Closed((!empty).then_some(closed), held))
}

/// Forgets closed periods.
pub(crate) fn forget(store: &dyn Store, board: BoardNo, windows: &[Window]) -> Result<(), StoreError> {
    let changes = removal(board, windows);
    if changes.is_empty() {
        return Ok(());
    }
    servers::run(store, &ReadSet::default(), &mut |_| changes.clone()).map(drop)
}

/// The changes that remove windows.
pub(crate) fn removal(board: BoardNo, windows: &[Window]) -> WriteSet {
    let mut keys: Vec<WindowKey> =
        windows.iter().map(|window| WindowKey { board, window: *window }).collect();
    keys.sort_unstable();
    WriteSet {
        windows: keys.iter().map(|key| (*key, None)).collect(),
        garbage: keys.into_iter().map(Garbage::Window).collect(),
        ..WriteSet::default()
    }
}

/// The blocks and records of a closed window.
pub(crate) struct StoredWindow<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) board: BoardNo,
    pub(crate) row: WindowRow,
}

impl ArchiveSource for StoredWindow<'_> {
    type Error = StoreError;

    fn block(&self, block: u64) -> Result<ArchiveBlock, StoreError> {
        let window = WindowKey { board: self.board, window: self.row.window };
        let found = self.store.block(&BlockKey { window, version: self.row.version, block })?;
        let StoredBlock { distinct_better, entries } = found.ok_or_else(|| self.corrupt(block))?;
        Ok(ArchiveBlock { distinct_better, entries })
    }

    fn record(&self, player: &PlayerId) -> Result<Option<Record>, StoreError> {
        let key = ScoreKey { board: self.board, window: self.row.window, player: player.clone() };
        Ok(self.store.records(std::slice::from_ref(&key))?.pop().flatten())
    }

    fn corrupt(&self, block: u64) -> StoreError {
        let key = format!("{}/{}/{}/{block}", self.board.0, self.row.window.0, self.row.version);
        StoreError::CorruptRow(Box::new(CorruptRow {
            table: "blocks",
            key,
            what: "it is missing or does not decode".into(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tally_ranking::{RankingBackend, RankingChange};
    use tally_rules::period::TimeSpan;
    use tally_rules::{BoardId, Definition};
    use tally_store::sqlite::{Options, SqliteStore};
    use tally_store::{BoardChange, BoardRow, Reads, Transactions};

    fn change(number: u32, shown: bool) -> RankingChange {
        let record = Record { score: i64::from(number), subscore: 0, at: Micros(0) };
        let player = PlayerId::new(&format!("p{number}")).unwrap();
        RankingChange { player, record: shown.then_some(record), ranked: false }
    }

    /// A store with the board, if it is to be there.
    fn store(folder: &tempfile::TempDir, board: Option<BoardNo>) -> SqliteStore {
        let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
        if let Some(no) = board {
            let (id, definition) = (BoardId::new("b").unwrap(), Definition::default());
            let row = BoardRow { no, id, definition, created_at: Micros(0) };
            let create = WriteSet { boards: vec![BoardChange::Create(row)], ..WriteSet::default() };
            store.run(&ReadSet::default(), &mut |_| create.clone()).unwrap();
        }
        store
    }

    /// The board in memory.
    fn board() -> Board {
        let (no, id, definition) = (BoardNo(1), BoardId::new("b").unwrap(), Definition::default());
        let row = BoardRow { no, id, definition, created_at: Micros(0) };
        Board::new(row, Vec::new(), &RankingBackend::Memory).unwrap()
    }

    fn place(store: &SqliteStore) -> ArchivePlace<'_> {
        ArchivePlace { store, lanes: None }
    }

    fn row() -> WindowRow {
        let (window, span) = (Window(1 << 40), TimeSpan { start: Micros(0), end: Micros(9) });
        WindowRow { window, rule: 0, span, closed: true, version: 0, stale: false, total: 0 }
    }

    #[test]
    fn an_order_that_moves_is_not_closed() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, Some(BoardNo(1)));
        let (ranking, board) = (MemoryRanking::new(&Definition::default()), board());
        ranking.publish(&(0..2_000).map(|number| change(number, true)).collect::<Vec<_>>(), |_, _| {});
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    ranking.publish(&[change(7, false)], |_, _| {});
                    ranking.publish(&[change(7, true)], |_, _| {});
                }
            });
            // Whether the two overlap depends on the machine.
            let moved = (0..500).any(|_| {
                matches!(
                    write(place(&store), Basis::of(&board, row().window), (&row(), None), &ranking, false),
                    Ok(Written::RecordsChanged)
                )
            });
            stop.store(true, Ordering::SeqCst);
            assert!(moved);
        });
        let basis = Basis::of(&board, row().window);
        let written = write(place(&store), basis, (&row(), None), &ranking, false).unwrap();
        let Written::Closed(Some(closed), None) = written else { panic!("{written:?}") };
        assert_eq!((closed.total, closed.version), (2_000, 1));
        assert_eq!(store.windows(BoardNo(1)).unwrap(), [closed]);
    }

    #[test]
    fn nothing_is_written_of_a_board_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, None);
        let ranking = MemoryRanking::new(&Definition::default());
        ranking.publish(&[change(1, true)], |_, _| {});
        let board = board();
        let basis = Basis::of(&board, row().window);
        write(place(&store), basis, (&row(), None), &ranking, false).unwrap();
        let window = WindowKey { board: BoardNo(1), window: row().window };
        assert_eq!(store.block(&BlockKey { window, version: 1, block: 0 }).unwrap(), None);
        assert_eq!(store.windows(BoardNo(1)).unwrap(), []);
    }
}
