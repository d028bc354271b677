//! Cuts a batch from the waiting requests, and names the reason for its end.
//!
//! A batch is a prefix of the queue, never a selection: that alone keeps the order of arrival. Each end is counted by its
//! reason, so a counter explains small batches. Requests and replies are separate, because the handler gets a slice of the
//! requests and must not see the replies.

use crate::handler::{BatchSharing, Weight};
use std::collections::VecDeque;
use std::time::Instant;

/// The limits of a lane. A limit of 0 acts as 1: the first request is always taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLimits {
    /// Rows in one batch. Default 1,000: far up the flat part of the curve of rows per second, and still a
    /// short transaction. A request with more rows gets a batch of its own.
    pub batch_rows_max: usize,
    /// Bytes in one batch. Default 4 MiB, a quarter of the smallest default packet limit of database servers. A
    /// request with more bytes gets a batch of its own.
    pub batch_bytes_max: usize,
    /// Requests that wait for a batch; beyond it the lane refuses requests. Default 20,000: 20 full batches.
    pub queue_requests_max: usize,
    /// Bytes that wait for a batch; beyond it the lane refuses requests. Default 64 MiB.
    pub queue_bytes_max: usize,
    /// Further attempts after a [`BatchFailure::Retry`](crate::BatchFailure::Retry). Default 5, about 30 ms of pauses.
    pub retries_max: u32,
}

impl Default for LaneLimits {
    fn default() -> Self {
        Self {
            batch_rows_max: 1_000,
            batch_bytes_max: 4 << 20,
            queue_requests_max: 20_000,
            queue_bytes_max: 64 << 20,
            retries_max: 5,
        }
    }
}

/// Why a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nothing else waited.
    Idle,
    /// The next request would have exceeded `batch_rows_max`.
    Rows,
    /// The next request would have exceeded `batch_bytes_max`.
    Bytes,
    /// The next request may not share a batch with these.
    Kind,
    /// Nothing else waited, and the lane accepts no more requests.
    Drain,
}

impl Cut {
    /// Every cut, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Idle, Self::Rows, Self::Bytes, Self::Kind, Self::Drain];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Rows => "rows",
            Self::Bytes => "bytes",
            Self::Kind => "kind",
            Self::Drain => "drain",
        }
    }
}

/// An accepted request with its reply, and what the limits need of it.
pub(crate) struct Waiting<Q, R> {
    pub(crate) request: Q,
    pub(crate) reply: R,
    pub(crate) weight: Weight,
    pub(crate) kind: BatchSharing,
    /// When it was accepted.
    pub(crate) since: Instant,
}

/// Requests that go to the store together, and their replies at the same positions.
pub(crate) struct Batch<Q, R> {
    pub(crate) requests: Vec<Q>,
    pub(crate) replies: Vec<R>,
}

/// The requests that [`take`] took from the front of the queue.
pub(crate) struct TakenBatch<Q, R> {
    pub(crate) batch: Batch<Q, R>,
    /// When each of its requests was accepted.
    pub(crate) since: Vec<Instant>,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    pub(crate) cut: Cut,
}

/// Takes the longest prefix of `inbox` within the bounds, and at least one request.
///
/// `at_end` is the cut if all of `inbox` fits.
pub(crate) fn take<Q, R>(
    inbox: &mut VecDeque<Waiting<Q, R>>,
    bounds: &LaneLimits,
    at_end: Cut,
) -> TakenBatch<Q, R> {
    let first = inbox.pop_front().expect("a batch is taken only when something waits");
    let kind = first.kind;
    let (mut rows, mut bytes) = (rows_of(first.weight), first.weight.bytes as usize);
    let room = (inbox.len() + 1).min(bounds.batch_rows_max.max(1));
    let mut batch = Batch { requests: Vec::with_capacity(room), replies: Vec::with_capacity(room) };
    let mut since = Vec::with_capacity(room);
    since.push(first.since);
    batch.push(first);
    let cut = loop {
        let Some(next) = inbox.front() else { break at_end };
        let (rows_then, bytes_then) = (rows + rows_of(next.weight), bytes + next.weight.bytes as usize);
        if !kind.shares_with(next.kind) {
            break Cut::Kind;
        } else if rows_then > bounds.batch_rows_max {
            break Cut::Rows;
        } else if bytes_then > bounds.batch_bytes_max {
            break Cut::Bytes;
        }
        (rows, bytes) = (rows_then, bytes_then);
        let next = inbox.pop_front().expect("the front was just seen");
        since.push(next.since);
        batch.push(next);
    };
    TakenBatch { batch, since, rows, bytes, cut }
}

impl<Q, R> Batch<Q, R> {
    fn push(&mut self, waiting: Waiting<Q, R>) {
        self.requests.push(waiting.request);
        self.replies.push(waiting.reply);
    }
}

fn rows_of(weight: Weight) -> usize {
    weight.rows.max(1) as usize
}
