//! The acts on contests that the ledger's lane does, and their replies.
//!
//! A transaction reads by key. So the caller reads the contest first and names what the act may touch. If the contest has
//! changed under its lock, the reply is [`ActResult::Outdated`], nothing was done, and the caller reads again. Not here: what an
//! act does (`decide`).

use crate::boards::Board;
use std::sync::Arc;
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::record::ApplicationLocation;
use tally_rules::contest::start::InvalidApplication;
use tally_rules::contest::{ActorKind, Application, ContestId, ContestMember, Payout, Record, Status};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::MemberId;
use tally_rules::{Definition, Micros, PlayerId, Rejection};
use tally_store::{BoardNo, BoardRow};

/// One act on one contest.
#[derive(Clone, Debug)]
pub struct ContestRequest {
    /// The contest.
    pub id: ContestId,
    /// The contest as it was read; `None` if one is made.
    pub seen: Option<Box<Record>>,
    /// The actor's role.
    pub by: ActorKind,
    /// The instant of the act, if it is not now.
    pub at: Option<Micros>,
    /// The act itself.
    pub act: Act,
    /// Leaderboards whose scores depend on the change: no score of theirs is decided meanwhile.
    pub boards: Vec<Arc<Board>>,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// An application as it was read.
pub type Seen = (PlayerId, Option<Application>);

/// An act on a contest.
#[derive(Clone, Debug)]
pub enum Act {
    /// Makes the contest.
    Create {
        /// Its requested definition.
        spec: Box<ContestSpec>,
        /// The series that makes it.
        series: Option<ContestId>,
    },
    /// Changes its definition; if it runs, on these leaderboards.
    Patch(Box<ContestSpec>, Vec<(BoardNo, Definition)>),
    /// Takes applications, in this application store.
    Open(ApplicationLocation),
    /// A player applies.
    Apply {
        /// The player that applies.
        player: PlayerId,
        /// The member whose wallet pays a fee, if the contest is for members.
        member: Option<MemberId>,
    },
    /// Players are accepted, or rejected.
    Decide {
        /// Players with their applications.
        rows: Vec<Seen>,
        /// Accepts them, if so many leaderboards may still be made; rejects them without a number.
        accept: Option<u32>,
    },
    /// A player takes the application back.
    Withdraw(Seen),
    /// Makes members of the accepted players, in order of acceptance.
    Start(Vec<(PlayerId, Application)>),
    /// Ends playing on these leaderboards.
    Finish(Vec<(BoardNo, Definition)>),
    /// Cancels it; if it runs, on these leaderboards.
    Cancel(Vec<(BoardNo, Definition)>),
    /// Clears applications; the flag marks the last piece.
    Clear(Vec<(PlayerId, Application)>, bool),
    /// Stores what is to be paid.
    Settle(Vec<Payout>),
    /// Pays the next prizes, beginning with that number.
    Pay(u32, Vec<Payout>),
    /// Pays fees back to the next members; the flag marks the last piece.
    Refund(Vec<(PlayerId, ContestMember)>, bool),
    /// Pays prizes or fees that were left unpaid by mistake.
    Repay(Vec<(u32, Payout)>),
    /// Notes a change of applications that are not in the store.
    External(ExternalChange),
}

/// A change of applications that are not in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalChange {
    /// No earlier start that has read them counts any more.
    Thaw,
    /// They were lost when it was time to start.
    Lost,
    /// They were cleared.
    Cleared,
}

/// The reply to an act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContestDone {
    /// The contest after the act.
    pub record: Box<Record>,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
    /// Whether its state has changed.
    pub turned: bool,
    /// What the reply has beside the contest.
    pub what: ActResult,
}

/// What a reply has beside the contest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActResult {
    /// No more than the contest.
    Nothing,
    /// The contest has changed since it was read; nothing was done.
    Outdated,
    /// The application that was made.
    Applied(Application),
    /// The outcome of each row of a decision on applications.
    Decided(Vec<Result<Status, Rejection>>),
    /// The outcome of each payment.
    Paid(Vec<Result<(), UnpaidReason>>),
    /// Players that did not become members, and the leaderboards that were made.
    Started(Vec<InvalidApplication>, Vec<BoardRow>),
}

impl Act {
    /// Whether scores depend on the change.
    pub(super) fn concerns_scores(&self) -> bool {
        matches!(self, Self::Patch(..) | Self::Finish(_) | Self::Cancel(_))
    }
}

impl ContestRequest {
    /// An act of the clock on a contest as it was read.
    pub(super) fn by_clock(id: &ContestId, seen: Record, act: Act) -> Self {
        let (id, seen, boards) = (id.clone(), Some(Box::new(seen)), Vec::new());
        Self { id, seen, by: ActorKind::Clock, at: None, act, boards, identity: None }
    }

    /// Whether no score may be decided meanwhile. With several servers the act is a change of the leaderboards instead, so a
    /// batch that was planned before it is planned again.
    pub(crate) fn excludes_scores(&self) -> bool {
        self.boards.iter().any(|board| !board.is_shared())
    }

    /// The fee, as it was read.
    pub(crate) fn fee(&self) -> Option<Fee> {
        self.seen.as_ref()?.contest.entry_fee
    }

    /// How many ids it may use.
    pub(crate) fn ids(&self) -> usize {
        match &self.act {
            Act::Create { .. } | Act::Apply { .. } => 1,
            Act::Start(rows) => rows.len(),
            Act::Pay(_, rows) => rows.len(),
            Act::Refund(rows, _) => rows.len(),
            Act::Repay(rows) => rows.len(),
            Act::Patch(..)
            | Act::Open(_)
            | Act::External(_)
            | Act::Decide { .. }
            | Act::Withdraw(_)
            | Act::Finish(_)
            | Act::Cancel(_)
            | Act::Clear(..)
            | Act::Settle(_) => 0,
        }
    }

    /// How many rows it reads or writes, about.
    pub(crate) fn rows(&self) -> usize {
        match &self.act {
            Act::Decide { rows, .. } => rows.len(),
            Act::Start(rows) | Act::Clear(rows, _) => rows.len(),
            Act::Settle(rows) | Act::Pay(_, rows) => rows.len(),
            Act::Repay(rows) => rows.len(),
            Act::Refund(rows, _) => rows.len(),
            Act::Create { .. }
            | Act::Patch(..)
            | Act::Open(_)
            | Act::External(_)
            | Act::Apply { .. }
            | Act::Withdraw(_)
            | Act::Finish(_)
            | Act::Cancel(_) => 1,
        }
    }
}
