//! The counted B+tree, reading side: descents by key, by score and by position, and ranks bottom-up.
//!
//! `height` is the number of inner levels; an index of few entries is one leaf. Leaves are linked, never
//! empty unless the whole index is, and named beside their players in the id table. Changes are in `edit`.

use std::cmp::Ordering;

use crate::id_table::IdTable;
use crate::leaf::{Item, Leaf};
use crate::nodes::{Branch, Link, Nodes};
use crate::pool::{NONE, Pool};
use crate::records::Records;
use crate::score::{Entry, EntryRef, Score, Tie};

/// See the head of the file.
pub(crate) struct Tree<S: Score, const LEAF: usize, const FAN: usize> {
    pub(crate) leaves: Pool<Leaf<S, LEAF>, 8>,
    pub(crate) nodes: Nodes<S, FAN>,
    pub(crate) records: Records,
    pub(crate) ids: IdTable,
    pub(crate) tie: Tie,
    /// Whether heads are kept.
    pub(crate) dense: bool,
    /// A leaf if `height` is 0, else a node.
    pub(crate) root: u32,
    pub(crate) height: u32,
    pub(crate) len: u64,
    pub(crate) scratch: Vec<Item<S>>,
    pub(crate) branches: Vec<Branch<S>>,
    pub(crate) hashes: Vec<u64>,
}

/// A key that need not exist.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a, S> {
    pub(crate) score: S,
    pub(crate) stamp: i64,
    pub(crate) id: &'a [u8],
}

/// Where the entry of a player is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) slot: u32,
    pub(crate) leaf: u32,
}

impl<S: Score, const LEAF: usize, const FAN: usize> Tree<S, LEAF, FAN> {
    pub(crate) fn new(tie: Tie, dense: bool) -> Self {
        let mut leaves = Pool::new();
        let root = leaves.add(Leaf::default());
        Tree {
            leaves,
            nodes: Nodes::new(),
            records: Records::new(),
            ids: IdTable::new(0),
            tie,
            dense,
            root,
            height: 0,
            len: 0,
            scratch: Vec::new(),
            branches: Vec::new(),
            hashes: Vec::new(),
        }
    }

    /// The location of a player. `warm` prefetches what of a leaf will be read.
    #[inline]
    pub(crate) fn location(&self, hash: u64, id: &[u8], warm: impl Fn(&Leaf<S, LEAF>)) -> Option<Location> {
        self.ids.find(hash, |location| {
            // The leaf is prefetched before the id is compared: two waits at once.
            warm(&self.leaves[location.leaf]);
            self.records.id(location.slot) == id
        })
    }

    pub(crate) fn entry(&self, location: Location) -> Entry<S> {
        let leaf = &self.leaves[location.leaf];
        leaf.entry(leaf.find(location.slot))
    }

    /// The number of entries before this one: up by parent links, with a search of the own leaf only.
    pub(crate) fn ordinal(&self, location: Location) -> u64 {
        let leaf = &self.leaves[location.leaf];
        let mut link = leaf.link();
        let mut before = 0;
        while link.parent != NONE {
            before += u64::from(self.nodes.counts_before(link.parent, link.at as usize));
            link = self.nodes.link(link.parent);
        }
        before + leaf.find(location.slot) as u64
    }

    /// The number of entries with a score below this one or, with `same`, up to this one.
    pub(crate) fn count_scores(&self, score: S, same: bool) -> u64 {
        let mut count = 0;
        let leaf = self.descend(|nodes, node| {
            let at = nodes.choose(node, score, |_| same);
            count += u64::from(nodes.counts_before(node, at));
            at
        });
        count + self.leaves[leaf].search(score, |_| same) as u64
    }

    /// The number of entries before this key.
    pub(crate) fn lower_bound(&self, key: &Key<'_, S>) -> u64 {
        let mut count = 0;
        let leaf = self.descend(|nodes, node| {
            let at = nodes.choose(node, key.score, |at| self.precedes(nodes.first(node, at), key));
            count += u64::from(nodes.counts_before(node, at));
            at
        });
        count + self.place_in(leaf, key) as u64
    }

    /// The leaf of a position of the whole ranking, and the index in it, if the position exists.
    pub(crate) fn seek(&self, place: u64) -> Option<(u32, usize)> {
        if place >= self.len {
            return None;
        }
        let mut rest = place as u32;
        let leaf = self.descend(|nodes, node| {
            let at = nodes.child_with(node, rest);
            rest -= nodes.counts_before(node, at);
            at
        });
        Some((leaf, rest as usize))
    }

    #[inline]
    pub(crate) fn row(&self, leaf: u32, at: usize) -> EntryRef<'_, S> {
        let Item { score, stamp, slot } = self.leaves[leaf].item(at);
        EntryRef { id: self.records.id(slot), score, stamp }
    }

    pub(crate) fn heap(&self) -> u64 {
        let scratch = self.scratch.capacity() * size_of::<Item<S>>()
            + self.branches.capacity() * size_of::<Branch<S>>()
            + self.hashes.capacity() * size_of::<u64>();
        self.leaves.heap() + self.nodes.heap() + self.records.heap() + self.ids.heap() + scratch as u64
    }

    /// Descends from the root to a leaf by the children that `choose` returns.
    #[inline]
    pub(crate) fn descend(&self, mut choose: impl FnMut(&Nodes<S, FAN>, u32) -> usize) -> u32 {
        let mut number = self.root;
        for _ in 0..self.height {
            number = self.nodes.child(number, choose(&self.nodes, number));
        }
        number
    }

    /// The leaf where the entry of a key belongs.
    #[inline]
    pub(crate) fn leaf_of(&self, key: &Key<'_, S>) -> u32 {
        self.descend(|nodes, node| {
            nodes.warm_counts(node);
            nodes.choose(node, key.score, |at| self.precedes(nodes.first(node, at), key))
        })
    }

    /// Prefetches what a change of counts will read first.
    #[inline]
    pub(crate) fn warm_parent(&self, link: Link) {
        if link.parent != NONE {
            self.nodes.warm_counts(link.parent);
        }
    }

    /// The number of entries of a leaf before a key.
    #[inline]
    pub(crate) fn place_in(&self, leaf: u32, key: &Key<'_, S>) -> usize {
        let leaf = &self.leaves[leaf];
        leaf.search(key.score, |at| self.precedes(leaf.item(at), key))
    }

    #[inline]
    pub(crate) fn precedes(&self, item: Item<S>, key: &Key<'_, S>) -> bool {
        order(self.tie, &self.records, &item, key) == Ordering::Less
    }
}

/// Compares an entry with a key.
#[inline]
pub(crate) fn order<S: Score>(tie: Tie, records: &Records, item: &Item<S>, key: &Key<'_, S>) -> Ordering {
    item.score.cmp(&key.score).then_with(|| {
        let ids = || records.id(item.slot).cmp(key.id);
        match tie {
            Tie::StampAscending => item.stamp.cmp(&key.stamp).then_with(ids),
            Tie::StampDescending => key.stamp.cmp(&item.stamp).then_with(ids),
            Tie::Id => ids(),
            Tie::IdReversed => ids().reverse(),
        }
    })
}
