//! What one transaction reads and writes, in the words of the domain.
//!
//! A [`ReadSet`] names everything before the transaction begins, so a backend can read it in few messages and lock it in
//! one order. Keys are sorted and unique; a backend asserts that. [`WriteSet`] holds one row per key: the newest.

use crate::ledger::{LedgerLoaded, LedgerReadSet, LedgerWriteSet};
use crate::shard_set::ShardSet;
use std::sync::Arc;
use tally_rules::idempotency::{RequestKey, Stored};
use tally_rules::period::Span;
use tally_rules::profile::Profile;
use tally_rules::role::Role;
use tally_rules::{BoardId, Definition, Micros, PlayerId, Record};

/// A board's number: given once, never reused, so that rows of a deleted board can be purged at leisure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoardNo(pub u32);

/// A window of a board: 0 is all time, the others are periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window(pub u64);

/// The window over all time.
pub const ALL_TIME: Window = Window(0);

/// One player's record on one window of one board.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScoreKey {
    /// The board.
    pub board: BoardNo,
    /// The window of it.
    pub window: Window,
    /// The player.
    pub player: PlayerId,
}

/// A board as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardRow {
    /// Its number.
    pub no: BoardNo,
    /// Its name.
    pub id: BoardId,
    /// What it is.
    pub definition: Definition,
    /// When it was created.
    pub created_at: Micros,
}

/// One player on one board.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BanKey {
    /// The board.
    pub board: BoardNo,
    /// The player.
    pub player: PlayerId,
}

/// One window of one board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowKey {
    /// The board.
    pub board: BoardNo,
    /// The window.
    pub window: Window,
}

/// A period as stored: one that has records, or whose end was fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRow {
    /// Its number.
    pub window: Window,
    /// The number of its rule.
    pub rule: u32,
    /// From when to when.
    pub span: Span,
    /// Whether it takes no more scores.
    pub closed: bool,
    /// Which blocks hold its order; 0 for none yet.
    pub version: u32,
    /// Whether records changed since those blocks were written.
    pub stale: bool,
    /// Players in those blocks.
    pub total: u64,
}

/// One piece of the order of a closed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKey {
    /// Of which window.
    pub window: WindowKey,
    /// Of which writing of its order.
    pub version: u32,
    /// From 0.
    pub block: u64,
}

/// Entries of the order of a closed window, as `tally-ranking` packs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Distinct scores better than that of its first.
    pub distinct_better: u64,
    /// The entries.
    pub entries: Vec<u8>,
}

/// What is no longer needed and is purged at leisure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garbage {
    /// A window: its records and its blocks.
    Window(WindowKey),
    /// One version of a window's blocks.
    Blocks(WindowKey, u32),
}

impl Garbage {
    /// What a row of `deleted_parts` says: version -1 is all of the window.
    pub(crate) fn of(window: WindowKey, version: i64) -> Self {
        u32::try_from(version).map_or(Self::Window(window), |version| Self::Blocks(window, version))
    }
}

/// An API key as stored: never the secret itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Letters and digits.
    pub id: Arc<str>,
    /// A digest of the secret.
    pub hash: [u8; 32],
    /// What it may do.
    pub role: Role,
    /// What its owner calls it.
    pub name: String,
    /// When it was created.
    pub created_at: Micros,
}

/// An import of one file into one board.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImportKey {
    /// The board.
    pub board: BoardNo,
    /// A digest of the file and of how its columns are read, with a run number where it is meant again.
    pub digest: [u8; 32],
}

/// How far an import has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportRow {
    /// Lines of the file that are done, the header included.
    pub lines: u64,
    /// Rows that were taken.
    pub taken: u64,
    /// Rows that were refused.
    pub refused: u64,
    /// Whether the whole file is done.
    pub finished: bool,
}

