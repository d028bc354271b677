//! The ranking index as other crates see it: the tree and the id table together.
//!
//! Positions are 0-based: position 0 is the best. Every read takes `&self`; the caller's lock keeps readers
//! and the one writer apart.

use std::fmt;
use std::iter::FusedIterator;

use crate::leaf::Leaf;
use crate::pool::NONE;
use crate::score::{Entry, EntryRef, Score, Tie};
use crate::search::GROUP;
use crate::tree::{Key, Location, Tree};

/// The entries of one board in order. The capacities of leaves and nodes are parameters for tests only.
pub struct RankingIndex<S: Score, const LEAF: usize = 82, const FAN: usize = 64> {
    pub(crate) tree: Tree<S, LEAF, FAN>,
}

impl<S: Score, const LEAF: usize, const FAN: usize> RankingIndex<S, LEAF, FAN> {
    /// An index without entries. Only with `dense` can distinct scores be counted.
    pub fn new(tie: Tie, dense: bool) -> Self {
        RankingIndex { tree: Tree::new(tie, dense) }
    }

    /// The number of entries.
    pub fn len(&self) -> u64 {
        self.tree.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.tree.len == 0
    }

    /// How equal scores are ordered.
    pub fn tie(&self) -> Tie {
        self.tree.tie
    }

    /// Whether distinct scores can be counted.
    pub fn is_dense(&self) -> bool {
        self.tree.dense
    }

    /// The entry of a player.
    pub fn get(&self, id: &[u8]) -> Option<Entry<S>> {
        let RankingIndex { tree } = self;
        Some(tree.entry(tree.location(tree.ids.hash(id), id, Leaf::warm)?))
    }

    /// Sets the entry of a player and returns the one it replaces.
    ///
    /// # Panics
    ///
    /// If the id is empty or longer than 255 bytes, or after some four billion players.
    pub fn set(&mut self, id: &[u8], entry: Entry<S>) -> Option<Entry<S>> {
        let RankingIndex { tree } = self;
        let hash = tree.ids.hash(id);
        let key = Key { score: entry.score, stamp: entry.stamp, id };
        // The lookup of the player and the descent for the entry are two chains of cache misses. Side by side
        // they cost little more than one.
        tree.ids.warm(hash);
        let target = tree.leaf_of(&key);
        tree.leaves[target].warm();
        let Some(location) = tree.location(hash, id, Leaf::warm) else {
            let location = Location { slot: tree.records.add(id), leaf: target };
            tree.ids.insert(hash, location, |slot| tree.records.id(slot));
            tree.insert(location, entry);
            return None;
        };
        let leaf = &tree.leaves[location.leaf];
        tree.warm_parent(leaf.link());
        let at = leaf.find(location.slot);
        let old = leaf.entry(at);
        if old == entry {
            return Some(old);
        }
        if location.leaf == target {
            tree.move_within(location, at, entry);
        } else {
            let rebalanced = tree.remove(location.leaf, at);
            let leaf = if rebalanced { tree.leaf_of(&key) } else { target };
            let location = Location { slot: location.slot, leaf };
            tree.ids.set_leaf(hash, location);
            tree.insert(location, entry);
        }
        Some(old)
    }

    /// Removes a player and returns the entry it had.
    pub fn remove(&mut self, id: &[u8]) -> Option<Entry<S>> {
        let RankingIndex { tree } = self;
        let hash = tree.ids.hash(id);
        let location = tree.location(hash, id, Leaf::warm)?;
        let leaf = &tree.leaves[location.leaf];
        let at = leaf.find(location.slot);
        let old = leaf.entry(at);
        tree.remove(location.leaf, at);
        tree.ids.remove(hash, location.slot);
        tree.records.release(location.slot);
        Some(old)
    }

    /// The ordinal position of a player: the number of entries before. Compares no scores, only the id.
    pub fn ordinal(&self, id: &[u8]) -> Option<u64> {
        let RankingIndex { tree } = self;
        Some(tree.ordinal(tree.location(tree.ids.hash(id), id, Leaf::warm_slots)?))
    }

    /// The entry of a player and its position, for the price of one lookup.
    pub fn find(&self, id: &[u8]) -> Option<(Entry<S>, u64)> {
        let RankingIndex { tree } = self;
        let location = tree.location(tree.ids.hash(id), id, Leaf::warm)?;
        Some((tree.entry(location), tree.ordinal(location)))
    }

