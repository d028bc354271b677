//! Boards, records, periods and archives at one moment, for [`Snapshot`].
//!
//! Not here: the moment itself (`snapshot`).

use super::bans::{self, Bans};
use super::contest_reads::{FIRST, entrant, merged};
use super::contests;
use super::memtable::Memtables;
use super::merge::merge;
use super::scores::{self, Scores};
use super::snapshot::{Newer, SqliteSnapshot};
use super::table::Table;
use super::windows::{self, Blocks, Deleted, Windows};
use crate::damage::score_text;
use crate::plan::{BanKey, BlockKey, BoardNo, Garbage, ScoreKey, StoredBlock, Window, WindowKey, WindowRow};
use crate::score_snapshot::{ArchiveKey, Boards, ScoreSnapshot, ToPurge};
use crate::snapshot::RowPage;
use crate::{CorruptRow, StoreError};
use rusqlite::{Row, params};
use std::collections::BTreeMap;
use std::ops::Bound;
use tally_rules::contest::Application;
use tally_rules::ledger::Uuid;
use tally_rules::{PlayerId, Record};

const SCORES: &str = "SELECT score, subscore, at, player, board, part FROM scores \
     WHERE (board, part, player) > (?1, ?2, ?3) ORDER BY board, part, player";
const WINDOWS: &str = "SELECT part, rule, starts, ends, closed, version, stale, total, board FROM parts \
     WHERE (board, part) > (?1, ?2) ORDER BY board, part";
const BLOCKS: &str = "SELECT distinct_better, entries, block FROM blocks \
     WHERE board = ?1 AND part = ?2 AND version = ?3 AND block >= ?4 ORDER BY block";
const DELETED_BOARDS: &str = "SELECT no FROM deleted_boards";
const ARCHIVES: &str = "SELECT DISTINCT board, part, version FROM blocks WHERE (board, part, version) > (?1, ?2, ?3) \
     ORDER BY board, part, version";
const DELETED_WINDOWS: &str = "SELECT board, part, version FROM deleted_parts";

/// The rows that were not in the tables at that moment.
pub(super) struct Scored {
    boards: Boards,
    damaged: Vec<CorruptRow>,
    purge: ToPurge,
    scores: BTreeMap<ScoreKey, Option<Record>>,
    windows: Newer<Windows>,
    blocks: Newer<Blocks>,
    bans: Newer<Bans>,
}

impl Scored {
    pub(super) fn of(memtables: &Memtables) -> Self {
        fn all<T: Table>(memtables: &Memtables) -> Newer<T> {
            memtables.range::<T>(Bound::Unbounded, |_| true, usize::MAX).0
        }
        let mut boards: Boards = memtables.boards.all().map(|row| (row.no, Some(row.clone()))).collect();
        boards.extend(memtables.boards.corrupt_rows().filter_map(|(no, _)| Some((no?, None))));
        boards.sort_unstable_by_key(|(no, _)| *no);
        let mut purge = ToPurge::default();
        all::<Deleted>(memtables).keys().for_each(|key| purge.add((*key).into()));
        let gone = all::<super::boards::Boards>(memtables).into_iter();
        purge.boards.extend(gone.filter_map(|(no, row)| row.is_none().then_some(no)));
        Self {
            boards,
            damaged: memtables.boards.corrupt_rows().map(|(_, row)| row.clone()).collect(),
            purge,
            scores: all::<Scores>(memtables).into_iter().map(|(key, row)| (key.into(), row)).collect(),
            windows: all::<Windows>(memtables),
            blocks: all::<Blocks>(memtables),
            bans: all::<Bans>(memtables),
        }
    }
}

fn window_key(row: &Row<'_>, board: usize, window: usize) -> Result<WindowKey, StoreError> {
    Ok(WindowKey {
        board: BoardNo(row.get(board)?),
        window: Window(row.get::<_, i64>(window)?.cast_unsigned()),
    })
}

/// Decodes a row of [`SCORES`].
pub(super) fn decode_score(row: &Row<'_>) -> Result<(ScoreKey, Record), StoreError> {
    let WindowKey { board, window } = window_key(row, 4, 5)?;
    let bytes = row.get_ref(3)?.as_bytes().unwrap_or_default();
    let read = scores::player(row).and_then(|player| Ok((player, scores::decode(row)?)));
    let (player, record) =
        read.map_err(|error| error.of_row("scores", || score_text((board, window), bytes)))?;
    Ok((ScoreKey { board, window, player }, record))
}

fn removed<K, V>(newer: &BTreeMap<K, Option<V>>) -> usize {
    newer.values().filter(|row| row.is_none()).count()
}