/// What a transaction waits for before it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// That it is on the disk, and with it everything that it could see.
    #[default]
    Commit,
    /// Nothing: it is on the disk within a second, or with the next transaction that waits. Every reader sees it at
    /// once; a machine that stops before may lose it, and never one before it without it. A killed process loses
    /// nothing.
    Relaxed,
}

/// What a transaction reads. Each list is sorted and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct ReadSet {
    /// What it waits for.
    pub durability: Durability,
    /// Boards that must still be there, and unchanged until the transaction ends.
    pub boards: Vec<BoardNo>,
    /// Whether it may change what these boards are: then nobody else reads them so meanwhile.
    pub exclusive: bool,
    /// Whether what it writes is published outside, and leaves a mark until [`crate::Store::published`] says that it was.
    pub outbox: bool,
    /// Boards by name, for creating and deleting them.
    pub board_names: Vec<BoardId>,
    /// Records.
    pub scores: Vec<ScoreKey>,
    /// Requests that may have been done before.
    pub requests: Vec<RequestKey>,
    /// Imports.
    pub imports: Vec<ImportKey>,
    /// Profiles.
    pub profiles: Vec<PlayerId>,
    /// Where records may change although they are not read, as far as that is known: where all of it is one shard's, only
    /// that one is asked. Only a hint, and only for a store of several.
    pub shards: ShardSet,
    /// Members and money.
    pub ledger: LedgerReadSet,
}

/// What was read, each list as long as its list in the plan and in the same order.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The revision of each board that is live: another number means that something of it has changed that servers keep in
    /// memory. 0 where one process writes.
    pub boards: Vec<Option<u64>>,
    /// The same on another database that the transaction concerns as well.
    pub boards_elsewhere: Vec<(usize, Vec<Option<u64>>)>,
    /// The live board of that name.
    pub board_names: Vec<Option<BoardRow>>,
    /// The number for the next new board; only where the plan has names.
    pub next_board: BoardNo,
    /// The record.
    pub scores: Vec<Option<Record>>,
    /// What was stored of the request.
    pub requests: Vec<Option<Stored>>,
    /// The progress.
    pub imports: Vec<Option<ImportRow>>,
    /// The profile.
    pub profiles: Vec<Option<Profile>>,
    /// Members and money.
    pub ledger: LedgerLoaded,
}

/// What a transaction writes. Each list is sorted by key and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct WriteSet {
    /// Records: the newest of each key; `None` removes it.
    pub scores: Vec<(ScoreKey, Option<Record>)>,
    /// Requests done; one whose time was over is replaced.
    pub requests: Vec<(RequestKey, Stored)>,
    /// Progress of imports.
    pub imports: Vec<(ImportKey, ImportRow)>,
    /// Profiles; `None` removes one.
    pub profiles: Vec<(PlayerId, Option<Profile>)>,
    /// Whether a player is hidden on a board.
    pub bans: Vec<(BanKey, bool)>,
    /// Periods; `None` removes one.
    pub windows: Vec<(WindowKey, Option<WindowRow>)>,
    /// Pieces of the order of closed periods.
    pub blocks: Vec<(BlockKey, Block)>,
    /// What is to be purged.
    pub garbage: Vec<Garbage>,
    /// Boards.
    pub boards: Vec<BoardChange>,
    /// Keys.
    pub keys: Vec<KeyChange>,
    /// Members and money.
    pub ledger: LedgerWriteSet,
}

/// What is known of a transaction that was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Committed {
    /// Greater than that of every transaction whose rows it read: what is derived from them outside keeps the greatest.
    /// 0 where one process writes, and nothing outside can be older.
    pub version: u64,
    /// The revision that boards have now that it has changed; 0 for none.
    pub revision: u64,
    /// Its name, where it left a mark.
    pub outbox: Option<BatchId>,
}

/// The name of a transaction, for asking what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId {
    /// Its database among those of the store. Not stored.
    pub shard: u8,
    /// Of the connection: random.
    pub link: [u8; 16],
    /// Of the transaction among those of its connection.
    pub sequence: u64,
}

