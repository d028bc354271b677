//! What one transaction reads and writes, in the words of the domain.
//!
//! A [`ReadSet`] names everything before the transaction begins. So a backend can read it in few messages and lock it in one
//! order. Keys are sorted and unique; a backend asserts that. [`WriteSet`] has one row for each key: the newest.

use crate::ledger::{LedgerLoaded, LedgerReadSet, LedgerWriteSet};
use crate::redacted::Redacted;
use crate::shard_set::ShardSet;
use std::sync::Arc;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::idempotency::{RequestKey, Stored};
use tally_rules::period::TimeSpan;
use tally_rules::profile::Profile;
use tally_rules::{BoardId, Definition, Grant, Micros, PlayerId, Record};

/// The number of a board. It is never reused, so that the background purge can delete the rows of a deleted board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoardNo(pub u32);

/// A window of a board: 0 is all time, the others are periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window(pub u64);

/// The all-time window.
pub const ALL_TIME: Window = Window(0);

/// The window of the attempts of a contest's members: their number is the score of a record. It has no ranking.
pub const ATTEMPTS: Window = Window(i64::MAX as u64);

/// The key of a player's record in one window of one board.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScoreKey {
    /// The board.
    pub board: BoardNo,
    /// The window.
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
    /// Its definition.
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
    /// The start and the end.
    pub span: TimeSpan,
    /// Whether it is closed: it takes no more scores.
    pub closed: bool,
    /// The version of its archive; 0 for none yet.
    pub version: u32,
    /// Whether records changed since that archive was written.
    pub stale: bool,
    /// The number of players in that archive.
    pub total: u64,
}

/// The key of one archive block of a closed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKey {
    /// The window.
    pub window: WindowKey,
    /// The version of the archive.
    pub version: u32,
    /// The number of the block, from 0.
    pub block: u64,
}

/// Entries of the archive of a closed window, as `tally-ranking` packs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredBlock {
    /// The number of distinct scores better than that of its first entry.
    pub distinct_better: u64,
    /// The entries.
    pub entries: Vec<u8>,
}

/// Rows that the background purge deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garbage {
    /// A window: its records and its blocks.
    Window(WindowKey),
    /// One version of a window's blocks.
    Blocks(WindowKey, u32),
}

impl Garbage {
    /// Decodes a row of `deleted_parts`: version -1 is the whole window.
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
    /// What it was made with.
    pub grant: Grant,
    /// The name that its owner gave it.
    pub name: String,
    /// When it was created.
    pub created_at: Micros,
}

/// An import of one file into one board.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImportKey {
    /// The board.
    pub board: BoardNo,
    /// A digest of the file and of the meaning of its columns. A run number is added to import the same file again.
    pub digest: [u8; 32],
}

/// The progress of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportRow {
    /// The number of processed lines of the file, the header included.
    pub lines: u64,
    /// The number of accepted rows.
    pub taken: u64,
    /// The number of refused rows.
    pub refused: u64,
    /// Whether the whole file is done.
    pub finished: bool,
}

/// When a transaction is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// After it is on the disk, with everything that it could read.
    #[default]
    Commit,
    /// At once. It is on the disk within a second, or with the next transaction that waits for the disk. Every reader sees
    /// it at once. A machine that stops before may lose it, and then everything after it. A killed process loses nothing.
    Relaxed,
}

/// What a transaction reads. Each list is sorted and has no key twice.
#[derive(Clone, Debug, Default)]
pub struct ReadSet {
    /// When the transaction is acknowledged.
    pub durability: Durability,
    /// Boards that must be live, and unchanged until the transaction ends.
    pub boards: Vec<BoardNo>,
    /// Whether it may change these boards. Then no other transaction locks them meanwhile.
    pub exclusive: bool,
    /// Whether its changes are published outside. Then it leaves an outbox entry until [`crate::Coordination::published`].
    pub outbox: bool,
    /// Boards by name, to create and delete them.
    pub board_names: Vec<BoardId>,
    /// Records.
    pub scores: Vec<ScoreKey>,
    /// Requests that may have run before.
    pub requests: Vec<RequestKey>,
    /// Imports.
    pub imports: Vec<ImportKey>,
    /// Profiles.
    pub profiles: Vec<PlayerId>,
    /// The shards where records may change without being read, as far as known. If all changes are of one shard, only that
    /// one is read. A hint for a store of several shards.
    pub shards: ShardSet,
    /// Members and money.
    pub ledger: LedgerReadSet,
}

