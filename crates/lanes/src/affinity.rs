//! Which of several lanes the next request of a key goes to: to as few lanes as are enough, and of one key never to two.
//!
//! A commit costs nearly the same whether it has ten rows or a hundred, so lanes beside each other make batches small and
//! commits dear while little is asked, and share the work while much is. So the first lane takes what comes until it has
//! enough, then the second beside it. A key's requests are in order only in one lane: as long as any of them has not been
//! answered, those that follow go where it is; a key that nobody asks for has no lane. Keys share buckets by their hash,
//! which ties some together that need not be. A lane that has answered nobody for a while, because the store is silent to it,
//! gets no keys that another one can take. Not here: what a key is.

use crate::sync::{AtomicU64, Ordering};
use foldhash::quality::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Buckets of keys: so many that hardly two of some thousand requests share one.
#[cfg(not(test))]
const BUCKETS: usize = 1 << 14;
#[cfg(test)]
const BUCKETS: usize = 2;

/// Bits of a bucket that count its requests; those above name their lane.
const COUNT_BITS: u32 = 48;

/// Requests of a lane from which the next one is used beside it: half of them are in the batch that is being committed, and
/// so many rows are some times the work that a commit is without any.
pub(crate) const ENOUGH: u64 = 128;

/// A lane that has requests and has been done with none for so long is silent.
pub(crate) const SILENT: Duration = Duration::from_millis(100);

/// The seats of some lanes; clones are of the same.
#[derive(Clone, Debug)]
pub struct LaneAffinity {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    buckets: Box<[AtomicU64]>,
    lanes: Box<[One]>,
    since: Instant,
    hasher: RandomState,
}

/// A lane; what threads write for one is not on a line of memory of another.
#[derive(Debug)]
#[repr(align(64))]
struct One {
    /// How many requests it has.
    seated: AtomicU64,
    /// When it was last done with one, or had the first, in milliseconds.
    stirred: AtomicU64,
}

/// A request's place in a lane. It is to be dropped once the request is done: what it did can be read, or it did nothing.
#[derive(Debug)]
pub struct AffinityGuard {
    seats: LaneAffinity,
    bucket: usize,
    lane: usize,
}

impl LaneAffinity {
    /// For this many lanes, 1 at least and 65,536 at most.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        let buckets = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        let one = |_| One { seated: AtomicU64::new(0), stirred: AtomicU64::new(0) };
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

    /// A seat for a key of this hash: in the lane where others of it are, else in the one that suits best.
    #[must_use]
    pub fn assign(&self, hash: u64) -> AffinityGuard {
        let bucket = bucket(hash);
        let lane = self.enter(bucket, |taken| Some(taken.unwrap_or_else(|| self.best())));
        self.seat(bucket, lane.expect("there is always one"))
    }

    /// A seat in this lane, if no others of the key are elsewhere.
    #[must_use]
    pub fn assign_to(&self, hash: u64, lane: usize) -> Option<AffinityGuard> {
        let bucket = bucket(hash);
        let lane = self.enter(bucket, |taken| (taken.is_none() || taken == Some(lane)).then_some(lane))?;
        Some(self.seat(bucket, lane))
    }

    /// Puts one more request into a bucket, in the lane that is chosen by the one of those that are there.
    fn enter(&self, bucket: usize, choose: impl Fn(Option<usize>) -> Option<usize>) -> Option<usize> {
        let state = &self.shared.buckets[bucket];
        let mut seen = state.load(Ordering::Relaxed);
        loop {
            let (lane, count) = ((seen >> COUNT_BITS) as usize, seen & ((1 << COUNT_BITS) - 1));
            let lane = choose((count > 0).then_some(lane))?;
            let next = ((lane as u64) << COUNT_BITS) | (count + 1);
            // Whoever comes first sees what those before have left.
            match state.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(lane),
                Err(now) => seen = now,
            }
        }
    }

    fn seat(&self, bucket: usize, lane: usize) -> AffinityGuard {
        let one = &self.shared.lanes[lane];
        if one.seated.fetch_add(1, Ordering::Relaxed) == 0 {
            one.stirred.store(self.shared.now_ms(), Ordering::Relaxed);
        }
        AffinityGuard { seats: self.clone(), bucket, lane }
    }

    /// The emptiest of as many as are used beside each other now.
    fn best(&self) -> usize {
        let Shared { lanes, .. } = &*self.shared;
        let seated = |lane: usize| lanes[lane].seated.load(Ordering::Relaxed);
        let all: u64 = (0..lanes.len()).map(seated).sum();
        let used = usize::try_from(all / ENOUGH).unwrap_or(usize::MAX).saturating_add(1);
        let now = self.shared.now_ms();
        let silent = |lane: usize| {
            let stirred = lanes[lane].stirred.load(Ordering::Relaxed);
            seated(lane) > 0 && u128::from(now.saturating_sub(stirred)) >= SILENT.as_millis()
        };
        let emptiest =
            (0..lanes.len()).filter(|lane| !silent(*lane)).take(used).min_by_key(|lane| seated(*lane));
        emptiest.or_else(|| (0..lanes.len()).min_by_key(|lane| seated(*lane))).expect("there is one at least")
    }
}

impl Shared {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// One request less in a lane.
    fn leave(&self, lane: usize) {
        let (One { stirred, seated }, now) = (&self.lanes[lane], self.now_ms());
        // Hundreds leave within a millisecond.
        if stirred.load(Ordering::Relaxed) != now {
            stirred.store(now, Ordering::Relaxed);
        }
        seated.fetch_sub(1, Ordering::Relaxed);
    }
}

/// High bits of a hash are as good as low ones, and other tables use those.
fn bucket(hash: u64) -> usize {
    (hash >> 32) as usize % BUCKETS
}

impl AffinityGuard {
    /// Which lane it is in.
    #[must_use]
    pub fn lane(&self) -> usize {
        self.lane
    }

    /// Keeps the key in this lane for ever: nobody knows when its request is done.
    pub fn keep(self) {
        self.seats.shared.leave(self.lane);
        std::mem::forget(self);
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        self.seats.shared.leave(self.lane);
        self.seats.shared.buckets[self.bucket].fetch_sub(1, Ordering::Release);
    }
}
