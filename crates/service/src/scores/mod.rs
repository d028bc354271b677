//! Scores: submitting, removing and importing them through the lane; reading them from the order.
//!
//! [`command`] is what doors hand in and get back, `aim` which parts each row counts for,
//! `decide` the batch in memory, `transact` its transaction, `work` the batch between lane, store and order, `slices` and `several`
//! a batch of several databases, `lane` the queue in front; [`submit`], [`remove`] and [`import`] are the use cases; [`fill`] is for a
//! store that nobody serves.

pub(crate) mod aim;
mod answer;
pub mod command;
mod decide;
pub mod fill;
mod hiding;
pub mod import;
pub(crate) mod lane;
pub mod orders;
pub mod pipeline;
mod plan;
mod publish;
mod purged;
mod redefine;
pub mod remove;
pub mod select;
mod several;
pub(crate) mod shared;
mod slices;
mod spread;
mod standing;
pub mod steps;
pub mod submit;
mod transact;
pub(crate) mod unpublished;
pub(crate) mod work;