impl ScoreSnapshot for SqliteSnapshot<'_> {
    fn boards(&mut self) -> Result<Boards, StoreError> {
        self.damaged.get_mut().extend(self.newer.scored.damaged.iter().cloned());
        Ok(self.newer.scored.boards.clone())
    }

    fn to_purge(&mut self) -> Result<ToPurge, StoreError> {
        let mut purge = self.newer.scored.purge.clone();
        let board = |row: &Row<'_>| Ok((BoardNo(row.get(0)?), ()));
        let boards = self.page((DELETED_BOARDS, usize::MAX), [], board)?;
        purge.boards.extend(boards.into_iter().map(|(no, ())| no));
        let window = |row: &Row<'_>| Ok((window_key(row, 0, 1)?, row.get::<_, i64>(2)?));
        let windows = self.page((DELETED_WINDOWS, usize::MAX), [], window)?;
        windows.into_iter().for_each(|(window, version)| purge.add(Garbage::of(window, version)));
        Ok(purge)
    }

    fn scores(&mut self, after: Option<&ScoreKey>, limit: usize) -> RowPage<ScoreKey, Record> {
        let newer = &self.newer.scored.scores;
        let page_limit = limit.saturating_add(removed(newer));
        let (board, window) =
            after.map_or((-1, 0), |key| (i64::from(key.board.0), key.window.0.cast_signed()));
        let player = after.map_or("", |key| key.player.as_str());
        let page = self.page((SCORES, page_limit), params![board, window, player], decode_score)?;
        Ok(merge(page, newer, after, (page_limit, limit)))
    }

    fn scores_of(&mut self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut statement = self.reader.prepare_cached(scores::GET)?;
        let mut stored = |key: &ScoreKey| self.sound_at("scores", key, scores::get(&mut statement, key));
        let newer = |key: &ScoreKey| self.newer.scored.scores.get(key).copied();
        keys.iter().map(|key| newer(key).map_or_else(|| stored(key), Ok)).collect()
    }

    fn windows(&mut self, after: Option<WindowKey>, limit: usize) -> RowPage<WindowKey, WindowRow> {
        let newer = &self.newer.scored.windows;
        let page_limit = limit.saturating_add(removed(newer));
        let (board, window) =
            after.map_or((-1, 0), |key| (i64::from(key.board.0), key.window.0.cast_signed()));
        let page = self.page((WINDOWS, page_limit), params![board, window], |row| {
            let key = window_key(row, 8, 0)?;
            let name = || format!("{}/{}", key.board.0, key.window.0);
            Ok((key, windows::decode(row).map_err(|error| error.of_row("parts", name))?))
        })?;
        Ok(merge(page, newer, after.as_ref(), (page_limit, limit)))
    }

    fn blocks(
        &mut self,
        window: WindowKey,
        version: u32,
        from: u64,
        limit: usize,
    ) -> RowPage<u64, StoredBlock> {
        let key = |block| BlockKey { window, version, block };
        let newer = self.newer.scored.blocks.range(key(from)..=key(u64::MAX));
        let newer: BTreeMap<u64, Option<StoredBlock>> =
            newer.map(|(key, block)| (key.block, block.clone())).collect();
        let page_limit = limit.saturating_add(removed(&newer));
        let (board, number) = (window.board.0, windows::encode(window.window)?);
        let page =
            self.page((BLOCKS, page_limit), params![board, number, version, from.cast_signed()], |row| {
                let block = row.get::<_, i64>(2)?.cast_unsigned();
                let name = || format!("{board}/{number}/{version}/{block}");
                let read = windows::decode_block(row).map_err(|error| error.of_row("blocks", name));
                Ok((block, read?))
            })?;
        let after = from.checked_sub(1);
        Ok(merge(page, &newer, after.as_ref(), (page_limit, limit)))
    }

    fn archives(&mut self, after: Option<ArchiveKey>, limit: usize) -> RowPage<ArchiveKey, ()> {
        let (board, window, version) = after.map_or((-1, 0, 0), |(key, version)| {
            (i64::from(key.board.0), key.window.0.cast_signed(), version)
        });
        let decode = |row: &Row<'_>| Ok(((window_key(row, 0, 1)?, row.get(2)?), ()));
        let page = self.page((ARCHIVES, limit), params![board, window, version], decode)?;
        let mut all: BTreeMap<ArchiveKey, ()> = page.into_iter().collect();
        // Blocks are only removed from the tables, never in the memtable.
        let newer = self.newer.scored.blocks.keys().map(|key| (key.window, key.version));
        all.extend(newer.filter(|key| after.is_none_or(|after| *key > after)).map(|key| (key, ())));
        Ok(all.into_iter().take(limit).collect())
    }

    fn banned(&mut self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        let stored = self.sound(bans::of_board(&self.reader, board))?.unwrap_or_default();
        let mut all: BTreeMap<PlayerId, bool> = stored.into_iter().map(|player| (player, true)).collect();
        let of_board = |key: &&BanKey| key.board == board;
        let newer = self.newer.scored.bans.iter().filter(|(key, _)| of_board(key));
        all.extend(newer.map(|(key, banned)| (key.player.clone(), banned.is_some())));
        Ok(all.into_iter().filter_map(|(player, banned)| banned.then_some(player)).collect())
    }

    fn applications(
        &mut self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> RowPage<PlayerId, Application> {
        let is_after = |player: &PlayerId| after.is_none_or(|after| player > after);
        let newer = self.newer.applications.iter();
        let newer = newer.filter(|(key, _)| key.contest == contest && is_after(&key.player));
        let newer = newer.map(|(key, row)| (key.player.clone(), *row)).collect();
        let mut statement = self.reader.prepare_cached(FIRST)?;
        let mut rows = statement.query(params![contest.0, after.map_or("", PlayerId::as_str)])?;
        let order = |player: &PlayerId, _: &Application| player.clone();
        let decode =
            |row: &Row<'_>| Ok(self.sound(entrant(contest, row, 5, contests::decode_application))?.flatten());
        Ok(merged(newer, order, &mut rows, decode, limit)?.rows)
    }
}
