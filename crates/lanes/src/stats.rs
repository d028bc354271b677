//! Counters of a lane. Only the lane's thread writes them; any thread may read.
//!
//! The lane counts before it sends the answers of a batch, so a caller with an answer is already counted.
//! No decision depends on them, hence relaxed atomics. The lane measures time for them and for `LaneTimings`.

use crate::batch::Cut;
use crate::histogram::{Histogram, Times};
use std::array::from_fn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What a lane has done since its start, and what it holds now. Counts are since the start unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that wait for a batch, now.
    pub queued_requests: u64,
    /// Bytes that wait for a batch, now.
    pub queued_bytes: u64,
    /// Requests in the batch in flight, now.
    pub in_flight: u64,
    /// Requests refused because the queue was full.
    pub refused_full: u64,
    /// Requests refused because the lane drains or has ended.
    pub refused_draining: u64,
    /// Requests taken into a batch.
    pub requests: u64,
    /// Requests failed without a batch, because they arrived while the outcome of an earlier batch was unknown.
    pub shed: u64,
    /// Rows of all batches by weight.
    pub rows: u64,
    /// Batches taken from the queue.
    pub batches: u64,
    /// Rows of the heaviest batch.
    pub batch_rows_largest: u64,
    /// Why batches ended, in the order of [`Cut::ALL`].
    pub cuts: [u64; Cut::ALL.len()],
    /// Attempts to commit a batch, with retries and pieces of bisected batches.
    pub commits: u64,
    /// Times a batch, or a piece of one, was halved to find a poison request.
    pub splits: u64,
    /// Retries of a commit.
    pub retries: u64,
    /// Attempts to resolve a batch.
    pub resolves: u64,
    /// Requests answered with a fault.
    pub faults: u64,
    /// Time spent on batches, from taking one to its last answer.
    pub busy: Duration,
    /// The part of `busy` spent in the store, pauses between attempts included.
    pub committing: Duration,
    /// How long each request waited for its batch.
    pub queued: Times,
    /// How long each batch, or piece of one, took to publish.
    pub publishing: Times,
}

impl Stats {
    /// The sum of two lanes.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            queued_requests: self.queued_requests + other.queued_requests,
            queued_bytes: self.queued_bytes + other.queued_bytes,
            in_flight: self.in_flight + other.in_flight,
            refused_full: self.refused_full + other.refused_full,
            refused_draining: self.refused_draining + other.refused_draining,
            requests: self.requests + other.requests,
            shed: self.shed + other.shed,
            rows: self.rows + other.rows,
            batches: self.batches + other.batches,
            batch_rows_largest: self.batch_rows_largest.max(other.batch_rows_largest),
            cuts: from_fn(|cut| self.cuts[cut] + other.cuts[cut]),
            commits: self.commits + other.commits,
            splits: self.splits + other.splits,
            retries: self.retries + other.retries,
            resolves: self.resolves + other.resolves,
            faults: self.faults + other.faults,
            busy: self.busy + other.busy,
            committing: self.committing + other.committing,
            queued: self.queued.and(other.queued),
            publishing: self.publishing.and(other.publishing),
        }
    }

    /// The number of batches that ended for this reason.
    #[must_use]
    pub fn cut(&self, cut: Cut) -> u64 {
        self.cuts[cut as usize]
    }
}

/// The counters behind [`Stats`], without those of the queue, which its lock guards.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) in_flight: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) shed: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) batch_rows_largest: AtomicU64,
    pub(crate) cuts: [AtomicU64; Cut::ALL.len()],
    pub(crate) commits: AtomicU64,
    pub(crate) splits: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) resolves: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) committing_ns: AtomicU64,
    pub(crate) queued: Histogram,
    pub(crate) publishing: Histogram,
}

impl Counters {
    /// Counts a batch when it is taken.
    pub(crate) fn batch(&self, requests: usize, rows: usize, cut: Cut) {
        self.in_flight.store(requests as u64, Relaxed);
        add(&self.requests, requests as u64);
        add(&self.rows, rows as u64);
        add(&self.batches, 1);
        add(&self.cuts[cut as usize], 1);
        self.batch_rows_largest.fetch_max(rows as u64, Relaxed);
    }

    /// Fills in all counters except those of the queue.
    pub(crate) fn read_into(&self, stats: &mut Stats) {
        stats.in_flight = self.in_flight.load(Relaxed);
        stats.requests = self.requests.load(Relaxed);
        stats.shed = self.shed.load(Relaxed);
        stats.rows = self.rows.load(Relaxed);
        stats.batches = self.batches.load(Relaxed);
        stats.batch_rows_largest = self.batch_rows_largest.load(Relaxed);
        for (to, from) in stats.cuts.iter_mut().zip(&self.cuts) {
            *to = from.load(Relaxed);
        }
        stats.commits = self.commits.load(Relaxed);
        stats.splits = self.splits.load(Relaxed);
        stats.retries = self.retries.load(Relaxed);
        stats.resolves = self.resolves.load(Relaxed);
        stats.faults = self.faults.load(Relaxed);
        stats.busy = Duration::from_nanos(self.busy_ns.load(Relaxed));
        stats.committing = Duration::from_nanos(self.committing_ns.load(Relaxed));
        stats.queued = self.queued.read();
        stats.publishing = self.publishing.read();
    }
}

/// Adds to a counter that no other thread writes: a load and a store, no locked instruction.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// Adds the time since `start`.
pub(crate) fn add_since(counter: &AtomicU64, start: std::time::Instant) {
    add(counter, u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
}
