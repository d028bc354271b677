//! What the ledger's lane can do: each kind of request is a type that defines what it reads, decides and replies.
//!
//! The lane knows requests only by [`LedgerRequest`], so a new kind is one file. A reply travels through the lane as
//! [`Answer`], whose type the request fixes. A transaction reads by key, so a caller looks up first what a request names. If
//! that has changed under the lock, the reply says so, nothing was done, and the caller looks it up again.

use super::LedgerSettings;
use super::state::BatchState;
use std::any::Any;
use tally_rules::ledger::Uuid;
use tally_rules::{Origin, Rejection};
use tally_store::ReadSet;

/// A kind of request.
pub(crate) trait LedgerRequest: Send + 'static {
    /// The reply to the caller, if no rule rejects the request.
    type Answer: Send + 'static;

    /// What it needs of its batch.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The origin of the transfers and holds that it writes, if it writes any.
    fn origin(&self) -> Origin {
        Origin::default()
    }

    /// Adds everything that it may touch to the read set of its batch; `ids` are its own.
    fn read(&self, plan: &mut ReadSet, ids: &[Uuid], settings: &LedgerSettings);

    /// Applies it to the rows of its batch. Pure, because a batch is decided again after a conflict.
    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<Self::Answer, Rejection>;

    /// Applies the committed change to memory.
    fn publish(&self, _answer: &Self::Answer) {}
}

/// What a request takes of its batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// Rows that it reads or writes, about: for the bounds of queue and batch.
    pub(crate) rows: usize,
    /// Bytes beyond those of its rows, about.
    pub(crate) bytes: usize,
    /// New ids.
    pub(crate) ids: usize,
    /// It makes members, which fixes the home currency.
    pub(crate) makes_members: bool,
    /// It makes leaderboards.
    pub(crate) makes_boards: bool,
    /// No score may be decided meanwhile.
    pub(crate) excludes_scores: bool,
    /// It copies transfers of another system.
    pub(crate) is_import: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            rows: 1,
            bytes: 0,
            ids: 0,
            makes_members: false,
            makes_boards: false,
            excludes_scores: false,
            is_import: false,
        }
    }
}

/// A reply whose type its request knows.
pub(crate) type Answer = Box<dyn Any + Send>;

/// What a batch decided on one request.
pub(crate) type Decision = Result<Answer, Rejection>;

/// A request of any kind, as the lane has it.
pub(crate) trait AnyRequest: Send {
    fn needs(&self) -> Needs;
    fn origin(&self) -> Origin;
    fn read(&self, plan: &mut ReadSet, ids: &[Uuid], settings: &LedgerSettings);
    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Decision;
    fn publish(&self, decision: &Decision);
}

impl<R: LedgerRequest> AnyRequest for R {
    fn needs(&self) -> Needs {
        LedgerRequest::needs(self)
    }

    fn origin(&self) -> Origin {
        LedgerRequest::origin(self)
    }

    fn read(&self, plan: &mut ReadSet, ids: &[Uuid], settings: &LedgerSettings) {
        LedgerRequest::read(self, plan, ids, settings);
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Decision {
        Ok(Box::new(LedgerRequest::decide(self, state, ids)?))
    }

    fn publish(&self, decision: &Decision) {
        if let Ok(Some(answer)) = decision.as_ref().map(|answer| answer.downcast_ref()) {
            LedgerRequest::publish(self, answer);
        }
    }
}

/// The reply of a request of kind `R`.
pub(super) fn typed<R: LedgerRequest>(answer: Answer) -> R::Answer {
    *answer.downcast().expect("the lane answers a request with what it decided")
}
