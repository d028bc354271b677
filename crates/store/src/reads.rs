//! The trait [`Reads`]: reads outside of transactions.

use crate::plan::{
    BlockKey, BoardNo, BoardRow, ImportKey, ImportRow, KeyRow, ScoreKey, StoredBlock, Window, WindowRow,
};
use crate::servers::ScoreState;
use crate::{Ledger, Listing, StoreError};
use std::collections::HashSet;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::profile::Profile;
use tally_rules::{PlayerId, Record};

/// Reads without a transaction. Every method blocks.
///
/// Each read sees every transaction that ended before it began, and no half of one. A scan of many rows sees several
/// moments. Lists leave out corrupt rows and [record](crate::Maintenance::corrupt_rows) them; a read by key returns
/// [`StoreError::CorruptRow`].
pub trait Reads: Send + Sync {
    /// Reads of members and money.
    fn ledger(&self) -> &dyn Ledger;

    /// Every live board, in order of number. A corrupt one is recorded by its name.
    fn boards(&self) -> Result<Vec<BoardRow>, StoreError>;

    /// Every API key that is not revoked, in order of creation.
    fn keys(&self) -> Result<Vec<KeyRow>, StoreError>;

    /// Whether an API key was ever created, revoked or not.
    fn had_keys(&self) -> Result<bool, StoreError>;

    /// At most `limit` rows of the audit log before an id, newest first. A row may appear some time after its id: the id has the
    /// instant of the request, and the row is stored with the act.
    fn list_audit(&self, before: AuditId, limit: usize)
    -> Result<Listing<(AuditId, AuditEntry)>, StoreError>;

    /// Scans at most `limit` records of one window in order of player bytes, from the first one after `after`. Each comes
    /// with the version of the transaction that wrote it, or 0 on a backend without versions. Returns the number of records;
    /// fewer than `limit` means the end.
    fn scan_versions(
        &self,
        board: BoardNo,
        window: Window,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError>;

    /// Like [`scan_versions`](Self::scan_versions), without versions.
    fn scan_scores(
        &self,
        board: BoardNo,
        window: Window,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record),
    ) -> Result<usize, StoreError> {
        self.scan_versions(board, window, after, limit, &mut |player, record, _| each(player, record))
    }

    /// Like [`scan_versions`](Self::scan_versions), for the records of one shard, so that threads can scan shards side by
    /// side.
    fn scan_shard(
        &self,
        shard: usize,
        (board, window): (BoardNo, Window),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        assert_eq!(shard, 0, "there is one");
        self.scan_versions(board, window, after, limit, each)
    }

    /// Like [`scan_versions`](Self::scan_versions), for all shards or one, with tombstones as `None`. A ranking outside
    /// keeps tombstones, so that a late older version does not bring a record back.
    fn scan_states(
        &self,
        _shard: Option<usize>,
        (board, window): (BoardNo, Window),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
    ) -> Result<usize, StoreError> {
        let some = &mut |player, record, version| each(player, Some(record), version);
        self.scan_versions(board, window, after, limit, some)
    }

    /// The record of each key with its version. A tombstone has a version and no record.
    fn states(&self, keys: &[ScoreKey]) -> Result<Vec<Option<ScoreState>>, StoreError> {
        Ok(self.records(keys)?.into_iter().map(|record| record.map(|record| (Some(record), 0))).collect())
    }

    /// Every stored period of a board, in order of number.
    fn windows(&self, board: BoardNo) -> Result<Vec<WindowRow>, StoreError>;

    /// One block of the archive of a closed period.
    fn block(&self, key: &BlockKey) -> Result<Option<StoredBlock>, StoreError>;

    /// The record of each key.
    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError>;

    /// The number of records of a window; it may be an estimate from above, for progress only.
    fn count_scores(&self, board: BoardNo, window: Window) -> Result<u64, StoreError>;

    /// The progress of an import of one file.
    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError>;

    /// Every player banned on a board, in order of bytes.
    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError>;

    /// The players of `players` that are banned on a board.
    fn banned(&self, board: BoardNo, players: &[PlayerId]) -> Result<HashSet<PlayerId>, StoreError> {
        let all: HashSet<PlayerId> = self.bans(board)?.into_iter().collect();
        Ok(players.iter().filter(|player| all.contains(*player)).cloned().collect())
    }

    /// The profile of each of these players, in one round trip. A corrupt one fails alone.
    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError>;

    /// A value stored by [`set_meta`](crate::Maintenance::set_meta).
    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;
}