/// A change of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardChange {
    /// A new one; its number is that of [`Loaded::next_board`].
    Create(BoardRow),
    /// Another definition of the same board.
    Redefine(BoardNo, Definition),
    /// Gone at once; its rows are purged later, see [`crate::Store::purge_deleted`].
    Delete(BoardNo),
}

/// A change of an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// A new one.
    Create(KeyRow),
    /// No longer accepted, from this instant on.
    Revoke(Arc<str>, Micros),
}

impl ReadSet {
    /// Panics where a list is not sorted or has a key twice: two rows for one key have no order in a batch.
    pub(crate) fn assert_sorted(&self) {
        assert!(ascends(&self.boards), "boards of a plan ascend");
        assert!(ascends(&self.board_names), "names of a plan ascend");
        assert!(ascends(&self.scores), "scores of a plan ascend");
        assert!(ascends(&self.requests), "requests of a plan ascend");
        assert!(ascends(&self.imports), "imports of a plan ascend");
        assert!(ascends(&self.profiles), "profiles of a plan ascend");
        self.ledger.assert_sorted();
    }
}

impl Loaded {
    /// Panics where a list is not as long as its list in the plan: `decide` pairs them by position.
    pub(crate) fn assert_answers(&self, plan: &ReadSet) {
        assert_eq!(self.boards.len(), plan.boards.len());
        assert_eq!(self.board_names.len(), plan.board_names.len());
        assert_eq!(self.scores.len(), plan.scores.len());
        assert_eq!(self.requests.len(), plan.requests.len());
        assert_eq!(self.imports.len(), plan.imports.len());
        assert_eq!(self.profiles.len(), plan.profiles.len());
        self.ledger.assert_answers(&plan.ledger);
    }
}

impl BoardChange {
    /// The board it changes.
    pub fn no(&self) -> BoardNo {
        match self {
            Self::Create(row) => row.no,
            Self::Redefine(no, _) | Self::Delete(no) => *no,
        }
    }
}

impl KeyChange {
    /// The key it changes.
    pub fn id(&self) -> &str {
        match self {
            Self::Create(row) => &row.id,
            Self::Revoke(id, _) => id,
        }
    }
}

impl WriteSet {
    /// Panics where a list is not sorted by key or has a key twice.
    pub(crate) fn assert_sorted(&self) {
        assert!(self.scores.is_sorted_by(|a, b| a.0 < b.0), "changed scores ascend");
        assert!(self.requests.is_sorted_by(|a, b| a.0 < b.0), "changed requests ascend");
        assert!(self.imports.is_sorted_by(|a, b| a.0 < b.0), "changed imports ascend");
        assert!(self.profiles.is_sorted_by(|a, b| a.0 < b.0), "changed profiles ascend");
        assert!(self.bans.is_sorted_by(|a, b| a.0 < b.0), "changed bans ascend");
        assert!(self.windows.is_sorted_by(|a, b| a.0 < b.0), "changed parts ascend");
        assert!(self.blocks.is_sorted_by(|a, b| a.0 < b.0), "changed blocks ascend");
        assert!(self.boards.is_sorted_by(|a, b| a.no() < b.no()), "changed boards ascend");
        assert!(self.keys.is_sorted_by(|a, b| a.id() < b.id()), "changed keys ascend");
        self.ledger.assert_sorted();
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
            && self.requests.is_empty()
            && self.imports.is_empty()
            && self.profiles.is_empty()
            && self.bans.is_empty()
            && self.windows.is_empty()
            && self.blocks.is_empty()
            && self.garbage.is_empty()
            && self.boards.is_empty()
            && self.keys.is_empty()
            && self.ledger.is_empty()
    }
}

fn ascends<T: Ord>(keys: &[T]) -> bool {
    keys.is_sorted_by(|a, b| a < b)
}
