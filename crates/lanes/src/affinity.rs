//! Assigns requests to lanes: as few lanes as are enough, and never two for one key.
//!
//! A commit of ten rows costs nearly as much as one of a hundred. Under low load several lanes would make small, expensive
//! batches; under high load they share the work. So the first lane takes all requests until it has enough, then the
//! second joins. Requests of one key keep their order only within one lane: while one of them is unanswered, the next go
//! to the same lane. A key without open requests has no lane. Keys share buckets by their hash, so some keys are tied
//! together without need. A lane that has answered nothing for a while gets no key that another lane can take.
//! Not here: what a key is.

use crate::sync::{AtomicU64, Ordering};
use foldhash::quality::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Buckets of keys: enough that two of some thousand requests rarely share one.
#[cfg(not(test))]
const BUCKETS: usize = 1 << 14;
#[cfg(test)]
const BUCKETS: usize = 2;

/// The low bits of a bucket count its requests; the bits above are the lane.
const COUNT_BITS: u32 = 48;

/// From this number of requests in a lane, the next lane is used too. Half of them are in the batch that commits now, and
/// that many rows cost several times as much as an empty commit.
pub(crate) const ENOUGH: u64 = 128;

/// A lane with requests is silent if it has finished none for this long.
pub(crate) const SILENT: Duration = Duration::from_millis(100);

/// The assignment of keys to lanes; clones share it.
#[derive(Clone, Debug)]
pub struct LaneAffinity {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    buckets: Box<[AtomicU64]>,
    lanes: Box<[LaneLoad]>,
    since: Instant,
    hasher: RandomState,
}

/// The counters of a lane, on a cache line of their own.
#[derive(Debug)]
#[repr(align(64))]
struct LaneLoad {
    /// The number of open requests.
    open: AtomicU64,
    /// When it last finished a request or got its first one, in milliseconds.
    last_done: AtomicU64,
}

/// Keeps the key of a request in its lane. Drop it when the effect of the request can be read, or when there is none.
#[derive(Debug)]
pub struct AffinityGuard {
    affinity: LaneAffinity,
    bucket: usize,
    lane: usize,
}

impl LaneAffinity {
    /// For 1 to 65,536 lanes.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        let buckets = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        let one = |_| LaneLoad { open: AtomicU64::new(0), last_done: AtomicU64::new(0) };
        let lanes = (0..lanes.clamp(1, 1 << 16)).map(one).collect();
        Self {
            shared: Arc::new(Shared {
                buckets,
                lanes,
                since: Instant::now(),
                hasher: RandomState::default(),
            }),
        }
    }

    /// The hash of a key.
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.shared.hasher.hash_one(key)
    }

    /// Assigns a key of this hash to the lane that has its open requests, or else to the best lane.
    #[must_use]
    pub fn assign(&self, hash: u64) -> AffinityGuard {
        let bucket = bucket(hash);
        let lane = self.enter(bucket, |taken| Some(taken.unwrap_or_else(|| self.best())));
        self.guard(bucket, lane.expect("there is always one"))
    }

    /// Assigns the key to this lane, unless another lane has open requests of it.
    #[must_use]
    pub fn assign_to(&self, hash: u64, lane: usize) -> Option<AffinityGuard> {
        let bucket = bucket(hash);
        let lane = self.enter(bucket, |taken| (taken.is_none() || taken == Some(lane)).then_some(lane))?;
        Some(self.guard(bucket, lane))
    }

    /// Counts one more request of a bucket. `choose` gets the lane of its open requests and returns the lane to use.
    fn enter(&self, bucket: usize, choose: impl Fn(Option<usize>) -> Option<usize>) -> Option<usize> {
        let state = &self.shared.buckets[bucket];
        let mut seen = state.load(Ordering::Relaxed);
        loop {
            let (lane, count) = ((seen >> COUNT_BITS) as usize, seen & ((1 << COUNT_BITS) - 1));
            let lane = choose((count > 0).then_some(lane))?;
            let next = ((lane as u64) << COUNT_BITS) | (count + 1);
            // The first request of a key sees the effects of the requests before it.
            match state.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(lane),
                Err(now) => seen = now,
            }
        }
    }

    fn guard(&self, bucket: usize, lane: usize) -> AffinityGuard {
        let one = &self.shared.lanes[lane];
        if one.open.fetch_add(1, Ordering::Relaxed) == 0 {
            one.last_done.store(self.shared.now_ms(), Ordering::Relaxed);
        }
        AffinityGuard { affinity: self.clone(), bucket, lane }
    }

    /// The lane with the fewest requests, of those in use.
    fn best(&self) -> usize {
        let Shared { lanes, .. } = &*self.shared;
        let open = |lane: usize| lanes[lane].open.load(Ordering::Relaxed);
        let all: u64 = (0..lanes.len()).map(open).sum();
        let used = usize::try_from(all / ENOUGH).unwrap_or(usize::MAX).saturating_add(1);
        let now = self.shared.now_ms();
        let silent = |lane: usize| {
            let last_done = lanes[lane].last_done.load(Ordering::Relaxed);
            open(lane) > 0 && u128::from(now.saturating_sub(last_done)) >= SILENT.as_millis()
        };
        let emptiest =
            (0..lanes.len()).filter(|lane| !silent(*lane)).take(used).min_by_key(|lane| open(*lane));
        emptiest.or_else(|| (0..lanes.len()).min_by_key(|lane| open(*lane))).expect("there is one at least")
    }
}

impl Shared {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Counts one fewer open request in a lane.
    fn leave(&self, lane: usize) {
        let (LaneLoad { last_done, open }, now) = (&self.lanes[lane], self.now_ms());
        // Hundreds of requests end within a millisecond; one store is enough for them.
        if last_done.load(Ordering::Relaxed) != now {
            last_done.store(now, Ordering::Relaxed);
        }
        open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Other tables use the low bits of the hash.
fn bucket(hash: u64) -> usize {
    (hash >> 32) as usize % BUCKETS
}

impl AffinityGuard {
    /// The lane of the request.
    #[must_use]
    pub fn lane(&self) -> usize {
        self.lane
    }

    /// Keeps the key in this lane for ever, because the end of its request is not known.
    pub fn keep(self) {
        self.affinity.shared.leave(self.lane);
        std::mem::forget(self);
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        self.affinity.shared.leave(self.lane);
        self.affinity.shared.buckets[self.bucket].fetch_sub(1, Ordering::Release);
    }
}
