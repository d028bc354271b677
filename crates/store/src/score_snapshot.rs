//! Boards, records, periods and archives at one moment: the part of [`Snapshot`](crate::Snapshot) that verifies scores.
//!
//! Not here: the consistency rules of the rows.

use crate::StoreError;
use crate::plan::{BoardNo, BoardRow, Garbage, ScoreKey, StoredBlock, WindowKey, WindowRow};
use crate::snapshot::RowPage;
use std::collections::BTreeSet;
use tally_rules::contest::Application;
use tally_rules::ledger::Uuid;
use tally_rules::{PlayerId, Record};

/// Live boards in order of number; a corrupt board has no definition.
pub type Boards = Vec<(BoardNo, Option<BoardRow>)>;

/// One version of the archive of a period.
pub type ArchiveKey = (WindowKey, u32);

/// Deleted boards, periods and archives whose rows may still exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToPurge {
    /// Boards.
    pub boards: BTreeSet<BoardNo>,
    /// Periods.
    pub windows: BTreeSet<WindowKey>,
    /// Versions of archives.
    pub archives: BTreeSet<ArchiveKey>,
}

impl ToPurge {
    pub(crate) fn add(&mut self, gone: Garbage) {
        match gone {
            Garbage::Window(window) => drop(self.windows.insert(window)),
            Garbage::Blocks(window, version) => drop(self.archives.insert((window, version))),
        }
    }
}

/// Scores at one moment; pages as of [`Snapshot`](crate::Snapshot).
pub trait ScoreSnapshot {
    /// Live boards.
    fn boards(&mut self) -> Result<Boards, StoreError>;

    /// Deleted boards, periods and archives.
    fn to_purge(&mut self) -> Result<ToPurge, StoreError>;

    /// Records: board by board, window by window, in order of players.
    fn scores(&mut self, after: Option<&ScoreKey>, limit: usize) -> RowPage<ScoreKey, Record>;

    /// The record of each key. The keys ascend.
    fn scores_of(&mut self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError>;

    /// Stored periods.
    fn windows(&mut self, after: Option<WindowKey>, limit: usize) -> RowPage<WindowKey, WindowRow>;

    /// Archive blocks of one version, from the number `from` on.
    fn blocks(
        &mut self,
        window: WindowKey,
        version: u32,
        from: u64,
        limit: usize,
    ) -> RowPage<u64, StoredBlock>;

    /// Archives that have blocks.
    fn archives(&mut self, after: Option<ArchiveKey>, limit: usize) -> RowPage<ArchiveKey, ()>;

    /// Banned players of a board.
    fn banned(&mut self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError>;

    /// Applications for a contest.
    fn applications(
        &mut self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> RowPage<PlayerId, Application>;
}
