//! What is asked of the ledger's lane about contests, and its answers.
//!
//! A transaction reads by key, so whoever asks has looked at the contest before and names what the act may touch. Where that
//! is not so any more under the contest's lock, the answer is [`What::Stale`], nothing was done, and whoever asks looks
//! again. Not here: what is done (`wallets::decide::contests`).

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
pub struct ContestOrder {
    /// Which.
    pub id: ContestId,
    /// As it was when somebody looked; there is none where one is made.
    pub seen: Option<Box<Record>>,
    /// By whom.
    pub by: ActorKind,
    /// As of when, where that is not now.
    pub at: Option<Micros>,
    /// What.
    pub act: Act,
    /// Leaderboards whose scores ask about what it changes: none of theirs is decided while it is done, and then they know it.
    pub boards: Vec<Arc<Board>>,
    /// For retries.
    pub identity: Option<IdempotencyKey>,
}

/// An application as it was when somebody looked.
pub type Seen = (PlayerId, Option<Application>);

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Act {
    /// Make it.
    Create {
        /// What it is.
        spec: Box<ContestSpec>,
        /// The series that makes it.
        series: Option<ContestId>,
    },
    /// Change its definition; if it runs, on these boards.
    Patch(Box<ContestSpec>, Vec<(BoardNo, Definition)>),
    /// Take applications, there.
    Open(ApplicationLocation),
    /// A player applies.
    Apply {
        /// Who.
        player: PlayerId,
        /// Whose wallet, where it takes a member and there is one.
        member: Option<MemberId>,
    },
    /// Players are accepted, or rejected.
    Decide {
        /// Who.
        rows: Vec<Seen>,
        /// Whether they are accepted: how many leaderboards may still be made.
        accept: Option<u32>,
    },
    /// A player takes the application back.
    Withdraw(Seen),
    /// Those accepted, in order of acceptance, become members.
    Start(Vec<(PlayerId, Application)>),
    /// Playing ends on these boards.
    Finish(Vec<(BoardNo, Definition)>),
    /// It is called off; if it runs, on these boards.
    Cancel(Vec<(BoardNo, Definition)>),
    /// Some of the applications that are left go; whether they are the last.
    Clear(Vec<(PlayerId, Application)>, bool),
    /// What is to be paid becomes known.
    Settle(Vec<Payout>),
    /// The next prizes are paid, the first of them being of that number.
    Pay(u32, Vec<Payout>),
    /// The next members get their fees back; whether they are the last.
    Refund(Vec<(PlayerId, ContestMember)>, bool),
    /// Prizes or fees that were left unpaid by mistake are to be paid.
    Repay(Vec<(u32, Payout)>),
    /// Something became of applications that are elsewhere.
    Outside(Outside),
}

/// What became of applications that are not in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// No start counts any more that has read them.
    Thaw,
    /// They were lost when it was time to start.
    Lost,
    /// They are cleared.
    Cleared,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContestDone {
    /// The contest after it.
    pub record: Box<Record>,
    /// Whether this repeats an earlier answer.
    pub replayed: bool,
    /// Whether it is in another state than before.
    pub turned: bool,
    /// What else there is to say.
    pub what: What,
}

/// What else there is to say of an act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Nothing.
    Nothing,
    /// Something was not as it was seen; nothing was done.
    Stale,
    /// An application.
    Applied(Application),
    /// What became of each row.
    Decided(Vec<Result<Status, Rejection>>),
    /// What became of each payment.
    Paid(Vec<Result<(), UnpaidReason>>),
    /// Who did not become a member, and the boards that were made.
    Started(Vec<InvalidApplication>, Vec<BoardRow>),
}

impl Act {
    /// Whether scores ask about what it changes.
    pub(super) fn concerns_scores(&self) -> bool {
        matches!(self, Self::Patch(..) | Self::Finish(_) | Self::Cancel(_))
    }
}

impl ContestOrder {
    /// Whether it has to be done while no score is decided. Where others write too, it is a change of the leaderboards, so a
    /// batch that was planned before it is planned again.
    pub(crate) fn holds_scores(&self) -> bool {
        self.boards.iter().any(|board| !board.is_shared())
    }

    /// The fee, as it was seen.
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
            | Act::Outside(_)
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
            | Act::Outside(_)
            | Act::Apply { .. }
            | Act::Withdraw(_)
            | Act::Finish(_)
            | Act::Cancel(_) => 1,
        }
    }
}
