//! Snapshot over all shards: the records of each, and everything else from the first.
//!
//! The snapshots of the shards begin one after the other, so records of two shards may be from two moments. The shard of a
//! record also has its period. Not here: what a snapshot is (`mysql::snapshot`).

use crate::archive::ArchivedMonth;
use crate::mysql::MySqlSnapshot;
use crate::plan::{BoardNo, ScoreKey, StoredBlock, WindowKey, WindowRow};
use crate::score_snapshot::{ArchiveKey, Boards, ToPurge};
use crate::snapshot::{ContestSnapshot, RowPage};
use crate::{CorruptRow, ScoreSnapshot, Snapshot, StoreError};
use std::collections::{BTreeMap, VecDeque};
use tally_rules::contest::{Application, ContestId, ContestPlayer, Payout};
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{
    Entry, Hold, HoldId, Member, MemberId, Month, ReversalLink, Transfer, TransferId, Uuid, Wallet, WalletKey,
};
use tally_rules::period::PeriodPayment;
use tally_rules::{PlayerId, Record, contest};

/// Snapshots in order of shards, and the position of the scan of records.
pub(super) struct ShardSnapshot {
    all: Vec<MySqlSnapshot>,
    cursors: Vec<Cursor>,
    /// The last record that was returned.
    at: Option<ScoreKey>,
}

/// Records of one shard that were read and not yet returned.
#[derive(Default)]
struct Cursor {
    next: VecDeque<(ScoreKey, Record)>,
    last: Option<ScoreKey>,
    ended: bool,
}

impl ShardSnapshot {
    pub(super) fn new(all: Vec<MySqlSnapshot>) -> Self {
        let cursors = all.iter().map(|_| Cursor::default()).collect();
        Self { all, cursors, at: None }
    }
}

macro_rules! of_first {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&mut self, $($arg: $type),*) -> $out {
            self.all[super::split::FIRST].$name($($arg),*)
        })*
    };
}

impl Snapshot for ShardSnapshot {
    of_first! {
        members(after: Option<MemberId>, limit: usize) -> RowPage<MemberId, Member>;
        handles(after: Option<&Handle>, limit: usize) -> RowPage<Handle, MemberId>;
        wallets(after: Option<WalletKey>, limit: usize) -> RowPage<WalletKey, Wallet>;
        entries(after: Option<EntryKey>, limit: usize) -> RowPage<EntryKey, Entry>;
        transfers(after: Option<TransferId>, limit: usize) -> RowPage<TransferId, Transfer>;
        holds(after: Option<HoldId>, limit: usize) -> RowPage<HoldId, Hold>;
        reversals(after: Option<TransferId>, limit: usize) -> RowPage<TransferId, ReversalLink>;
        archived_months() -> RowPage<Month, ArchivedMonth>;
        contests(after: Option<&ContestId>, limit: usize) -> RowPage<ContestId, contest::ContestRecord>;
        contest_members(no: Uuid, after: Option<&PlayerId>, limit: usize) -> RowPage<PlayerId, ContestPlayer>;
        payouts(no: Uuid, from: u32, limit: usize) -> RowPage<u32, Payout>;
        owners(of: ContestSnapshot, after: Option<&Uuid>, limit: usize) -> RowPage<Uuid, ()>;
        payments(after: Option<&WindowKey>, limit: usize) -> RowPage<WindowKey, PeriodPayment>;
        members_of(ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError>;
        handles_of(handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError>;
        entries_of(keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError>;
        transfers_of(ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError>;
        reversals_of(ids: &[TransferId]) -> Result<Vec<Option<ReversalLink>>, StoreError>;
        totals() -> RowPage<AccountKey, Total>;
    }

    fn corrupt_rows(&mut self) -> Vec<CorruptRow> {
        self.all.iter_mut().flat_map(Snapshot::corrupt_rows).collect()
    }

    fn rows(&mut self) -> Result<u64, StoreError> {
        self.all.iter_mut().map(Snapshot::rows).sum()
    }
}

impl ScoreSnapshot for ShardSnapshot {
    of_first! {
        boards() -> Result<Boards, StoreError>;
        blocks(window: WindowKey, version: u32, from: u64, limit: usize) -> RowPage<u64, StoredBlock>;
        archives(after: Option<ArchiveKey>, limit: usize) -> RowPage<ArchiveKey, ()>;
        applications(no: Uuid, after: Option<&PlayerId>, limit: usize) -> RowPage<PlayerId, Application>;
    }

    fn to_purge(&mut self) -> Result<ToPurge, StoreError> {
        let mut all = ToPurge::default();
        for snapshot in &mut self.all {
            let ToPurge { boards, windows, archives } = snapshot.to_purge()?;
            all.boards.extend(boards);
            all.windows.extend(windows);
            all.archives.extend(archives);
        }
        Ok(all)
    }

    fn scores(&mut self, after: Option<&ScoreKey>, limit: usize) -> RowPage<ScoreKey, Record> {
        if self.at.as_ref() != after {
            let from = || Cursor { last: after.cloned(), ..Cursor::default() };
            self.cursors.iter_mut().for_each(|cursor| *cursor = from());
        }
        let mut page = Vec::new();
        while page.len() < limit {
            for (cursor, snapshot) in self.cursors.iter_mut().zip(&mut self.all) {
                if cursor.next.is_empty() && !cursor.ended {
                    cursor.next = snapshot.scores(cursor.last.as_ref(), limit)?.into();
                    cursor.ended = cursor.next.len() < limit;
                    cursor.last = cursor.next.back().map(|(key, _)| key.clone());
                }
            }
            let filled = self.cursors.iter_mut().filter(|cursor| !cursor.next.is_empty());
            let least = filled.min_by(|a, b| a.next[0].0.cmp(&b.next[0].0));
            let Some(row) = least.and_then(|cursor| cursor.next.pop_front()) else { break };
            page.push(row);
        }
        self.at = page.last().map(|(key, _)| key.clone()).or_else(|| after.cloned());
        Ok(page)
    }

    fn scores_of(&mut self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut all = vec![None; keys.len()];
        for snapshot in &mut self.all {
            for (known, found) in all.iter_mut().zip(snapshot.scores_of(keys)?) {
                *known = known.or(found);
            }
        }
        Ok(all)
    }

    /// Merges the periods of all shards. The row on the first shard counts; an open period may be on any shard.
    fn windows(&mut self, after: Option<WindowKey>, limit: usize) -> RowPage<WindowKey, WindowRow> {
        let mut all = BTreeMap::new();
        for snapshot in &mut self.all {
            for (key, row) in snapshot.windows(after, limit)? {
                all.entry(key).or_insert(row);
            }
        }
        Ok(all.into_iter().take(limit).collect())
    }

    fn banned(&mut self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        let mut all = Vec::new();
        for snapshot in &mut self.all {
            all.extend(snapshot.banned(board)?);
        }
        Ok(all)
    }
}