/// The rows that were read. Each list has the length and the order of its list in the plan.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The revision of each live board. A different revision means that something has changed that servers cache. 0 in a
    /// store with one writer.
    pub boards: Vec<Option<u64>>,
    /// The revisions of these boards on the other shards of the transaction.
    pub boards_elsewhere: Vec<(usize, Vec<Option<u64>>)>,
    /// The live board of that name.
    pub board_names: Vec<Option<BoardRow>>,
    /// The number of the next new board; only if the plan has names.
    pub next_board: BoardNo,
    /// The record.
    pub scores: Vec<Option<Record>>,
    /// The stored outcome of the request.
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
    /// Outcomes of requests; an expired one is replaced.
    pub requests: Vec<(RequestKey, Stored)>,
    /// Progress of imports.
    pub imports: Vec<(ImportKey, ImportRow)>,
    /// Profiles; `None` removes one.
    pub profiles: Vec<(PlayerId, Option<Profile>)>,
    /// Whether a player is banned on a board.
    pub bans: Vec<(BanKey, bool)>,
    /// Periods; `None` removes one.
    pub windows: Vec<(WindowKey, Option<WindowRow>)>,
    /// Archive blocks of closed periods.
    pub blocks: Vec<(BlockKey, StoredBlock)>,
    /// Rows to purge.
    pub garbage: Vec<Garbage>,
    /// Boards.
    pub boards: Vec<BoardChange>,
    /// API keys.
    pub keys: Vec<KeyChange>,
    /// New rows of the audit log.
    pub audit: Vec<(AuditId, AuditEntry)>,
    /// Members and money.
    pub ledger: LedgerWriteSet,
    /// Rows that lose what names an erased person.
    pub redacted: Redacted,
}

/// What is known of a committed transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Committed {
    /// The version: greater than that of every transaction whose rows it read. A ranking outside keeps the greatest. 0 in a
    /// store with one writer, because nothing outside can be older.
    pub version: u64,
    /// The new revision of the boards that it changed; 0 for none.
    pub revision: u64,
    /// Its id, if it left an outbox entry.
    pub outbox: Option<BatchId>,
}

/// The id of a transaction, to resolve it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId {
    /// Its shard. Not stored.
    pub shard: u8,
    /// The random name of its connection.
    pub link: [u8; 16],
    /// Its number among the transactions of the connection.
    pub sequence: u64,
}

/// A change of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardChange {
    /// A new board; its number is that of [`Loaded::next_board`].
    Create(BoardRow),
    /// A new definition of the same board.
    Redefine(BoardNo, Definition),
    /// Deleted at once; its rows are purged later, see [`crate::Maintenance::purge_deleted`].
    Delete(BoardNo),
}

/// A change of an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// A new key.
    Create(KeyRow),
    /// Not accepted from this instant on.
    Revoke(Arc<str>, Micros),
}

impl ReadSet {
    /// Panics if a list is not sorted or has a key twice: two rows for one key have no order in a batch.
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
    /// Panics if a list is not as long as its list in the plan: `decide` pairs them by position.
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
    /// The number of the changed board.
    pub fn no(&self) -> BoardNo {
        match self {
            Self::Create(row) => row.no,
            Self::Redefine(no, _) | Self::Delete(no) => *no,
        }
    }
}

impl KeyChange {
    /// The id of the changed key.
    pub fn id(&self) -> &str {
        match self {
            Self::Create(row) => &row.id,
            Self::Revoke(id, _) => id,
        }
    }
}

impl WriteSet {
    /// Panics if a list is not sorted by key or has a key twice.
    pub(crate) fn assert_sorted(&self) {
        assert!(self.scores.is_sorted_by(|a, b| a.0 < b.0), "changed scores ascend");
        assert!(self.requests.is_sorted_by(|a, b| a.0 < b.0), "changed requests ascend");
        assert!(self.imports.is_sorted_by(|a, b| a.0 < b.0), "changed imports ascend");
        assert!(self.profiles.is_sorted_by(|a, b| a.0 < b.0), "changed profiles ascend");
        assert!(self.bans.is_sorted_by(|a, b| a.0 < b.0), "changed bans ascend");
        assert!(self.windows.is_sorted_by(|a, b| a.0 < b.0), "changed windows ascend");
        assert!(self.blocks.is_sorted_by(|a, b| a.0 < b.0), "changed blocks ascend");
        assert!(self.boards.is_sorted_by(|a, b| a.no() < b.no()), "changed boards ascend");
        assert!(self.keys.is_sorted_by(|a, b| a.id() < b.id()), "changed keys ascend");
        assert!(self.audit.is_sorted_by(|a, b| a.0 < b.0), "new rows of the audit log ascend");
        self.redacted.assert_sorted();
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
            && self.audit.is_empty()
            && self.ledger.is_empty()
            && self.redacted.is_empty()
    }
}

fn ascends<T: Ord>(keys: &[T]) -> bool {
    keys.is_sorted_by(|a, b| a < b)
}
