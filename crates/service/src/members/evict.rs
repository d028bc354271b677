//! A bounded number of entries of one kind, evicted by the configured policy.
//!
//! Both policies are libraries: `quick_cache` for S3-FIFO, `lru` for the least recently used. Not here: how old an entry may
//! be.

use lru::LruCache;
use quick_cache::sync::Cache;
use std::hash::{BuildHasher, Hash, RandomState};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A read of an LRU cache changes it, so many threads would wait for one lock: a large one has so many shards.
const SHARDS_MAX: usize = 16;
/// Each shard has its own oldest entry, so a small one would often evict a rather new entry.
const SHARD_ENTRIES_MIN: usize = 1_000;

/// Which entry is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// S3-FIFO: entries that were read once are evicted before those that are read often, so a scan drives nothing out.
    #[default]
    S3Fifo,
    /// The least recently used.
    Lru,
}

/// The entries of one kind.
pub(super) enum Entries<K, V> {
    S3Fifo(Cache<K, V>),
    Lru(Lru<K, V>),
}

/// One or several caches, by the hash of the key.
pub(super) struct Lru<K, V> {
    shards: Vec<Mutex<LruCache<K, V>>>,
    hasher: RandomState,
}

impl<K: Eq + Hash, V> Lru<K, V> {
    fn new(entries: usize) -> Self {
        let shards = (entries / SHARD_ENTRIES_MIN).clamp(1, SHARDS_MAX);
        // Rounded down: together they keep no more than the limit.
        let room = NonZeroUsize::new(entries / shards).unwrap_or(NonZeroUsize::MIN);
        let shards = (0..shards).map(|_| Mutex::new(LruCache::sparse(room))).collect();
        Self { shards, hasher: RandomState::new() }
    }

    fn shard(&self, key: &K) -> MutexGuard<'_, LruCache<K, V>> {
        let at = self.hasher.hash_one(key) % self.shards.len() as u64;
        locked(&self.shards[at as usize])
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Eq + Hash + Clone, V: Clone> Entries<K, V> {
    pub(super) fn new(policy: Policy, entries: usize) -> Self {
        match policy {
            Policy::S3Fifo => Self::S3Fifo(Cache::new(entries)),
            Policy::Lru => Self::Lru(Lru::new(entries)),
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        match self {
            Self::S3Fifo(cache) => cache.get(key),
            Self::Lru(cache) => cache.shard(key).get(key).cloned(),
        }
    }

    pub(super) fn insert(&self, key: K, value: V) {
        match self {
            Self::S3Fifo(cache) => cache.insert(key, value),
            Self::Lru(cache) => {
                let mut shard = cache.shard(&key);
                shard.put(key, value);
            }
        }
    }

    pub(super) fn remove(&self, key: &K) -> Option<V> {
        match self {
            Self::S3Fifo(cache) => cache.remove(key).map(|(_, value)| value),
            Self::Lru(cache) => cache.shard(key).pop(key),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::S3Fifo(cache) => cache.len(),
            Self::Lru(cache) => cache.shards.iter().map(|shard| locked(shard).len()).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: u32 = 1_000;

    /// Reads some keys again and again, then many others once. Returns how many of the former are left, and how many of the
    /// same number of the newest others.
    fn left_after_reading_many_once(policy: Policy) -> (usize, usize) {
        let entries = Entries::new(policy, ROOM as usize);
        let (often, once) = (0..ROOM / 2, ROOM..ROOM * 10);
        often.clone().for_each(|key| entries.insert(key, key));
        for _ in 0..5 {
            assert!(often.clone().all(|key| entries.get(&key) == Some(key)));
        }
        once.clone().for_each(|key| entries.insert(key, key));
        assert!(entries.len() <= ROOM as usize, "{}", entries.len());
        let left = |keys: std::ops::Range<u32>| keys.filter(|key| entries.get(key).is_some()).count();
        (left(often), left(once.end - ROOM / 2..once.end))
    }

    #[test]
    fn reading_many_once_drives_out_what_is_asked_for_often_by_one_policy_only() {
        let half = ROOM as usize / 2;
        assert_eq!(left_after_reading_many_once(Policy::Lru), (0, half));
        let (often, newest) = left_after_reading_many_once(Policy::S3Fifo);
        assert!(often > half * 9 / 10 && newest < half, "{often} and {newest}");
    }

    #[test]
    fn what_is_kept_is_bounded_found_replaced_and_taken_out() {
        for policy in [Policy::S3Fifo, Policy::Lru] {
            for room in [1, 10, 999, 5_000, 40_000] {
                let entries = Entries::new(policy, room);
                (0..100_000_u32).for_each(|key| entries.insert(key, 1));
                let many = entries.len();
                // S3-FIFO rounds the size of each shard up; a shard has at least 32 entries.
                let most = if policy == Policy::Lru { room } else { room + room / 32 };
                assert!(many <= most && many >= room / 2, "{policy:?}: {many} of {room}");
                entries.insert(7, 2);
                entries.insert(7, 3);
                assert_eq!((entries.get(&7), entries.remove(&7), entries.get(&7)), (Some(3), Some(3), None));
                assert_eq!(entries.remove(&7), None);
            }
        }
    }
}
