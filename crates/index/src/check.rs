//! Checks every structural invariant of an index, at the price of a full scan: for tests and for `doctor`.
//!
//! It panics with what is wrong. It trusts nothing that it can compute: counts, heads and first entries are
//! derived again from the leaves, bottom-up.

use crate::leaf::Item;
use crate::nodes::Link;
use crate::pool::NONE;
use crate::ranking_index::RankingIndex;
use crate::score::Score;
use crate::tree::{Key, Location};

/// What a subtree really holds.
struct Found<S> {
    first: Option<Item<S>>,
    count: u64,
    heads: u64,
}

/// What the check has visited so far.
#[derive(Default)]
struct Visited {
    leaves: Vec<u32>,
    nodes: usize,
}

impl<S: Score, const LEAF: usize, const FAN: usize> RankingIndex<S, LEAF, FAN> {
    /// Panics if an invariant is broken.
    #[doc(hidden)]
    pub fn check(&self) {
        let tree = &self.tree;
        let mut visited = Visited::default();
        assert_eq!(self.link(tree.root, tree.height), Link::ROOT, "the root has no parent");
        let mut last = None;
        let found = self.check_subtree(tree.root, tree.height, &mut last, &mut visited);
        assert_eq!(found.count, tree.len, "entries in leaves and len");
        assert_eq!(tree.ids.len(), tree.len, "ids in the table and len");
        assert_eq!(visited.leaves.len(), tree.leaves.live(), "leaves reached and leaves in use");
        assert_eq!(visited.nodes, tree.nodes.live(), "nodes reached and nodes in use");
        for (at, &leaf) in visited.leaves.iter().enumerate() {
            let prev = if at == 0 { NONE } else { visited.leaves[at - 1] };
            assert_eq!(tree.leaves[leaf].prev, prev, "link back of leaf {leaf}");
            assert_eq!(
                tree.leaves[leaf].next,
                *visited.leaves.get(at + 1).unwrap_or(&NONE),
                "link of leaf {leaf}"
            );
        }
    }

    fn check_subtree(
        &self,
        number: u32,
        level: u32,
        last: &mut Option<Item<S>>,
        visited: &mut Visited,
    ) -> Found<S> {
        if level == 0 {
            return self.check_leaf(number, last, visited);
        }
        visited.nodes += 1;
        let nodes = &self.tree.nodes;
        assert_eq!(nodes.level(number), level, "level of node {number}");
        assert!(nodes.len(number) >= 2, "node {number} has two children or more");
        let mut sum = Found { first: None, count: 0, heads: 0 };
        let own = nodes.summary(number);
        for at in 0..nodes.len(number) {
            let branch = nodes.branch(number, at);
            let found = self.check_subtree(branch.child, level - 1, last, visited);
            assert_eq!(
                self.link(branch.child, level - 1),
                Link { parent: number, at: at as u32 },
                "link of child {at} of node {number}"
            );
            assert_eq!(Some(branch.first), found.first, "first entry of child {at} of node {number}");
            assert_eq!(u64::from(branch.count), found.count, "count of child {at} of node {number}");
            let heads = if self.tree.dense { found.heads } else { 0 };
            assert_eq!(u64::from(branch.heads), heads, "heads of child {at} of node {number}");
            sum.first = sum.first.or(found.first);
            sum.count += found.count;
            sum.heads += found.heads;
        }
        assert_eq!(u64::from(own.count), sum.count, "count of node {number}");
        sum
    }

    /// The link of a leaf or node.
    fn link(&self, number: u32, level: u32) -> Link {
        if level == 0 { self.tree.leaves[number].link() } else { self.tree.nodes.link(number) }
    }

    fn check_leaf(&self, number: u32, last: &mut Option<Item<S>>, visited: &mut Visited) -> Found<S> {
        let leaf = &self.tree.leaves[number];
        assert!(leaf.len() <= LEAF, "leaf {number} is not overfull");
        assert!(leaf.len() > 0 || self.tree.height == 0, "leaf {number} is not empty");
        visited.leaves.push(number);
        let mut heads = 0;
        for at in 0..leaf.len() {
            let item = leaf.item(at);
            let id = self.tree.records.id(item.slot);
            let found = self.tree.location(self.tree.ids.hash(id), id, |_| {});
            assert_eq!(found, Some(Location { slot: item.slot, leaf: number }), "location of {id:?}");
            if let Some(last) = *last {
                let key = Key { score: item.score, stamp: item.stamp, id };
                assert!(self.tree.precedes(last, &key), "entries of leaf {number} ascend");
            }
            heads += u64::from(last.is_none_or(|last| last.score != item.score));
            *last = Some(item);
        }
        let first = (leaf.len() > 0).then(|| leaf.item(0));
        Found { first, count: leaf.len() as u64, heads }
    }
}