    /// [`RankingIndex::find`] of many players, in their order; see [`RankingIndex::warm`].
    pub fn find_many<'a>(&'a self, ids: &'a [&'a [u8]]) -> impl Iterator<Item = Option<(Entry<S>, u64)>> {
        self.many(ids, Self::find)
    }

    /// [`RankingIndex::get`] of many players, in their order; see [`RankingIndex::warm`].
    pub fn get_many<'a>(&'a self, ids: &'a [&'a [u8]]) -> impl Iterator<Item = Option<Entry<S>>> {
        self.many(ids, Self::get)
    }

    fn many<'a, T>(&'a self, ids: &'a [&'a [u8]], one: fn(&Self, &[u8]) -> T) -> impl Iterator<Item = T> {
        ids.chunks(GROUP).flat_map(move |group| {
            self.warm(group, &[]);
            group.iter().map(move |id| one(self, id))
        })
    }

    /// Prefetches what finding these players and setting entries of these scores will read. One operation
    /// waits for one load after the other. A batch that first names some sixteen operations waits for all of
    /// them at once. It changes no answer.
    pub fn warm(&self, ids: &[&[u8]], scores: &[S]) {
        let RankingIndex { tree } = self;
        for group in ids.chunks(GROUP) {
            let mut hashes = [0; GROUP];
            for (hash, id) in hashes.iter_mut().zip(group) {
                *hash = tree.ids.hash(id);
                tree.ids.warm(*hash);
            }
            // The first match of a hash is nearly always the right one.
            let locations = || hashes[..group.len()].iter().filter_map(|&hash| tree.ids.find(hash, |_| true));
            for location in locations() {
                tree.records.warm(location.slot);
                tree.leaves[location.leaf].warm();
            }
            for location in locations() {
                tree.warm_parent(tree.leaves[location.leaf].link());
            }
        }
        for &score in scores {
            tree.leaves[tree.descend(|nodes, node| nodes.choose(node, score, |_| false))].warm();
        }
    }

    /// The number of entries with a better, that is smaller, score: the position of this score with shared
    /// ranks.
    pub fn count_better(&self, score: S) -> u64 {
        self.tree.count_scores(score, false)
    }

    /// The number of entries with this score or a better one: the end of an inclusive range.
    pub fn count_at_least(&self, score: S) -> u64 {
        self.tree.count_scores(score, true)
    }

    /// The number of better distinct scores: the dense rank.
    ///
    /// # Panics
    ///
    /// If the index was made without `dense`.
    pub fn count_distinct_better(&self, score: S) -> u64 {
        self.tree.count_distinct_below(score)
    }

    /// The number of entries before this key, which need not exist. The stamp counts as in [`Tie`]; the id
    /// may be empty, which is before every id.
    pub fn lower_bound(&self, score: S, stamp: i64, id: &[u8]) -> u64 {
        self.tree.lower_bound(&Key { score, stamp, id })
    }

    /// The entry at a position.
    pub fn at(&self, place: u64) -> Option<EntryRef<'_, S>> {
        let (leaf, at) = self.tree.seek(place)?;
        Some(self.tree.row(leaf, at))
    }

    /// The entries from a position on, towards worse.
    pub fn range(&self, from: u64) -> impl FusedIterator<Item = EntryRef<'_, S>> {
        let mut here = self.tree.seek(from);
        std::iter::from_fn(move || {
            let (leaf, at) = here?;
            let own = &self.tree.leaves[leaf];
            here = if at + 1 < own.len() {
                Some((leaf, at + 1))
            } else {
                (own.next != NONE).then_some((own.next, 0))
            };
            Some(self.tree.row(leaf, at))
        })
        .fuse()
    }

    /// The entries from a position back, towards better: that position first, position 0 last.
    pub fn range_back(&self, from: u64) -> impl FusedIterator<Item = EntryRef<'_, S>> {
        let mut here = self.tree.seek(from);
        std::iter::from_fn(move || {
            let (leaf, at) = here?;
            let prev = self.tree.leaves[leaf].prev;
            here = match at.checked_sub(1) {
                Some(at) => Some((leaf, at)),
                None => (prev != NONE).then(|| (prev, self.tree.leaves[prev].len() - 1)),
            };
            Some(self.tree.row(leaf, at))
        })
        .fuse()
    }

    /// Entries by slot, which a player keeps as long as it has an entry, whatever its score. Checks at most
    /// `take` slots from `from` on. Returns the slot to continue at, `None` at the end.
    pub fn scan(&self, from: u32, take: usize, mut each: impl FnMut(EntryRef<'_, S>)) -> Option<u32> {
        let mut next = self.tree.records.slot_from(from);
        for _ in 0..take {
            let slot = next?;
            // A free slot has no id of its own: a player with these bytes has another slot.
            let RankingIndex { tree } = self;
            let id = tree.records.id(slot);
            let location = tree.location(tree.ids.hash(id), id, Leaf::warm);
            if let Some(location) = location.filter(|location| location.slot == slot) {
                let Entry { score, stamp } = tree.entry(location);
                each(EntryRef { id, score, stamp });
            }
            next = tree.records.slot_from(slot.checked_add(1)?);
        }
        next
    }

    /// Heap bytes held, all included. Allocators add their own rounding.
    pub fn bytes(&self) -> u64 {
        self.tree.heap()
    }
}

impl<S: Score, const LEAF: usize, const FAN: usize> fmt::Debug for RankingIndex<S, LEAF, FAN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankingIndex")
            .field("len", &self.len())
            .field("tie", &self.tree.tie)
            .field("dense", &self.tree.dense)
            .field("height", &self.tree.height)
            .finish_non_exhaustive()
    }
}
