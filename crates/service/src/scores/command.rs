//! What is asked of the score lane, and its answers.

use super::steps::{Commands, Step, StepReply};
use crate::boards::Board;
use crate::failure::Fault;
use std::collections::HashSet;
use std::sync::Arc;
use tally_rules::definition::BoardSpec;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{Micros, PlayerId, Record, Rejection};
use tally_store::{ImportKey, ImportRow, Part};

/// One score for one player, checked against its board's kind of score.
#[derive(Clone, Debug)]
pub struct ScoreWrite {
    /// Who.
    pub player: PlayerId,
    /// The score, as an ordered integer.
    pub score: i64,
    /// The subscore; 0 where the board has none.
    pub subscore: i64,
    /// When it happened; the server's next instant where nobody said.
    pub at: Option<Micros>,
}

/// A submit.
#[derive(Clone, Debug)]
pub struct Submit {
    /// Where.
    pub board: Arc<Board>,
    /// What.
    pub write: ScoreWrite,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// The removal of a player from the open parts of a board.
#[derive(Clone, Debug)]
pub struct Remove {
    /// Where.
    pub board: Arc<Board>,
    /// Who.
    pub player: PlayerId,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// Hiding a player on a board, or showing it again.
#[derive(Clone, Debug)]
pub struct Ban {
    /// Where.
    pub board: Arc<Board>,
    /// Who.
    pub player: PlayerId,
    /// Whether it is hidden from now on.
    pub hidden: bool,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// Erasing a player everywhere.
#[derive(Clone, Debug)]
pub struct Erase {
    /// Who.
    pub player: PlayerId,
    /// Every board there is.
    pub boards: Vec<Arc<Board>>,
    /// Whether something else was known of the player, which is gone by now.
    pub had_applied: bool,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// A change of a board's periods.
#[derive(Clone, Debug)]
pub struct Redefine {
    /// Which board.
    pub board: Arc<Board>,
    /// What is wished.
    pub spec: BoardSpec,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
    /// Closed periods whose prizes are written down: what a change of prizes may not touch any more.
    pub written: HashSet<Part>,
}

/// Consecutive lines of one file.
#[derive(Clone, Debug)]
pub struct ImportChunk {
    /// Where.
    pub board: Arc<Board>,
    /// Which file.
    pub key: ImportKey,
    /// Lines of the file before this chunk.
    pub lines_before: u64,
    /// Lines of the file up to the end of this chunk.
    pub lines_after: u64,
    /// What the lines say, each with its line number; lines that say nothing are left out.
    pub rows: Vec<(u64, ScoreWrite)>,
    /// Lines that were refused before.
    pub refused: Vec<u64>,
    /// Whether the file ends here.
    pub last: bool,
    /// Whether it is what one of several databases has of a chunk.
    pub is_slice: bool,
}

/// One entry of the lane.
#[derive(Debug)]
pub(crate) enum Request {
    Submit(Submit),
    Remove(Remove),
    Ban(Ban),
    Erase(Erase),
    Redefine(Redefine),
    Import(ImportChunk),
    Commands(Commands),
    /// A board that its first score made goes, if it has no players.
    Vanish(Arc<Board>),
}

impl Request {
    /// The only player whose records it reads and changes, where there is just one; then it belongs to that player's lane.
    pub(super) fn player(&self) -> Option<&PlayerId> {
        match self {
            Self::Submit(submit) => Some(&submit.write.player),
            Self::Remove(remove) => Some(&remove.player),
            Self::Ban(ban) => Some(&ban.player),
            Self::Erase(erase) => Some(&erase.player),
            Self::Commands(commands) => commands.player(),
            // They change what every lane looks at.
            Self::Redefine(_) | Self::Vanish(_) => None,
            Self::Import(_) => None,
        }
    }

    /// Every board that it is about; one may come twice.
    pub(super) fn each_board<'a>(&'a self, mut each: impl FnMut(&'a Arc<Board>)) {
        match self {
            Self::Submit(submit) => each(&submit.board),
            Self::Remove(remove) => each(&remove.board),
            Self::Ban(ban) => each(&ban.board),
            Self::Redefine(redefine) => each(&redefine.board),
            Self::Import(chunk) => each(&chunk.board),
            Self::Vanish(board) => each(board),
            Self::Erase(erase) => erase.boards.iter().for_each(each),
            Self::Commands(commands) => commands.steps.iter().filter_map(Step::board).for_each(each),
        }
    }

    /// The board of one of its rows, where rows are scores of players and their removals.
    pub(super) fn board_of(&self, row: usize) -> Option<&Arc<Board>> {
        match self {
            Self::Submit(submit) => Some(&submit.board),
            Self::Remove(remove) => Some(&remove.board),
            Self::Import(chunk) => Some(&chunk.board),
            Self::Commands(commands) => commands.steps.get(row)?.board(),
            Self::Ban(_) | Self::Erase(_) | Self::Redefine(_) | Self::Vanish(_) => None,
        }
    }
}

/// Its answer; the kind is that of the request.
#[derive(Debug)]
pub(crate) enum Done {
    Submitted(Submitted),
    Removed(Removed),
    Redefined {
        created: bool,
        replayed: bool,
        /// Nothing was changed: the prizes of a period that is over are not written down yet.
        owes: bool,
    },
    Imported(Imported),
    Commands(Vec<StepReply>),
    /// Whether it is gone.
    Vanished(bool),
    /// Its database has not done it, or not all of it.
    Failed(Fault),
}

/// A record before a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Previous {
    /// The record.
    pub record: Record,
    /// Its rank just before the change was published.
    pub rank: Option<u64>,
}

/// What came of a submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// What users call the part that record and ranks are of.
    pub period: String,
    /// Names of the periods that the score came too late for.
    pub closed_periods: Vec<String>,
    /// The player's record now.
    pub record: Record,
    /// Its rank at this moment.
    pub rank: Option<u64>,
    /// Whether the submit changed the record.
    pub changed: bool,
    /// The record before.
    pub previous: Option<Previous>,
    /// Whether this repeats an earlier answer.
    pub replayed: bool,
}

impl Submitted {
    /// A repeated answer with that record, to be filled.
    pub(crate) fn replay(record: Record) -> Self {
        let (period, closed_periods, previous) = (String::new(), Vec::new(), None);
        Self { period, closed_periods, record, rank: None, changed: false, previous, replayed: true }
    }
}

/// What came of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Whether this repeats an earlier answer.
    pub replayed: bool,
}

/// What came of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The whole import so far.
    pub progress: ImportRow,
    /// Lines of this chunk that were refused.
    pub refused: Vec<(u64, Rejection)>,
    /// Whether the chunk had been done before.
    pub replayed: bool,
}
