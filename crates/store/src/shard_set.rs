//! The shards that a transaction concerns, in one word.
//!
//! Not here: the home shard of a player ([`crate::Transactions::shard_of`]).

/// The maximum number of shards.
pub const SHARDS_MAX: usize = 64;

/// A set of shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardSet(u64);

impl ShardSet {
    /// A set of one shard.
    #[must_use]
    pub fn of(shard: usize) -> Self {
        let mut set = Self::default();
        set.insert(shard);
        set
    }

    /// The first `count` shards.
    #[must_use]
    pub fn first(count: usize) -> Self {
        (0..count).collect()
    }

    /// Adds a shard.
    ///
    /// # Panics
    ///
    /// If there is no such shard.
    pub fn insert(&mut self, shard: usize) {
        assert!(shard < SHARDS_MAX, "there are at most {SHARDS_MAX} shards");
        self.0 |= 1 << shard;
    }

    /// The union.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a shard is in the set.
    #[must_use]
    pub fn has(self, shard: usize) -> bool {
        self.0 & Self::of(shard).0 != 0
    }

    /// A bit for each shard.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The number of shards.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The lowest shard.
    #[must_use]
    pub fn lowest(self) -> Option<usize> {
        self.iter().next()
    }

    /// The shards, ascending.
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
