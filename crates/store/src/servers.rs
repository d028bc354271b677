//! What several servers of one store ask it of each other's changes.
//!
//! Apart from [`crate::plan`], which is what one transaction reads and writes. Not here: what a server does with it.

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

/// Which change of a board is known, on each database of the store: each counts its own changes. 0 where nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revisions {
    each: Vec<u64>,
    /// Databases that were away when the board was read: theirs are of an earlier reading.
    unheard: ShardSet,
}

impl Revisions {
    /// These, in the order of the databases.
    pub fn new(each: Vec<u64>) -> Self {
        Self { each, unheard: ShardSet::default() }
    }

    /// The same where some of them are of an earlier reading. Nothing may be decided on those.
    #[must_use]
    pub fn without(self, unheard: ShardSet) -> Self {
        Self { unheard, ..self }
    }

    /// Databases whose revisions are of an earlier reading.
    pub fn unheard(&self) -> ShardSet {
        self.unheard
    }

    /// That of one database.
    pub fn of(&self, shard: usize) -> u64 {
        self.each.get(shard).copied().unwrap_or(0)
    }

    /// Whether this is that of a database, which was not away.
    pub fn stands(&self, shard: usize, revision: u64) -> bool {
        self.of(shard) == revision && !self.unheard.has(shard)
    }

    /// Whether anything is known.
    pub fn are_known(&self) -> bool {
        self.each.iter().any(|revision| *revision > 0)
    }

    /// Whether one of them is older than the other's.
    pub fn are_behind(&self, other: &Self) -> bool {
        let all = self.each.len().max(other.each.len());
        (0..all).any(|shard| self.of(shard) < other.of(shard))
    }

    /// Whether the others are newer, or of more databases.
    pub fn are_less_than(&self, other: &Self) -> bool {
        self.are_behind(other) || self.unheard.bits() & !other.unheard.bits() != 0
    }

    /// One database has made this change.
    pub fn advance(&mut self, shard: usize, revision: u64) {
        if self.each.len() <= shard {
            self.each.resize(shard + 1, 0);
        }
        self.each[shard] = self.each[shard].max(revision);
    }
}

/// Everything of a board that servers keep in memory, as of one moment of each database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardState {
    /// What it is.
    pub row: BoardRow,
    /// Which change of it this is.
    pub revisions: Revisions,
    /// Which players are banned.
    pub bans: Bans,
    /// Its periods, in order of number.
    pub windows: Vec<WindowRow>,
}

/// The banned players of a board, whole or as changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bans {
    /// All of them, in order of bytes.
    All(Vec<PlayerId>),
    /// Those whose ban changed after revisions, and whether they are banned now.
    Since {
        /// Those revisions.
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

    /// Brings what was known at revisions to these; whether they fit to it.
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

/// A position in the change feed: a follower there has seen every row up to this one. Boards that one transaction changes share
/// its revision, so a revision alone is no position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedPosition {
    /// The revision of that row.
    pub revision: u64,
    /// Its board.
    pub board: BoardNo,
}

/// One page of the change feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedPage {
    /// Where the next page begins, on each database.
    pub next: Vec<FeedPosition>,
    /// Boards that were made, changed or deleted.
    pub boards: Vec<BoardNo>,
    /// Whether API keys were made or revoked.
    pub keys: bool,
    /// Whether there is more: to be asked for at once.
    pub more: bool,
}

/// What a database has lost of what it had acknowledged. Versions are microseconds since 1970, as the database's clock had them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostCommits {
    /// Which database.
    pub database: String,
    /// The newest version that it had then and has still; 0 where it has none.
    pub present: u64,
    /// The newest version that is missing.
    pub newest: u64,
    /// Whether other servers have found it.
    pub by_others: bool,
}

impl LostCommits {
    /// How many seconds of commits are lost at most, where that is known.
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

/// What a transaction left to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    /// Which one.
    pub batch: BatchId,
    /// Its version.
    pub version: u64,
    /// What it wrote.
    pub what: OutboxContent,
}

/// What there is of a record: the record, or nothing where it was removed not long ago; and the version of that.
pub type ScoreState = (Option<Record>, u64);

/// What is to be published again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxContent {
    /// These records.
    Records(Vec<ScoreKey>),
    /// Whatever is in these windows: there were too many.
    Windows(Vec<WindowKey>),
}

/// What one of several servers does for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Deleting what nobody needs any more.
    Clean,
    /// Loading orders that are kept outside.
    Load,
    /// Publishing what others left.
    Outbox,
    /// Closing periods.
    Periods,
}

impl Task {
    /// As it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Load => "load",
            Self::Outbox => "marks",
            Self::Periods => "periods",
        }
    }
}
