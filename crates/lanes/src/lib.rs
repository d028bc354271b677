//! Group commit: one batch is in flight, the next one forms, and every request gets its own answer.
//!
//! A lane turns many small requests into few large, ordered operations. Callers put requests into a queue. One thread
//! takes the waiting requests as one batch, makes it durable, publishes it to readers and then answers each caller.
//! Meanwhile the next batch forms. The load decides its size: one request when idle, hundreds under pressure.
//! No request waits for a batch to fill.
//!
//! A [`BatchHandler`] gives a batch its meaning; the crate knows no table, no rule and no runtime.
//! A [`Reply`] carries the answer to a caller. [`WorkingSet`] helps a `BatchHandler` to apply many requests to one key in
//! memory and to write that key once.
//!
//! Guarantees:
//! - Every accepted request is answered exactly once, after its batch was made durable and published.
//! - Requests are committed in the order in which they were accepted, and answered in that order unless the
//!   handler sends the replies elsewhere ([`BatchHandler::dispatch`]). Bisection keeps that order; a request that
//!   fails changes nothing for those before and after it.
//! - A lane commits nothing else while the outcome of a commit is unknown.
//! - A draining lane answers all accepted requests and accepts no more.
//! - A panic of the lane's thread closes the queue and drops all replies unsent. A caller then sees its reply dropped,
//!   never an invented answer. The binary should abort on such a panic: the store is durable and derived data is
//!   rebuilt, so a stop loses less than a half-applied batch.
//!
//! A lane has a thread, or its owner runs each step ([`Lane::by_hand`]). The steps are the same.
//!
//! Lanes do not know of each other. The caller gets the lane of a request from [`LaneAffinity`]: as few lanes as are
//! enough, and never two for one key. A [`Barrier`] lets one batch pass alone if handlers share data.
//!
//! Not a goal: order between lanes, priorities, deadlines of callers, waiting for a batch to fill.

mod affinity;
mod barrier;
mod batch;
mod bisection;
mod handler;
mod histogram;
mod lane;
mod queue;
mod run;
mod stats;
mod sync;
mod working_set;

pub use affinity::{AffinityGuard, LaneAffinity};
pub use barrier::{Barrier, BarrierGuard, Blocked};
pub use batch::{Cut, LaneLimits};
pub use handler::{
    BatchFailure, BatchHandler, BatchSharing, LaneTimings, Reply, Resolution, Weight, backoff,
};
pub use histogram::{Histogram, Times};
pub use lane::{Lane, LaneThread, Submission};
pub use queue::SubmitError;
pub use stats::Stats;
pub use working_set::{WorkingSet, keys_to_load};

#[cfg(test)]
mod tests;
