//! What happens to a leaf or node that became less than a quarter full: it merges with a sibling, or the
//! two share. So memory comes back when members leave, and every node but the root has two children or more.
//!
//! Leaves and nodes are mended by the same plan: take both apart, put the sum into the left one if it is at
//! most three quarters full, else halve it. The sums of counts and heads of the two do not change.

use crate::node::Node;
use crate::pool::NONE;
use crate::score::Score;
use crate::tree::Tree;

impl<S: Score, const LEAF: usize, const FAN: usize> Tree<S, LEAF, FAN> {
    /// Mends a leaf that has a parent. It may be empty.
    pub(crate) fn mend_leaf(&mut self, leaf: u32) {
        let parent = self.leaves[leaf].parent;
        let at = self.left_of_pair(parent, leaf);
        let left = self.nodes[parent].child(at);
        let right = self.nodes[parent].child(at + 1);
        let mut items = std::mem::take(&mut self.scratch);
        items.clear();
        self.leaves[left].copy_to(&mut items);
        let before = items.len();
        self.leaves[right].copy_to(&mut items);

        let merge = items.len() <= LEAF * 3 / 4;
        let middle = if merge { items.len() } else { items.len() / 2 };
        let (stay, go) = items.split_at(middle);
        self.fill_leaf(left, stay);
        self.fill_leaf(right, go);
        for item in &items[before.min(middle)..before.max(middle)] {
            self.records.set_leaf(item.slot, if before < middle { left } else { right });
        }
        let heads = self.heads_in(self.score_before(left, 0), stay);
        let node = &mut self.nodes[parent];
        let both = node.branch(at).heads + node.branch(at + 1).heads;
        *node.count_mut(at) = stay.len() as u32;
        *node.heads_mut(at) = heads;
        node.set_first(at, stay[0]);
        if merge {
            node.remove(at + 1);
            self.unlink(right);
        } else {
            *node.count_mut(at + 1) = go.len() as u32;
            *node.heads_mut(at + 1) = both - heads;
            node.set_first(at + 1, go[0]);
        }
        self.scratch = items;
        self.renew_first(left);
        self.mend_node(parent);
    }

    /// Mends a node if it needs it.
    fn mend_node(&mut self, number: u32) {
        let Node { parent, .. } = self.nodes[number];
        if parent == NONE {
            if self.nodes[number].len() == 1 {
                self.drop_root();
            }
            return;
        }
        if self.nodes[number].len() >= FAN / 4 {
            return;
        }
        let at = self.left_of_pair(parent, number);
        let left = self.nodes[parent].child(at);
        let right = self.nodes[parent].child(at + 1);
        let mut branches = std::mem::take(&mut self.branches);
        branches.clear();
        self.nodes[left].copy_to(&mut branches);
        let before = branches.len();
        self.nodes[right].copy_to(&mut branches);

        let merge = branches.len() <= FAN * 3 / 4;
        let middle = if merge { branches.len() } else { branches.len() / 2 };
        self.nodes[left].fill(&branches[..middle]);
        self.nodes[right].fill(&branches[middle..]);
        for branch in &branches[before.min(middle)..before.max(middle)] {
            self.adopt(if before < middle { left } else { right }, branch.child);
        }
        self.branches = branches;
        let summary = self.nodes[left].summary(left);
        self.nodes[parent].set_branch(at, summary);
        if merge {
            self.nodes[parent].remove(at + 1);
            self.nodes.release(right);
        } else {
            let summary = self.nodes[right].summary(right);
            self.nodes[parent].set_branch(at + 1, summary);
        }
        self.mend_node(parent);
    }

    /// The place of a child, or of the one before it if it is the last: it and the next are siblings.
    fn left_of_pair(&self, parent: u32, child: u32) -> usize {
        let node = &self.nodes[parent];
        node.find(child).min(node.len() - 2)
    }

    /// Takes a leaf without entries out of the chain and gives its number back.
    fn unlink(&mut self, leaf: u32) {
        let (prev, next) = (self.leaves[leaf].prev, self.leaves[leaf].next);
        if prev != NONE {
            self.leaves[prev].next = next;
        }
        if next != NONE {
            self.leaves[next].prev = prev;
        }
        self.blocks -= self.leaves[leaf].heap();
        self.leaves.release(leaf);
    }

    /// The only child of the root takes its place.
    fn drop_root(&mut self) {
        let old = self.root;
        self.root = self.nodes[old].child(0);
        self.height -= 1;
        if self.height == 0 {
            self.leaves[self.root].parent = NONE;
        } else {
            self.nodes[self.root].parent = NONE;
        }
        self.nodes.release(old);
    }
}
