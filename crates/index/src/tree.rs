//! The counted B+tree, reading side: descents by key, by score and by place, and ranks bottom-up.
//!
//! `height` is the number of inner levels; an order of few entries is one leaf. Leaves are linked, never
//! empty unless the whole order is, and named by the records of their players. Changes are in `edit`.

use std::cmp::Ordering;

use crate::leaf::{Item, Leaf};
use crate::node::{Branch, Node};
use crate::pool::{NONE, Pool};
use crate::records::Records;
use crate::score::{Entry, Row, Score, Tie};

/// See the head of the file.
pub(crate) struct Tree<S: Score, const LEAF: usize, const FAN: usize> {
    pub(crate) leaves: Pool<Leaf<S, LEAF>, 10>,
    pub(crate) nodes: Pool<Node<S, FAN>, 6>,
    pub(crate) records: Records,
    pub(crate) tie: Tie,
    /// Whether heads are kept.
    pub(crate) dense: bool,
    /// A leaf if `height` is 0, else a node.
    pub(crate) root: u32,
    pub(crate) height: u32,
    pub(crate) len: u64,
    /// Bytes of all leaf blocks.
    pub(crate) blocks: u64,
    pub(crate) scratch: Vec<Item<S>>,
    pub(crate) branches: Vec<Branch<S>>,
}

/// A key that need not be in the order.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a, S> {
    pub(crate) score: S,
    pub(crate) stamp: i64,
    pub(crate) id: &'a [u8],
}

impl<S: Score, const LEAF: usize, const FAN: usize> Tree<S, LEAF, FAN> {
    pub(crate) fn new(tie: Tie, dense: bool) -> Self {
        const {
            assert!(LEAF >= 8);
            assert!(LEAF < 255);
            assert!(FAN >= 8);
        }
        let mut leaves = Pool::new();
        let root = leaves.add(Leaf::default());
        Tree {
            leaves,
            nodes: Pool::new(),
            records: Records::new(),
            tie,
            dense,
            root,
            height: 0,
            len: 0,
            blocks: 0,
            scratch: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// The leaf of a slot's entry, and the place in it.
    #[inline]
    pub(crate) fn position(&self, slot: u32) -> (u32, usize) {
        let leaf = self.records.leaf(slot);
        self.leaves[leaf].warm();
        (leaf, self.leaves[leaf].find(slot))
    }

    pub(crate) fn entry(&self, slot: u32) -> Entry<S> {
        let (leaf, at) = self.position(slot);
        self.leaves[leaf].entry(at)
    }

    /// How many entries stand before this slot's: up by parent links, no key compared.
    pub(crate) fn ordinal(&self, slot: u32) -> u64 {
        let mut child = self.records.leaf(slot);
        self.warm_path(child);
        let leaf = &self.leaves[child];
        let mut parent = leaf.parent;
        let mut before = leaf.find(slot) as u64;
        while parent != NONE {
            let node = &self.nodes[parent];
            before += u64::from(node.counts_before(node.find(child)));
            child = parent;
            parent = node.parent;
        }
        before
    }

    /// How many entries have a score below this one or, with `same`, this one.
    pub(crate) fn count_scores(&self, score: S, same: bool) -> u64 {
        let mut count = 0;
        let leaf = self.descend(|_, node| {
            let at = node.choose(score, |_| same);
            count += u64::from(node.counts_before(at));
            at
        });
        count + self.leaves[leaf].search(score, |_| same) as u64
    }

    /// How many entries stand before this key.
    pub(crate) fn lower_bound(&self, key: &Key<'_, S>) -> u64 {
        let mut count = 0;
        let leaf = self.descend(|tree, node| {
            let at = node.choose(key.score, |at| tree.precedes(node.first(at), key));
            count += u64::from(node.counts_before(at));
            at
        });
        count + self.place_in(leaf, key) as u64
    }

    /// The leaf and the place in it where `place` in the whole order is, if there is one.
    pub(crate) fn seek(&self, place: u64) -> Option<(u32, usize)> {
        if place >= self.len {
            return None;
        }
        let mut rest = place as u32;
        let leaf = self.descend(|_, node| {
            let mut at = 0;
            while rest >= node.count(at) {
                rest -= node.count(at);
                at += 1;
            }
            at
        });
        Some((leaf, rest as usize))
    }

    #[inline]
    pub(crate) fn row(&self, leaf: u32, at: usize) -> Row<'_, S> {
        let Item { score, stamp, slot } = self.leaves[leaf].item(at);
        Row { id: self.records.id(slot), score, stamp }
    }

    pub(crate) fn heap(&self) -> u64 {
        let scratch = self.scratch.capacity() * size_of::<Item<S>>();
        let branches = self.branches.capacity() * size_of::<Branch<S>>();
        self.leaves.heap()
            + self.blocks
            + self.nodes.heap()
            + self.records.heap()
            + (scratch + branches) as u64
    }

    /// From the root to a leaf, `choose` saying which child.
    #[inline]
    pub(crate) fn descend(&self, mut choose: impl FnMut(&Self, &Node<S, FAN>) -> usize) -> u32 {
        let mut number = self.root;
        for _ in 0..self.height {
            let node = &self.nodes[number];
            number = node.child(choose(self, node));
        }
        number
    }

    /// How many entries of a leaf stand before a key.
    #[inline]
    pub(crate) fn place_in(&self, leaf: u32, key: &Key<'_, S>) -> usize {
        let leaf = &self.leaves[leaf];
        leaf.search(key.score, |at| self.precedes(leaf.item(at), key))
    }

    /// A leaf where this score has its place, exactly or nearly.
    #[inline]
    pub(crate) fn leaf_near(&self, score: S) -> u32 {
        self.descend(|_, node| node.choose(score, |_| false))
    }

    /// Asks for what a change or a rank bottom-up will read of a leaf and its parent, all at once.
    #[inline]
    pub(crate) fn warm_path(&self, leaf: u32) {
        let leaf = &self.leaves[leaf];
        leaf.warm_slots();
        if leaf.parent != NONE {
            self.nodes[leaf.parent].warm_sums(self.dense);
        }
    }

    #[inline]
    pub(crate) fn precedes(&self, item: Item<S>, key: &Key<'_, S>) -> bool {
        order(self.tie, &self.records, &item, key) == Ordering::Less
    }
}

/// How an entry of the order compares with a key.
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
