//! Circuit breaker: the shards that did not answer the last request. A request to such a shard fails at once for a short
//! time, so no caller waits for an unavailable shard. Code that needs several shards asks these first. Not here: any
//! judgement of why.

use crate::{SHARDS_MAX, ShardSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a failed shard is not asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// The shards that failed; see the head of the file.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    now: AtomicU64,
    since: Mutex<Vec<(usize, Instant)>>,
}

impl CircuitBreaker {
    pub(super) fn get(&self) -> ShardSet {
        let breaker = self.now.load(Ordering::Acquire);
        (0..SHARDS_MAX).filter(|shard| breaker & 1 << shard != 0).collect()
    }

    /// Records that a shard did not answer.
    pub(super) fn put(&self, shard: usize) {
        let mut since = self.since();
        since.retain(|(other, _)| *other != shard);
        since.push((shard, Instant::now()));
        self.now.fetch_or(1 << shard, Ordering::AcqRel);
    }

    /// Records that a shard answered.
    pub(super) fn take(&self, shard: usize) {
        if self.has(shard) {
            self.now.fetch_and(!(1 << shard), Ordering::AcqRel);
        }
    }

    /// Whether a shard failed within the last [`PAUSE`].
    pub(super) fn is_recent(&self, shard: usize) -> bool {
        self.has(shard) && self.since().iter().any(|(other, at)| *other == shard && at.elapsed() < PAUSE)
    }

    fn has(&self, shard: usize) -> bool {
        self.now.load(Ordering::Acquire) & 1 << shard != 0
    }

    fn since(&self) -> MutexGuard<'_, Vec<(usize, Instant)>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
