//! Scores: submitting, removing and importing them through the lane; reading them from the order.
//!
//! [`command`] is what doors hand in and get back, `aim` which parts each row counts for,
//! `decide` the batch in memory, `left_out` what a database that is away keeps from it, `work` the batch between lane,
//! store and order, `lane` the queue in front; [`submit`], [`remove`] and [`import`] are the use cases; [`fill`] is for a
//! store that nobody serves.

mod aim;
mod answer;
pub mod command;
mod decide;
pub mod fill;
mod hiding;
pub mod import;
pub(crate) mod lane;
mod left_out;
pub mod orders;
mod plan;
mod publish;
mod redefine;
pub mod remove;
pub mod select;
pub(crate) mod shared;
mod spread;
mod standing;
pub mod steps;
pub mod submit;
pub(crate) mod unpublished;
pub(crate) mod work;
