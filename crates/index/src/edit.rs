//! The counted B+tree, changing side: entries come, go and move; leaves split, merge and share.
//!
//! Every change keeps counts, heads and first entries exact before the shape is looked at, so a split or a
//! merge is bookkeeping between neighbours and changes nothing further up than one branch more or less.
//! A leaf may hold one entry too many until its split; a node splits before it takes one more.
//!
//! Leaves are split in the middle, at the ends of the order towards the outside, so that scores arriving in
//! order fill leaves. There is no shifting into siblings before a split: leaves are allocated by what they
//! hold, so fill buys little. Less than a quarter full, a leaf or node merges with a sibling or, if both
//! would be more than three quarters full, halves the sum.

use crate::leaf::{Item, Leaf};
use crate::node::{Branch, Node};
use crate::pool::NONE;
use crate::score::{Entry, Score};
use crate::tree::{Key, Tree, order};

impl<S: Score, const LEAF: usize, const FAN: usize> Tree<S, LEAF, FAN> {
    /// Adds the entry of a slot that has a record and no entry.
    pub(crate) fn insert(&mut self, slot: u32, entry: Entry<S>) {
        let key = Key { score: entry.score, stamp: entry.stamp, id: self.records.id(slot) };
        let mut number = self.root;
        for _ in 0..self.height {
            let node = &mut self.nodes[number];
            let at =
                node.choose(key.score, |at| order(self.tie, &self.records, &node.first(at), &key).is_lt());
            // The whole path gains the entry; what a split does later keeps its sum.
            *node.count_mut(at) += 1;
            number = node.child(at);
        }
        let at = self.place_in(number, &key);
        self.len += 1;
        self.put(number, at, Item { score: entry.score, stamp: entry.stamp, slot });
        self.records.set_leaf(slot, number);
        if self.leaves[number].len() > LEAF {
            self.split_leaf(number, at);
        }
    }

    /// Takes the entry at a place out. The record of its slot stays.
    pub(crate) fn remove(&mut self, leaf: u32, at: usize) {
        let heads = self.take(leaf, at);
        self.len -= 1;
        let mut child = leaf;
        let mut parent = self.leaves[leaf].parent;
        while parent != NONE {
            let node = &mut self.nodes[parent];
            let at = node.find(child);
            *node.count_mut(at) -= 1;
            *node.heads_mut(at) = node.heads_mut(at).wrapping_add_signed(heads);
            child = parent;
            parent = node.parent;
        }
        if self.leaves[leaf].len() < LEAF / 4 && self.height > 0 {
            self.mend_leaf(leaf);
        }
    }

    /// Gives the entry at a place new values if it then still belongs to the same leaf, else does nothing.
    pub(crate) fn move_within(&mut self, leaf: u32, at: usize, entry: Entry<S>) -> bool {
        let own = &self.leaves[leaf];
        let item = Item { score: entry.score, stamp: entry.stamp, slot: own.slot(at) };
        let key = Key { score: entry.score, stamp: entry.stamp, id: self.records.id(item.slot) };
        let last = own.len() - 1;
        // The first entry may only go up and the last only down: what bounds them is in other leaves.
        let above = order(self.tie, &self.records, &own.item(0), &key);
        if !(above.is_lt() || above.is_eq() && at == 0) {
            return false;
        }
        let below = order(self.tie, &self.records, &own.item(last), &key);
        if !(below.is_gt() || below.is_eq() && at == last) {
            return false;
        }
        let heads = self.take(leaf, at);
        self.add_heads(leaf, heads);
        let key = Key { score: entry.score, stamp: entry.stamp, id: self.records.id(item.slot) };
        let to = self.place_in(leaf, &key);
        self.put(leaf, to, item);
        true
    }

    /// Replaces the entries of a leaf and nothing else.
    pub(crate) fn fill_leaf(&mut self, leaf: u32, items: &[Item<S>]) {
        let leaf = &mut self.leaves[leaf];
        self.blocks -= leaf.heap();
        leaf.fill(items);
        self.blocks += leaf.heap();
    }

    /// Inserts into a leaf, with heads and first entries; counts are the caller's.
    fn put(&mut self, number: u32, at: usize, item: Item<S>) {
        self.heads_for_insert(number, at, item.score);
        let leaf = &mut self.leaves[number];
        self.blocks -= leaf.heap();
        leaf.insert(at, item, &mut self.scratch);
        self.blocks += leaf.heap();
        if at == 0 {
            self.renew_first(number);
        }
    }

