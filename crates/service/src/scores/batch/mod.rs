//! A batch of score requests: one transaction on each of its shards, one publication, and a reply for each request.
//!
//! [`kind`] says what a request tells of itself; the other files know nothing else of it. `targets` gives each row its instant
//! and its windows, `read` what the transaction reads, `guard` which revisions it depends on. `state` is the working set that
//! requests are decided on, `transact` the transaction, `publish` the rankings, and `handler` what the lane calls. `shards`,
//! `slices` and `several` are for batches of several databases.

pub(crate) mod guard;
pub(crate) mod handler;
pub(crate) mod kind;
pub(crate) mod publish;
mod read;
mod several;
pub(crate) mod shards;
pub(crate) mod slices;
pub(crate) mod state;
pub(crate) mod targets;
mod transact;

pub(crate) use read::score_key;
