//! A batch of score requests: one transaction on each of its shards, one publication, and a reply for each request.
//!
//! [`kind`] is the trait of a request; the other files know only that. `targets` gives each row its instant and its windows.
//! `purged` keeps numbers of windows from being reused too early. `read` is the read set, and `revision_guard` the revisions that it
//! depends on. `state` is the working set, `transact` the transaction, `publish` the rankings, and `handler` what the lane
//! calls. `shards`, `slices` and `several` are for batches of several databases.

mod handler;
mod kind;
mod publish;
mod purged;
mod read;
mod revision_guard;
mod several;
mod shards;
mod slices;
mod state;
mod targets;
mod transact;

pub(crate) use handler::{ScoreBatchHandler, StoreTimes};
pub(crate) use kind::{
    Access, Decision, Listed, Players, Replying, ScoreReply, ScoreRequest, ScoreRequestKind, TargetRow,
    on_kind,
};
pub(crate) use publish::{Effect, Effects, Versions};
pub(crate) use read::score_key;
pub(crate) use shards::{FIRST, Shards};
pub(crate) use slices::{Piece, Slicing, after_a_window};
pub(crate) use state::{Applied, RecordChange, ScoreBatchState};
pub(crate) use targets::{RowTarget, Targets, WindowInMemory};
