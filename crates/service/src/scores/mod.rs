//! Scores: submitting, removing and importing them through the lane.
//!
//! Each kind of request has a file with its request, its reply and its decision: [`submit`], `correct`, [`remove`], `ban`, `erase`,
//! [`import`], `redefine`, `delete_unused` and [`pipeline`], whose steps are in [`steps`]. `batch` commits and publishes them together,
//! and knows only their common trait. `lane` has the queues in front. [`fill`] is for a store without a server.

mod ban;
mod batch;
pub(crate) mod correct;
mod delete_unused;
mod erase;
pub mod fill;
pub mod import;
pub(crate) mod lane;
pub mod pipeline;
pub mod rankings;
pub(crate) mod redefine;
pub mod remove;
pub mod select;
pub(crate) mod shared;
pub mod steps;
pub mod submit;
pub(crate) mod unpublished;

pub(crate) use ban::Ban;
pub(crate) use batch::{Listed, StoreTimes, WindowInMemory, score_key};
pub(crate) use delete_unused::DeleteUnused;
pub(crate) use erase::Erase;
pub(crate) use redefine::{Redefine, Redefined};
