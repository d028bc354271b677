//! Types that several servers of one store exchange through it.
//!
//! Separate from [`crate::plan`], which is what one transaction reads and writes. Not here: what a server does with it.

use crate::ShardSet;
use crate::plan::{BatchId, BoardNo, BoardRow, ScoreKey, WindowKey, WindowRow};
use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};
use tally_rules::{BoardId, PlayerId, Record};

/// A board by number or by name.
#[derive(Clone, Copy, Debug)]
pub enum BoardRef<'a> {
    /// By number.
    No(BoardNo),
    /// By name.
    Id(&'a BoardId),
}

/// The known revision of a board on each shard; each shard has its own revisions. 0 if none is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revisions {
    each: Vec<u64>,
    /// Shards that were unavailable when the board was read: their revisions are of an earlier read.
    unreached: ShardSet,
}

impl Revisions {
    /// These revisions, in the order of the shards.
    pub fn new(each: Vec<u64>) -> Self {
        Self { each, unreached: ShardSet::default() }
    }

    /// Marks the revisions of some shards as those of an earlier read. No decision may rely on them.
    #[must_use]
    pub fn without(self, unreached: ShardSet) -> Self {
        Self { unreached, ..self }
    }

    /// Shards whose revisions are of an earlier read.
    pub fn unreached(&self) -> ShardSet {
        self.unreached
    }

    /// The revision of one shard.
    pub fn of(&self, shard: usize) -> u64 {
        self.each.get(shard).copied().unwrap_or(0)
    }

    /// Whether a shard has this revision, and was available.
    pub fn holds(&self, shard: usize, revision: u64) -> bool {
        self.of(shard) == revision && !self.unreached.has(shard)
    }

    /// Whether any revision is known.
    pub fn are_known(&self) -> bool {
        self.each.iter().any(|revision| *revision > 0)
    }

    /// Whether one of them is older than that of `other`.
    pub fn are_behind(&self, other: &Self) -> bool {
        let all = self.each.len().max(other.each.len());
        (0..all).any(|shard| self.of(shard) < other.of(shard))
    }

    /// Whether `other` is newer, or from more shards.
    pub fn are_less_than(&self, other: &Self) -> bool {
        self.are_behind(other) || self.unreached.bits() & !other.unreached.bits() != 0
    }

    /// Records a new revision of one shard.
    pub fn advance(&mut self, shard: usize, revision: u64) {
        if self.each.len() <= shard {
            self.each.resize(shard + 1, 0);
        }
        self.each[shard] = self.each[shard].max(revision);
    }
}

/// Everything of a board that servers cache, as of one moment on each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardState {
    /// The board.
    pub row: BoardRow,
    /// Its revisions.
    pub revisions: Revisions,
    /// Its banned players.
    pub bans: Bans,
    /// Its periods, in order of number.
    pub windows: Vec<WindowRow>,
}

/// The banned players of a board, whole or as changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bans {
    /// All of them, in order of bytes.
    All(Vec<PlayerId>),
    /// The players whose ban changed after `revisions`, and whether they are banned now.
    Since {
        /// The revisions.
        revisions: Revisions,
        /// The players, in order of bytes.
        changes: Vec<(PlayerId, bool)>,
    },
}

impl Bans {
    /// Whether they are the changes since these revisions.
    pub fn are_since(&self, known: &Revisions) -> bool {
        matches!(self, Self::Since { revisions, .. } if revisions == known)
    }

    /// Applies them to the players that were banned at `known`. Returns whether the changes fit those revisions.
    pub fn apply(&self, known: &Revisions, banned: &mut HashSet<PlayerId>) -> bool {
        match self {
            Self::All(all) => *banned = all.iter().cloned().collect(),
            Self::Since { revisions, .. } if known.are_behind(revisions) => return false,
            Self::Since { changes, .. } => {
                for (player, is_banned) in changes {
                    if *is_banned {
                        banned.insert(player.clone());
                    } else {
                        banned.remove(player);
                    }
                }
            }
        }
        true
    }
}

/// A position in the change feed: a server at this position has read every row up to this one. Boards that one transaction
/// changes share its revision, so a revision alone is no position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedPosition {
    /// The revision of the row.
    pub revision: u64,
    /// The board of the row.
    pub board: BoardNo,
}

/// One page of the change feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedPage {
    /// The position of the next page, for each shard.
    pub next: Vec<FeedPosition>,
    /// Boards that were created, changed or deleted.
    pub boards: Vec<BoardNo>,
    /// Whether API keys were created or revoked.
    pub keys: bool,
    /// Whether more pages can be read at once.
    pub more: bool,
}

/// Acknowledged commits that a database has lost. Versions are microseconds since 1970, by the database's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostCommits {
    /// The name of the database.
    pub database: String,
    /// The newest of the checked versions that the database still has; 0 if it has none.
    pub present: u64,
    /// The newest version that is missing.
    pub newest: u64,
    /// Whether other servers have found the loss.
    pub by_others: bool,
}

impl LostCommits {
    /// The maximum number of seconds of lost commits, if known.
    pub fn seconds(&self) -> Option<f64> {
        (self.present > 0).then(|| self.newest.saturating_sub(self.present) as f64 / 1e6)
    }
}

impl Display for LostCommits {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Self { database, present, newest, by_others } = self;
        let then = "this server answers nothing until it has read the store anew";
        if *by_others {
            return write!(
                to,
                "`{database}`: another server began anew, because commits are lost or all were silent; {then}"
            );
        }
        write!(
            to,
            "`{database}` has lost commits that it had acknowledged: versions after {present} up to {newest}"
        )?;
        if let Some(seconds) = self.seconds() {
            write!(to, ", {seconds:.1} s of commits at most")?;
        }
        write!(to, "; {then}")
    }
}

/// The unpublished changes of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// The transaction.
    pub batch: BatchId,
    /// Its version.
    pub version: u64,
    /// The changes.
    pub what: OutboxContent,
}

/// The state of a record, with its version: the record, or `None` for a tombstone.
pub type ScoreState = (Option<Record>, u64);

/// The changes to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxContent {
    /// These records.
    Records(Vec<ScoreKey>),
    /// Everything in these windows, because there were too many records.
    Windows(Vec<WindowKey>),
}

/// A task that one of several servers does for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Deleting rows that are not needed any more.
    Clean,
    /// Loading rankings outside of the servers.
    Load,
    /// Publishing outbox entries of other servers.
    Outbox,
    /// Closing periods.
    Periods,
    /// Delivering events to webhooks.
    Webhooks,
    /// Archiving the ledger.
    Archives,
}

impl Task {
    /// Its stored name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Load => "load",
            Self::Outbox => "marks",
            Self::Periods => "periods",
            Self::Webhooks => "webhooks",
            Self::Archives => "archives",
        }
    }
}
