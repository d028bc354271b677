//! Which databases a transaction concerns, where records are spread over several: small numbers in one word.
//!
//! Not here: which of them a player's records are in ([`crate::Store::shard_of`]).

/// The most databases that records can be spread over.
pub const SHARDS_MAX: usize = 64;

/// Some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardSet(u64);

impl ShardSet {
    /// One.
    #[must_use]
    pub fn of(shard: usize) -> Self {
        let mut set = Self::default();
        set.insert(shard);
        set
    }

    /// The first so many.
    #[must_use]
    pub fn first(count: usize) -> Self {
        (0..count).collect()
    }

    /// Adds one.
    ///
    /// # Panics
    ///
    /// If there is no such number.
    pub fn insert(&mut self, shard: usize) {
        assert!(shard < SHARDS_MAX, "there are at most {SHARDS_MAX} shards");
        self.0 |= 1 << shard;
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it is one of them.
    #[must_use]
    pub fn has(self, shard: usize) -> bool {
        self.0 & Self::of(shard).0 != 0
    }

    /// A bit for each.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The lowest.
    #[must_use]
    pub fn lowest(self) -> Option<usize> {
        self.iter().next()
    }

    /// Upwards.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        (0..SHARDS_MAX).filter(move |shard| self.has(*shard))
    }
}

impl FromIterator<usize> for ShardSet {
    fn from_iter<I: IntoIterator<Item = usize>>(shards: I) -> Self {
        let mut set = Self::default();
        shards.into_iter().for_each(|shard| set.insert(shard));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let set: ShardSet = [5, 0, 63, 5].into_iter().collect();
        assert_eq!((set.iter().collect::<Vec<_>>(), set.len(), set.lowest()), (vec![0, 5, 63], 3, Some(0)));
        assert!(set.has(63) && !set.has(1) && !set.is_empty());
        assert_eq!(ShardSet::of(5).and(ShardSet::of(1)), [1, 5].into_iter().collect());
        assert_eq!(ShardSet::default().lowest(), None);
        assert_eq!(set.bits(), 1 << 63 | 1 << 5 | 1);
        assert_eq!(ShardSet::first(3), [2, 1, 0].into_iter().collect());
    }
}
