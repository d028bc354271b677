//! Merged reads of the memtable and the tables.

use super::bans::{self, Bans};
use super::imports::{self, Imports};
use super::keys::{self, Keys};
use super::memtable::Memtables;
use super::profiles::{self, Profiles};
use super::scores::{self, NearKey, Scores};
use super::state::Shared;
use super::windows::{self, Blocks, Windows};
use super::{SqliteStore, audit, meta};
use crate::damage::KeyText;
use crate::plan::{
    BanKey, BlockKey, BoardNo, BoardRow, ImportKey, ImportRow, KeyRow, ScoreKey, StoredBlock, Window,
    WindowKey, WindowRow,
};
use crate::{CorruptRow, Ledger, Listing, Reads, StoreError};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::ops::Bound;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::profile::Profile;
use tally_rules::{PlayerId, Record};

/// The maximum number of records of one moment in a scan: they are copied while writers wait. A longer scan reads several
/// moments.
const SCAN_ROWS: usize = 10_000;

impl Reads for SqliteStore {
    fn ledger(&self) -> &dyn Ledger {
        self
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        Ok(self.shared.memtables().boards.all().cloned().collect())
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        keys(&self.shared)
    }

    fn had_keys(&self) -> Result<bool, StoreError> {
        had_keys(&self.shared)
    }

    fn list_audit(
        &self,
        before: AuditId,
        limit: usize,
    ) -> Result<Listing<(AuditId, AuditEntry)>, StoreError> {
        audit::list(&self.shared, before, limit)
    }

    fn scan_versions(
        &self,
        board: BoardNo,
        window: Window,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        scan(&self.shared, (board, window), after, limit, &mut |player, record| each(player, record, 0))
    }

    fn windows(&self, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
        windows(&self.shared, board)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<StoredBlock>, StoreError> {
        block(&self.shared, key)
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        records(&self.shared, keys)
    }

    fn count_scores(&self, board: BoardNo, window: Window) -> Result<u64, StoreError> {
        count(&self.shared, board, window)
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        import(&self.shared, key)
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        banned(&self.shared, board)
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        profiles(&self.shared, players)
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.shared.read(|_| (), |(), tables| meta::get(tables, name))
    }
}

/// The state of each key in the memtable: nothing, a removed row, or a row.
pub(super) type MemtableStates<V> = Vec<Option<Option<V>>>;

/// Reads keys from a table that the memtable does not have. The error of a corrupt row gets its key.
pub(super) fn fill<K: KeyText, V>(
    table: &'static str,
    found: MemtableStates<V>,
    keys: &[K],
    mut of_tables: impl FnMut(&K) -> Result<Option<V>, StoreError>,
) -> Result<Vec<Option<V>>, StoreError> {
    let mut read = |key| of_tables(key).map_err(|error| error.of_row(table, || key.text()));
    found.into_iter().zip(keys).map(|(found, key)| found.map_or_else(|| read(key), Ok)).collect()
}

/// One row by its key.
pub(super) fn one<K: KeyText, V>(
    shared: &Shared,
    table: &'static str,
    in_memory: impl FnOnce(&Memtables) -> Option<Option<V>>,
    key: &K,
    of_tables: impl FnOnce(&Connection, &K) -> Result<Option<V>, StoreError>,
) -> Result<Option<V>, StoreError> {
    let read = |found: Option<Option<V>>, tables: &Connection| match found {
        Some(found) => Ok(found),
        None => of_tables(tables, key).map_err(|error| error.of_row(table, || key.text())),
    };
    shared.read(in_memory, read)
}

/// The player before all others.
fn first_player() -> PlayerId {
    PlayerId::new("\0").expect("a name of one byte")
}

pub(super) fn records(shared: &Shared, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
    let in_memory = |memtables: &Memtables| {
        keys.iter().map(|key| memtables.get::<Scores>(&key.clone().into()).copied()).collect()
    };
    shared.read(in_memory, |found: MemtableStates<Record>, tables| {
        let mut statement = tables.prepare_cached(scores::GET)?;
        fill("scores", found, keys, |key| scores::get(&mut statement, key))
    })
}

pub(super) fn import(shared: &Shared, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
    let in_memory = |memtables: &Memtables| memtables.get::<Imports>(key).copied();
    one(shared, "imports", in_memory, key, imports::get)
}

pub(super) fn block(shared: &Shared, key: &BlockKey) -> Result<Option<StoredBlock>, StoreError> {
    let in_memory = |memtables: &Memtables| memtables.get::<Blocks>(key).cloned();
    one(shared, "blocks", in_memory, key, windows::block)
}

/// Each profile is separate: a corrupt one fails alone.
pub(super) fn profiles(
    shared: &Shared,
    players: &[PlayerId],
) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
    let in_memory = |memtables: &Memtables| {
        players.iter().map(|player| memtables.get::<Profiles>(player).cloned()).collect()
    };
    shared.read(in_memory, |found: MemtableStates<Profile>, tables| {
        let stored = |player: &PlayerId| {
            let read = profiles::get(tables, player);
            shared.damages.noted(read.map_err(|error| error.of_row("profiles", || player.text())))
        };
        let each = found.into_iter().zip(players);
        Ok(each.map(|(found, player)| found.map_or_else(|| stored(player), Ok)).collect())
    })
}

