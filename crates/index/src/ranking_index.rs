//! The order of one board as others see it: the tree and the id table together.
//!
//! Places are 0-based: place 0 is the best. Every read takes `&self`; readers and the one writer are kept
//! apart by the caller's lock.

use std::fmt;
use std::iter::FusedIterator;

use crate::leaf::Leaf;
use crate::pool::NONE;
use crate::score::{Entry, EntryRef, Score, Tie};
use crate::search::GROUP;
use crate::tree::{Home, Key, Tree};

/// The entries of one board in order. The capacities of leaves and nodes are parameters for tests only.
pub struct RankingIndex<S: Score, const LEAF: usize = 82, const FAN: usize = 64> {
    pub(crate) tree: Tree<S, LEAF, FAN>,
}

impl<S: Score, const LEAF: usize, const FAN: usize> RankingIndex<S, LEAF, FAN> {
    /// An order without entries. Only with `dense` can distinct scores be counted.
    pub fn new(tie: Tie, dense: bool) -> Self {
        RankingIndex { tree: Tree::new(tie, dense) }
    }

    /// How many entries there are.
    pub fn len(&self) -> u64 {
        self.tree.len
    }

    /// Whether there are none.
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
        Some(tree.entry(tree.home(tree.ids.hash(id), id, Leaf::warm)?))
    }

    /// Gives a player an entry and returns the one it replaces.
    ///
    /// # Panics
    ///
    /// If the id is empty or longer than 255 bytes, or after some four billion players.
    pub fn set(&mut self, id: &[u8], entry: Entry<S>) -> Option<Entry<S>> {
        let RankingIndex { tree } = self;
        let hash = tree.ids.hash(id);
        let key = Key { score: entry.score, stamp: entry.stamp, id };
        // Where the player is and where the entry goes are two chains of cache misses: walked side by side
        // they cost little more than one.
        tree.ids.warm(hash);
        let target = tree.leaf_of(&key);
        tree.leaves[target].warm();
        let Some(home) = tree.home(hash, id, Leaf::warm) else {
            let home = Home { slot: tree.records.add(id), leaf: target };
            tree.ids.insert(hash, home, |slot| tree.records.id(slot));
            tree.insert(home, entry);
            return None;
        };
        let leaf = &tree.leaves[home.leaf];
        tree.warm_parent(leaf.link());
        let at = leaf.find(home.slot);
        let old = leaf.entry(at);
        if old == entry {
            return Some(old);
        }
        if home.leaf == target {
            tree.move_within(home, at, entry);
        } else {
            let mended = tree.remove(home.leaf, at);
            let leaf = if mended { tree.leaf_of(&key) } else { target };
            let home = Home { slot: home.slot, leaf };
            tree.ids.set_leaf(hash, home);
            tree.insert(home, entry);
        }
        Some(old)
    }

    /// Takes a player out and returns the entry it had.
    pub fn remove(&mut self, id: &[u8]) -> Option<Entry<S>> {
        let RankingIndex { tree } = self;
        let hash = tree.ids.hash(id);
        let home = tree.home(hash, id, Leaf::warm)?;
        let leaf = &tree.leaves[home.leaf];
        let at = leaf.find(home.slot);
        let old = leaf.entry(at);
        tree.remove(home.leaf, at);
        tree.ids.remove(hash, home.slot);
        tree.records.release(home.slot);
        Some(old)
    }

    /// The place of a player: how many entries stand before. Compares no scores, only the id.
    pub fn ordinal(&self, id: &[u8]) -> Option<u64> {
        let RankingIndex { tree } = self;
        Some(tree.ordinal(tree.home(tree.ids.hash(id), id, Leaf::warm_slots)?))
    }

    /// The entry of a player and its place, for the price of one look-up.
    pub fn find(&self, id: &[u8]) -> Option<(Entry<S>, u64)> {
        let RankingIndex { tree } = self;
        let home = tree.home(tree.ids.hash(id), id, Leaf::warm)?;
        Some((tree.entry(home), tree.ordinal(home)))
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

    /// Asks memory for what finding these players and putting entries of these scores will read, and does not
    /// wait for it. One operation waits for one thing after the other; a batch that first says what some
    /// sixteen operations are about waits for all of them at once. It changes no answer.
    pub fn warm(&self, ids: &[&[u8]], scores: &[S]) {
        let RankingIndex { tree } = self;
        for group in ids.chunks(GROUP) {
            let mut hashes = [0; GROUP];
            for (hash, id) in hashes.iter_mut().zip(group) {
                *hash = tree.ids.hash(id);
                tree.ids.warm(*hash);
            }
            // The first that may be right is nearly always the one.
            let homes = || hashes[..group.len()].iter().filter_map(|&hash| tree.ids.find(hash, |_| true));
            for home in homes() {
                tree.records.warm(home.slot);
                tree.leaves[home.leaf].warm();
            }
            for home in homes() {
                tree.warm_parent(tree.leaves[home.leaf].link());
            }
        }
        for &score in scores {
            tree.leaves[tree.descend(|nodes, node| nodes.choose(node, score, |_| false))].warm();
        }
    }

    /// How many entries have a better, that is smaller, score: the place of this score when ranks are shared.
    pub fn count_better(&self, score: S) -> u64 {
        self.tree.count_scores(score, false)
    }

    /// How many entries have this score or a better one: the end of an inclusive range.
    pub fn count_at_least(&self, score: S) -> u64 {
        self.tree.count_scores(score, true)
    }

    /// How many distinct scores are better: the dense rank.
    ///
    /// # Panics
    ///
    /// If the order was made without `dense`.
    pub fn count_distinct_better(&self, score: S) -> u64 {
        self.tree.count_distinct_below(score)
    }

    /// How many entries stand before this key, which need not be there. The stamp counts as in [`Tie`]; the
    /// id may be empty, which is before every id.
    pub fn lower_bound(&self, score: S, stamp: i64, id: &[u8]) -> u64 {
        self.tree.lower_bound(&Key { score, stamp, id })
    }

    /// The entry at a place.
    pub fn at(&self, place: u64) -> Option<EntryRef<'_, S>> {
        let (leaf, at) = self.tree.seek(place)?;
        Some(self.tree.row(leaf, at))
    }

    /// The entries from a place on, towards worse.
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

    /// The entries from a place back, towards better: that place first, place 0 last.
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

    /// Entries in an order of their own that a player keeps as long as it has an entry, whatever happens to scores: at
    /// most `take` numbers from `from` on are looked at. Gives the number to go on from, nothing at the end.
    pub fn scan(&self, from: u32, take: usize, mut each: impl FnMut(EntryRef<'_, S>)) -> Option<u32> {
        let mut next = self.tree.records.slot_from(from);
        for _ in 0..take {
            let slot = next?;
            // A number that is free has no id of its own: whoever has these bytes is somewhere else.
            let RankingIndex { tree } = self;
            let id = tree.records.id(slot);
            let home = tree.home(tree.ids.hash(id), id, Leaf::warm);
            if let Some(home) = home.filter(|home| home.slot == slot) {
                let Entry { score, stamp } = tree.entry(home);
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
