//! Upkeep of heads, the base of dense ranks: a head is the first entry of its score group.
//!
//! An inserted or removed entry changes at most two heads: itself and its successor, which may be in the next
//! leaf. The changes are added along the path of each. Nothing here runs for rankings without dense ranks.

use crate::leaf::Item;
use crate::pool::NONE;
use crate::score::Score;
use crate::tree::Tree;

impl<S: Score, const LEAF: usize, const FAN: usize> Tree<S, LEAF, FAN> {
    /// The number of distinct scores below this one.
    pub(crate) fn count_distinct_below(&self, score: S) -> u64 {
        assert!(self.dense, "this order was made without dense ranks");
        let mut heads = 0;
        let number = self.descend(|nodes, node| {
            let at = nodes.choose(node, score, |_| false);
            heads += u64::from(nodes.heads_before(node, at));
            at
        });
        let leaf = &self.leaves[number];
        let end = leaf.search(score, |_| false);
        let mut before = self.score_before(number, 0);
        for at in 0..end {
            let score = Some(leaf.score(at));
            heads += u64::from(before != score);
            before = score;
        }
        heads
    }

    /// Updates heads before an entry of this score is inserted at an index of a leaf.
    pub(crate) fn heads_for_insert(&mut self, leaf: u32, at: usize, score: S) {
        if !self.dense || self.height == 0 {
            return;
        }
        let before = self.score_before(leaf, at);
        let own = i32::from(before != Some(score));
        let mut here = own;
        if let Some((next_leaf, next)) = self.score_from(leaf, at) {
            let change = i32::from(next != score) - i32::from(before != Some(next));
            if next_leaf == leaf {
                here += change;
            } else {
                self.add_along(next_leaf, 0, change);
            }
        }
        self.add_along(leaf, 0, here);
    }

    /// Updates heads before the entry at an index of a leaf is removed. Returns the change for the leaf's own
    /// path, which the caller adds.
    #[must_use]
    pub(crate) fn heads_for_remove(&mut self, leaf: u32, at: usize) -> i32 {
        if !self.dense || self.height == 0 {
            return 0;
        }
        let score = self.leaves[leaf].score(at);
        let before = self.score_before(leaf, at);
        let mut here = -i32::from(before != Some(score));
        if let Some((next_leaf, next)) = self.score_from(leaf, at + 1) {
            let change = i32::from(before != Some(next)) - i32::from(next != score);
            if next_leaf == leaf {
                here += change;
            } else {
                self.add_along(next_leaf, 0, change);
            }
        }
        here
    }

    /// Heads among entries that follow one of score `before`.
    pub(crate) fn heads_in(&self, before: Option<S>, items: &[Item<S>]) -> u32 {
        if !self.dense {
            return 0;
        }
        let mut before = before;
        let mut heads = 0;
        for item in items {
            heads += u32::from(before != Some(item.score));
            before = Some(item.score);
        }
        heads
    }

    /// The score of the entry before this index.
    pub(crate) fn score_before(&self, leaf: u32, at: usize) -> Option<S> {
        if at > 0 {
            return Some(self.leaves[leaf].score(at - 1));
        }
        let prev = self.leaves[leaf].prev;
        (prev != NONE).then(|| {
            let leaf = &self.leaves[prev];
            leaf.score(leaf.len() - 1)
        })
    }

    /// The score at this index or, past the end of the leaf, of the first entry of the next one, with its
    /// leaf.
    fn score_from(&self, leaf: u32, at: usize) -> Option<(u32, S)> {
        if at < self.leaves[leaf].len() {
            return Some((leaf, self.leaves[leaf].score(at)));
        }
        let next = self.leaves[leaf].next;
        (next != NONE).then(|| (next, self.leaves[next].score(0)))
    }
}