/// Keys that are not revoked, in order of creation.
pub(super) fn keys(shared: &Shared) -> Result<Vec<KeyRow>, StoreError> {
    let in_memory = |memtables: &Memtables| memtables.range::<Keys>(Bound::Unbounded, |_| true, usize::MAX).0;
    shared.read(in_memory, |newer, tables| {
        let stored = keys::all(tables, &mut |row| shared.damages.note(&row))?;
        let mut states: BTreeMap<_, _> =
            stored.into_iter().map(|state| (state.row.id.clone(), state)).collect();
        states.extend(newer.into_iter().filter_map(|(id, state)| Some((id, state?))));
        let live = states.into_values().filter(|state| state.revoked_at.is_none());
        let by_age: BTreeMap<u32, KeyRow> = live.map(|state| (state.no, state.row)).collect();
        Ok(by_age.into_values().collect())
    })
}

/// Whether a key was ever created: revoked ones stay.
pub(super) fn had_keys(shared: &Shared) -> Result<bool, StoreError> {
    let in_memory = |memtables: &Memtables| memtables.range::<Keys>(Bound::Unbounded, |_| true, 1).0;
    shared.read(in_memory, |newer, tables| Ok(!newer.is_empty() || keys::last(tables)? > 0))
}

pub(super) fn banned(shared: &Shared, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
    let from = BanKey { board, player: first_player() };
    let in_memory = |memtables: &Memtables| {
        memtables.range::<Bans>(Bound::Included(from), |key| key.board == board, usize::MAX).0
    };
    shared.read(in_memory, |newer, tables| {
        let stored = bans::of_board(tables, board);
        let stored = stored.map_err(|error| error.of_row("bans", || board.0.to_string()))?;
        let old = stored.into_iter().map(|player| (player, Some(())));
        let mut all: BTreeMap<_, _> = old.collect();
        all.extend(newer.into_iter().map(|(key, banned)| (key.player, banned)));
        Ok(all.into_iter().filter_map(|(player, banned)| banned.map(|()| player)).collect())
    })
}

pub(super) fn windows(shared: &Shared, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
    let from = WindowKey { board, window: Window(0) };
    let in_memory = |memtables: &Memtables| {
        memtables.range::<Windows>(Bound::Included(from), |key| key.board == board, usize::MAX).0
    };
    shared.read(in_memory, |newer, tables| {
        let stored = windows::of_board(tables, board);
        let stored = stored.map_err(|error| error.of_row("parts", || board.0.to_string()))?;
        let old = stored.into_iter().map(|row| (row.window, Some(row)));
        let mut all: BTreeMap<_, _> = old.collect();
        all.extend(newer.into_iter().map(|(key, row)| (key.window, row)));
        Ok(all.into_values().flatten().collect())
    })
}

