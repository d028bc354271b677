//! Boards, records, periods and archives as they were at one moment: the part of [`Books`](crate::Books) that proves scores.
//!
//! Not here: what the rows must agree in.

use crate::StoreError;
use crate::books::Page;
use crate::plan::{Block, BoardNo, BoardRow, Gone, PartKey, PartRow, ScoreKey};
use std::collections::BTreeSet;
use tally_rules::contest::Application;
use tally_rules::ledger::Uuid;
use tally_rules::{PlayerId, Record};

/// Live boards in order of number; one whose definition is damaged has none.
pub type Boards = Vec<(BoardNo, Option<BoardRow>)>;

/// One version of the archive of a period.
pub type ArchiveKey = (PartKey, u32);

/// What is gone and whose rows may still be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToPurge {
    /// Boards.
    pub boards: BTreeSet<BoardNo>,
    /// Periods.
    pub parts: BTreeSet<PartKey>,
    /// Versions of archives.
    pub archives: BTreeSet<ArchiveKey>,
}

impl ToPurge {
    pub(crate) fn add(&mut self, gone: Gone) {
        match gone {
            Gone::Part(part) => drop(self.parts.insert(part)),
            Gone::Blocks(part, version) => drop(self.archives.insert((part, version))),
        }
    }
}

/// Scores at one moment; pages as of [`Books`](crate::Books).
pub trait ScoreBooks {
    /// Live boards.
    fn boards(&mut self) -> Result<Boards, StoreError>;

    /// What is gone.
    fn to_purge(&mut self) -> Result<ToPurge, StoreError>;

    /// Records: board by board, part by part, in order of players.
    fn scores(&mut self, after: Option<&ScoreKey>, limit: usize) -> Page<ScoreKey, Record>;

    /// The record of each key, which ascend.
    fn scores_of(&mut self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError>;

    /// Stored periods.
    fn parts(&mut self, after: Option<PartKey>, limit: usize) -> Page<PartKey, PartRow>;

    /// Archive blocks of one version, from that number on.
    fn blocks(&mut self, part: PartKey, version: u32, from: u64, limit: usize) -> Page<u64, Block>;

    /// Archives that have blocks.
    fn archives(&mut self, after: Option<ArchiveKey>, limit: usize) -> Page<ArchiveKey, ()>;

    /// Players hidden on a board.
    fn hidden(&mut self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError>;

    /// Applications for a contest.
    fn applications(
        &mut self,
        contest: Uuid,
        after: Option<&PlayerId>,
        limit: usize,
    ) -> Page<PlayerId, Application>;
}
