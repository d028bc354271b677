//! Group commit: one batch is in flight, the next one forms, and every request gets its own answer.
//!
//! A lane turns many small requests into few large, ordered operations. Callers put requests into a
//! queue; one thread takes what waits as one batch, makes it durable, shows it to readers and then
//! answers each caller. Meanwhile the next batch forms by itself. The load decides its size: one request when idle,
//! hundreds under pressure. No request waits for a batch to fill.
//!
//! What a batch *means* is the business of a [`BatchHandler`]; the crate knows no table, no rule and no runtime.
//! A [`Reply`] carries the answer to a caller. [`WorkingSet`] helps a `BatchHandler` to apply many requests to one key in
//! memory and to write that key once.
//!
//! What holds:
//! - Every accepted request is answered exactly once, after its batch was made durable and published.
//! - Requests are committed in the order in which they were accepted, and answered in that order unless the
//!   handler sends the replies elsewhere ([`BatchHandler::tell`]). Splitting a batch keeps that order; a request that
//!   fails changes nothing for those before and after it.
//! - While the outcome of a commit is unknown nothing else is committed.
//! - A lane that drains answers all it has accepted and takes nothing more.
//! - If the lane's thread panics, the queue closes and all replies are dropped unsent. A caller then sees
//!   its reply vanish, never an invented answer. The binary is expected to abort on such a panic: the store
//!   is durable and derived data is rebuilt, so stopping loses less than going on half-applied.
//!
//! A lane has a thread, or its owner does each turn ([`Lane::by_hand`]): the same turns.
//!
//! Lanes side by side know nothing of each other. The caller asks [`LaneAffinity`] for the lane of a request: as few lanes as are
//! enough, and never two for one key. Where handlers share data, a [`Barrier`] lets one batch pass alone.
//!
//! Not a goal: order between lanes, priorities, deadlines of callers, waiting for a batch to fill.

mod affinity;
mod barrier;
mod batch;
mod handler;
mod histogram;
mod lane;
mod queue;
mod run;
mod split;
mod stats;
mod sync;
mod working_set;

pub use affinity::{AffinityGuard, LaneAffinity};
pub use barrier::{Barrier, BarrierGuard, Blocked};
pub use batch::{Bounds, Cut};
pub use handler::{BatchHandler, Failure, Kind, LaneTimings, Reply, Resolution, Weight, backoff};
pub use histogram::{Histogram, Times};
pub use lane::{Lane, LaneThread, Submission};
pub use queue::Refused;
pub use stats::Stats;
pub use working_set::{WorkingSet, keys_to_load};

#[cfg(test)]
mod tests;