/// Counts the rows of the tables and of the memtable: an upper bound.
pub(super) fn count(shared: &Shared, board: BoardNo, window: Window) -> Result<u64, StoreError> {
    let waits = |memtables: &Memtables| -> usize {
        memtables.each().map(|memtable| memtable.layer::<Scores>().rows().len()).sum()
    };
    if waits(&shared.memtables()) > SCAN_ROWS {
        shared.flushing.flush_now(shared)?;
    }
    let in_memory = |memtables: &Memtables| {
        let from = Bound::Included(NearKey::new(board, window, first_player()));
        let (found, _) = memtables.range::<Scores>(from, |key| key.is_of(board, window), usize::MAX);
        found.into_values().flatten().count() as u64
    };
    shared.read(in_memory, |found, tables| Ok(found + scores::count(tables, board, window)?))
}

/// See [`crate::Reads::scan_versions`].
pub(super) fn scan(
    shared: &Shared,
    of: (BoardNo, Window),
    after: Option<&PlayerId>,
    limit: usize,
    each: &mut dyn FnMut(PlayerId, Record),
) -> Result<usize, StoreError> {
    let mut after = after.cloned();
    let mut read = 0;
    while read < limit {
        let want = SCAN_ROWS.min(limit - read);
        let mut last = None;
        let mut count = 0;
        let stopped_at = scan_some(shared, of, after.as_ref(), want, &mut |player, record| {
            count += 1;
            last = Some(player.clone());
            each(player, record);
        })?;
        read += count;
        if count < want && stopped_at.is_none() {
            break;
        }
        after = if count < want { stopped_at } else { last };
    }
    Ok(read)
}

/// Scans at most `want` records of one moment. If it stopped before that, it returns the last player.
fn scan_some(
    shared: &Shared,
    (board, window): (BoardNo, Window),
    after: Option<&PlayerId>,
    want: usize,
    each: &mut dyn FnMut(PlayerId, Record),
) -> Result<Option<PlayerId>, StoreError> {
    let in_memory = |memtables: &Memtables| {
        let key = |player: &PlayerId| NearKey::new(board, window, player.clone());
        let from =
            after.map_or_else(|| Bound::Included(key(&first_player())), |after| Bound::Excluded(key(after)));
        memtables.range::<Scores>(from, |key| key.is_of(board, window), want)
    };
    shared.read(in_memory, |(newer, complete), tables| {
        let complete = complete.map(|key| key.player().clone());
        let merged = &newer;
        let mut newer = newer.iter().peekable();
        let mut given = 0;
        let mut skip = |player: Option<PlayerId>, row: &CorruptRow| {
            // The memtable may have a newer state, which will be flushed over the row.
            let near = player.map(|player| NearKey::new(board, window, player));
            if near.is_none_or(|near| !merged.contains_key(&near)) {
                shared.damages.note(row);
            }
        };
        scores::scan(tables, (board, window), after, &mut skip, &mut |player, record| {
            // Returns the rows of the memtable before this one, and its newer state of this one.
            let mut record = Some(record);
            while given < want
                && let Some((key, state)) = newer.next_if(|(key, _)| *key.player() <= player)
            {
                if *key.player() == player {
                    record = *state;
                } else if let Some(state) = state {
                    each(key.player().clone(), *state);
                    given += 1;
                }
            }
            let beyond = complete.as_ref().is_some_and(|complete| player > *complete);
            if given == want || beyond {
                return false;
            }
            if let Some(record) = record {
                each(player, record);
                given += 1;
            }
            given < want
        })?;
        for (key, state) in newer {
            if let Some(state) = state.filter(|_| given < want) {
                each(key.player().clone(), state);
                given += 1;
            }
        }
        Ok(complete)
    })
}