    /// Removes from a leaf, with first entries; counts, and heads by what it returns, are the caller's.
    #[must_use]
    fn take(&mut self, number: u32, at: usize) -> i32 {
        let heads = self.heads_for_remove(number, at);
        let leaf = &mut self.leaves[number];
        self.blocks -= leaf.heap();
        leaf.remove(at, &mut self.scratch);
        self.blocks += leaf.heap();
        if at == 0 && leaf.len() > 0 {
            self.renew_first(number);
        }
        heads
    }

    /// Tells the ancestors which entry is now the first of a leaf.
    pub(crate) fn renew_first(&mut self, leaf: u32) {
        let first = self.leaves[leaf].item(0);
        let mut child = leaf;
        let mut parent = self.leaves[leaf].parent;
        while parent != NONE {
            let node = &mut self.nodes[parent];
            let at = node.find(child);
            node.set_first(at, first);
            if at > 0 {
                return;
            }
            child = parent;
            parent = node.parent;
        }
    }

    /// Splits a leaf that took an entry too many, at this place.
    fn split_leaf(&mut self, left: u32, at: usize) {
        let right = self.leaves.add(Leaf::default());
        let Leaf { prev, next, .. } = self.leaves[left];
        let mut items = std::mem::take(&mut self.scratch);
        items.clear();
        self.leaves[left].copy_to(&mut items);
        let middle = if at == LEAF && next == NONE {
            LEAF - LEAF / 8
        } else if at == 0 && prev == NONE {
            LEAF / 8
        } else {
            items.len() / 2
        };
        let (stay, go) = items.split_at(middle);
        self.fill_leaf(left, stay);
        self.fill_leaf(right, go);
        for item in go {
            self.records.set_leaf(item.slot, right);
        }
        self.leaves[right].prev = left;
        self.leaves[right].next = next;
        self.leaves[left].next = right;
        if next != NONE {
            self.leaves[next].prev = right;
        }

        let heads = self.heads_in(Some(stay[middle - 1].score), go);
        let branch = Branch { first: go[0], child: right, count: go.len() as u32, heads };
        if self.height == 0 {
            let heads = self.heads_in(None, stay);
            let count = stay.len() as u32;
            self.grow_root(Branch { first: stay[0], child: left, count, heads }, branch);
        } else {
            let parent = self.leaves[left].parent;
            let at = self.nodes[parent].find(left);
            self.add_branch(parent, at, branch);
        }
        self.scratch = items;
    }

    /// Adds a branch behind the one at `at`, whose entries it takes over.
    fn add_branch(&mut self, parent: u32, at: usize, branch: Branch<S>) {
        let (mut parent, mut at) = (parent, at);
        if self.nodes[parent].len() == FAN {
            let (right, middle) = self.split_node(parent, at);
            if at >= middle {
                (parent, at) = (right, at - middle);
            }
        }
        // Both branches in one node: its own sums stay, so nothing above changes.
        let node = &mut self.nodes[parent];
        *node.count_mut(at) -= branch.count;
        *node.heads_mut(at) -= branch.heads;
        node.insert(at + 1, branch);
        self.adopt(parent, branch.child);
    }

    /// Splits a full node whose child `at` was split; returns the new one and where it starts.
    fn split_node(&mut self, left: u32, at: usize) -> (u32, usize) {
        let Node { parent, level, .. } = self.nodes[left];
        let middle = if at == FAN - 1 { FAN - FAN / 8 - 1 } else { FAN / 2 };
        let mut branches = std::mem::take(&mut self.branches);
        branches.clear();
        self.nodes[left].copy_to(&mut branches);
        let right = self.nodes.add(Node::default());
        self.nodes[right].level = level;
        self.nodes[left].fill(&branches[..middle]);
        self.nodes[right].fill(&branches[middle..]);
        for branch in &branches[middle..] {
            self.adopt(right, branch.child);
        }
        self.branches = branches;
        let branch = self.nodes[right].summary(right);
        if parent == NONE {
            self.grow_root(self.nodes[left].summary(left), branch);
        } else {
            let at = self.nodes[parent].find(left);
            self.add_branch(parent, at, branch);
        }
        (right, middle)
    }

    fn grow_root(&mut self, left: Branch<S>, right: Branch<S>) {
        let root = self.nodes.add(Node::default());
        self.height += 1;
        self.root = root;
        self.nodes[root].level = self.height;
        self.nodes[root].fill(&[left, right]);
        self.adopt(root, left.child);
        self.adopt(root, right.child);
    }

    /// Makes a node the parent of a leaf or node.
    pub(crate) fn adopt(&mut self, parent: u32, child: u32) {
        if self.nodes[parent].level == 1 {
            self.leaves[child].parent = parent;
        } else {
            self.nodes[child].parent = parent;
        }
    }
}
