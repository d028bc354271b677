//! A batch of score requests: one transaction on each of its shards, one publication, and a reply for each request.
//!
//! [`kind`] says what a request tells of itself; the other files know nothing else of it. `targets` gives each row its instant
//! and its windows, `purged` keeps numbers of windows from being used too early, `read` says what the transaction reads, `guard`
//! which revisions it depends on. `state` is the working set that requests are decided on, `transact` the transaction, `publish`
//! the rankings, and `handler` what the lane calls. `shards`, `slices` and `several` are for batches of several databases.

mod guard;
mod handler;
mod kind;
mod publish;
mod purged;
mod read;
mod several;
mod shards;
mod slices;
mod state;
mod targets;
mod transact;

pub(crate) use handler::{ScoreWork, StoreTimes};
pub(crate) use kind::{Access, Decision, Kind, Listed, Players, Reply, Replying, Request, Row, on_kind};
pub(crate) use publish::{Effect, Effects, Versions};
pub(crate) use read::score_key;
pub(crate) use shards::{FIRST, Shards};
pub(crate) use slices::{Piece, Slicing, after_a_window};
pub(crate) use state::{Applied, Move, State};
pub(crate) use targets::{RowTarget, Targets, WindowInMemory};
