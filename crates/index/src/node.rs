//! An inner node: for each child its first entry, how many entries it has and how many of them are heads.
//!
//! Struct of arrays, so that a search touches scores only and a sum touches counts only. The first entry is
//! exact for every child, the leftmost included: it names a player by slot, and a slot that is no longer in
//! the order would be given to somebody else.
//!
//! A *head* is an entry whose score differs from that of its predecessor in the whole order; the number of
//! heads up to a place is the number of distinct scores. Without dense ranks heads stay 0.

use crate::leaf::Item;
use crate::pool::NONE;
use crate::score::Score;
use crate::search::{search, warm};

/// One child as its parent sees it.
#[derive(Clone, Copy)]
pub(crate) struct Branch<S> {
    pub(crate) first: Item<S>,
    pub(crate) child: u32,
    pub(crate) count: u32,
    pub(crate) heads: u32,
}

/// See the head of the file.
pub(crate) struct Node<S, const FAN: usize> {
    len: usize,
    pub(crate) parent: u32,
    /// 1 if the children are leaves.
    pub(crate) level: u32,
    scores: [S; FAN],
    stamps: [i64; FAN],
    slots: [u32; FAN],
    children: [u32; FAN],
    counts: [u32; FAN],
    heads: [u32; FAN],
}

impl<S: Score, const FAN: usize> Default for Node<S, FAN> {
    fn default() -> Self {
        Node {
            len: 0,
            parent: NONE,
            level: 0,
            scores: [S::default(); FAN],
            stamps: [0; FAN],
            slots: [0; FAN],
            children: [NONE; FAN],
            counts: [0; FAN],
            heads: [0; FAN],
        }
    }
}

impl<S: Score, const FAN: usize> Node<S, FAN> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn branch(&self, at: usize) -> Branch<S> {
        let first = self.first(at);
        Branch { first, child: self.children[at], count: self.counts[at], heads: self.heads[at] }
    }

    pub(crate) fn set_branch(&mut self, at: usize, branch: Branch<S>) {
        self.set_first(at, branch.first);
        self.children[at] = branch.child;
        self.counts[at] = branch.count;
        self.heads[at] = branch.heads;
    }

    /// There must be room.
    pub(crate) fn insert(&mut self, at: usize, branch: Branch<S>) {
        let range = at..self.len;
        self.scores.copy_within(range.clone(), at + 1);
        self.stamps.copy_within(range.clone(), at + 1);
        self.slots.copy_within(range.clone(), at + 1);
        self.children.copy_within(range.clone(), at + 1);
        self.counts.copy_within(range.clone(), at + 1);
        self.heads.copy_within(range, at + 1);
        self.len += 1;
        self.set_branch(at, branch);
    }

    pub(crate) fn remove(&mut self, at: usize) {
        let range = at + 1..self.len;
        self.scores.copy_within(range.clone(), at);
        self.stamps.copy_within(range.clone(), at);
        self.slots.copy_within(range.clone(), at);
        self.children.copy_within(range.clone(), at);
        self.counts.copy_within(range.clone(), at);
        self.heads.copy_within(range, at);
        self.len -= 1;
        self.children[self.len] = NONE;
    }

    /// Replaces all branches.
    pub(crate) fn fill(&mut self, branches: &[Branch<S>]) {
        self.len = branches.len();
        self.children[self.len..].fill(NONE);
        for (at, &branch) in branches.iter().enumerate() {
            self.set_branch(at, branch);
        }
    }

    /// Appends all branches to `out`.
    pub(crate) fn copy_to(&self, out: &mut Vec<Branch<S>>) {
        out.extend((0..self.len).map(|at| self.branch(at)));
    }

    /// This node as its own parent will see it.
    pub(crate) fn summary(&self, number: u32) -> Branch<S> {
        let count = self.counts_before(self.len);
        Branch { first: self.first(0), child: number, count, heads: self.heads_before(self.len) }
    }

    #[inline]
    pub(crate) fn child(&self, at: usize) -> u32 {
        self.children[at]
    }

    #[inline]
    pub(crate) fn first(&self, at: usize) -> Item<S> {
        Item { score: self.scores[at], stamp: self.stamps[at], slot: self.slots[at] }
    }

    pub(crate) fn set_first(&mut self, at: usize, first: Item<S>) {
        self.scores[at] = first.score;
        self.stamps[at] = first.stamp;
        self.slots[at] = first.slot;
    }

    #[inline]
    pub(crate) fn count(&self, at: usize) -> u32 {
        self.counts[at]
    }

    #[inline]
    pub(crate) fn count_mut(&mut self, at: usize) -> &mut u32 {
        &mut self.counts[at]
    }

    #[inline]
    pub(crate) fn heads_mut(&mut self, at: usize) -> &mut u32 {
        &mut self.heads[at]
    }

    /// Entries of the children before this one. Sums fit: an order has fewer than 2^32 entries.
    #[inline]
    pub(crate) fn counts_before(&self, at: usize) -> u32 {
        sum_before(&self.counts, at)
    }

    /// Heads of the children before this one.
    #[inline]
    pub(crate) fn heads_before(&self, at: usize) -> u32 {
        sum_before(&self.heads, at)
    }

    /// Which child this is. It must be one.
    #[inline]
    pub(crate) fn find(&self, child: u32) -> usize {
        // All places and no way out early: vectors, and no branch to guess wrong. Unused places hold NONE.
        let mut found = 0;
        for (at, &other) in self.children.iter().enumerate() {
            found |= if other == child { at as u32 } else { 0 };
        }
        assert!(self.children[found as usize] == child, "a node's child is among its children");
        found as usize
    }

    /// Asks for the lines that `find`, `counts_before` and, if kept, changes of heads will read; see
    /// [`crate::search::warm`].
    #[inline]
    pub(crate) fn warm_sums(&self, dense: bool) {
        for at in (0..FAN).step_by(16) {
            warm(self.children[at]);
            warm(self.counts[at]);
            if dense {
                warm(self.heads[at]);
            }
        }
    }

    /// Asks for the lines that a search by score will read.
    #[inline]
    fn warm_scores(&self) {
        for at in (0..FAN).step_by(64 / size_of::<S>()) {
            warm(self.scores[at]);
        }
    }

    /// The child to descend into: the last whose first entry is before a key, else the first. The key has
    /// this score; among equal scores `before` decides.
    #[inline]
    pub(crate) fn choose(&self, score: S, before: impl FnMut(usize) -> bool) -> usize {
        self.warm_scores();
        let scores = &self.scores[..self.len];
        search(self.len, |at| scores[at] < score, |at| scores[at] == score, before).saturating_sub(1)
    }
}

#[inline]
fn sum_before<const FAN: usize>(numbers: &[u32; FAN], end: usize) -> u32 {
    let end = end as u32;
    let mut sum = 0u32;
    for (at, &number) in numbers.iter().enumerate() {
        sum = sum.wrapping_add(if (at as u32) < end { number } else { 0 });
    }
    sum
}
