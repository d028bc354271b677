//! The order of one board as others see it: the tree and the id table together.
//!
//! Places are 0-based: place 0 is the best. Every read takes `&self`; readers and the one writer are kept
//! apart by the caller's lock.

use std::fmt;
use std::iter::FusedIterator;

use crate::id_table::IdTable;
use crate::pool::NONE;
use crate::score::{Entry, Row, Score, Tie};
use crate::tree::{Key, Tree};

/// The entries of one board in order. The capacities of leaves and nodes are parameters for tests only.
pub struct Order<S: Score, const LEAF: usize = 64, const FAN: usize = 64> {
    pub(crate) tree: Tree<S, LEAF, FAN>,
    pub(crate) ids: IdTable,
}

impl<S: Score, const LEAF: usize, const FAN: usize> Order<S, LEAF, FAN> {
    /// An order without entries. Only with `dense` can distinct scores be counted.
    pub fn new(tie: Tie, dense: bool) -> Self {
        Order { tree: Tree::new(tie, dense), ids: IdTable::new(0) }
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
        Some(self.tree.entry(self.slot(id)?))
    }

    /// Gives a player an entry and returns the one it replaces.
    ///
    /// # Panics
    ///
    /// If the id is empty or longer than 255 bytes, or after some four billion players.
    pub fn set(&mut self, id: &[u8], entry: Entry<S>) -> Option<Entry<S>> {
        let Order { tree, ids } = self;
        let hash = ids.hash(id);
        // Where the player is and where the entry goes are two chains of cache misses: walked side by side
        // they cost little more than one.
        ids.warm(hash);
        let target = tree.leaf_near(entry.score);
        tree.leaves[target].warm_head();
        let slot = ids.find(hash, |slot| tree.records.id(slot) == id);
        tree.leaves[target].warm();
        tree.warm_path(target);
        let Some(slot) = slot else {
            let slot = tree.records.add(id);
            ids.insert(hash, slot, |slot| tree.records.id(slot));
            tree.insert(slot, entry);
            return None;
        };
        tree.warm_path(tree.records.leaf(slot));
        let (leaf, at) = tree.position(slot);
        let old = tree.leaves[leaf].entry(at);
        if old != entry && !tree.move_within(leaf, at, entry) {
            tree.remove(leaf, at);
            tree.insert(slot, entry);
        }
        Some(old)
    }

    /// Takes a player out and returns the entry it had.
    pub fn remove(&mut self, id: &[u8]) -> Option<Entry<S>> {
        let Order { tree, ids } = self;
        let hash = ids.hash(id);
        let slot = ids.find(hash, |slot| tree.records.id(slot) == id)?;
        let (leaf, at) = tree.position(slot);
        let old = tree.leaves[leaf].entry(at);
        tree.remove(leaf, at);
        ids.remove(hash, slot);
        tree.records.release(slot);
        Some(old)
    }

    /// The place of a player: how many entries stand before. Compares no scores, only the id.
    pub fn ordinal(&self, id: &[u8]) -> Option<u64> {
        Some(self.tree.ordinal(self.slot(id)?))
    }

    /// The entry of a player and its place, for the price of one look-up.
    pub fn find(&self, id: &[u8]) -> Option<(Entry<S>, u64)> {
        let slot = self.slot(id)?;
        Some((self.tree.entry(slot), self.tree.ordinal(slot)))
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
    pub fn at(&self, place: u64) -> Option<Row<'_, S>> {
        let (leaf, at) = self.tree.seek(place)?;
        Some(self.tree.row(leaf, at))
    }

    /// The entries from a place on, towards worse.
    pub fn walk(&self, from: u64) -> impl FusedIterator<Item = Row<'_, S>> {
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
    pub fn walk_back(&self, from: u64) -> impl FusedIterator<Item = Row<'_, S>> {
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
    pub fn scan(&self, from: u32, take: usize, mut each: impl FnMut(Row<'_, S>)) -> Option<u32> {
        let mut next = self.tree.records.slot_from(from);
        for _ in 0..take {
            let slot = next?;
            // A number that is free has an old id, which is somewhere else or nowhere.
            let id = self.tree.records.id(slot);
            if self.slot(id) == Some(slot) {
                let Entry { score, stamp } = self.tree.entry(slot);
                each(Row { id, score, stamp });
            }
            next = self.tree.records.slot_from(slot.checked_add(1)?);
        }
        next
    }

    /// Heap bytes held, all included. Allocators add their own rounding.
    pub fn bytes(&self) -> u64 {
        self.tree.heap() + self.ids.heap()
    }

    #[inline]
    fn slot(&self, id: &[u8]) -> Option<u32> {
        self.ids.find(self.ids.hash(id), |slot| self.tree.records.id(slot) == id)
    }
}

impl<S: Score, const LEAF: usize, const FAN: usize> fmt::Debug for Order<S, LEAF, FAN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("len", &self.len())
            .field("tie", &self.tree.tie)
            .field("dense", &self.tree.dense)
            .field("height", &self.tree.height)
            .finish_non_exhaustive()
    }
}
