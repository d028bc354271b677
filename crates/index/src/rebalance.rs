//! Rebalances a leaf or node that has become too empty: it merges with a sibling, or the two share. So memory
//! comes back when players are removed, and every node but the root has two children or more.
//!
//! Leaves and nodes are rebalanced alike: both are unpacked into the left one or, if that would be too full,
//! halved. The sums of counts and heads of the two do not change. Leaves, which are nearly all of the memory,
//! are rebalanced under three eighths and merged up to seven. After twenty random updates of every player
//! that leaves them 55 % full; a quarter and three quarters would leave 48 %. Two leaves, one with narrow
//! entries and one with wide ones, may hold more apart than in halves: then nothing is done.

use crate::leaf::{Item, Span};
use crate::nodes::Link;
use crate::pool::NONE;
use crate::score::Score;
use crate::tree::Tree;

impl<S: Score, const LEAF: usize, const FAN: usize> Tree<S, LEAF, FAN> {
    /// Rebalances a leaf that has a parent. It may be empty.
    pub(crate) fn rebalance_leaf(&mut self, leaf: u32) {
        let link = self.leaves[leaf].link();
        let (parent, at) = (link.parent, self.left_of_pair(link));
        let left = self.nodes.child(parent, at);
        let right = self.nodes.child(parent, at + 1);
        let mut items = std::mem::take(&mut self.scratch);
        items.clear();
        self.leaves[left].copy_to(&mut items);
        let before = items.len();
        self.leaves[right].copy_to(&mut items);
        if let Some(middle) = share::<S, LEAF>(&items, before) {
            self.share_leaves(parent, at, &items, before, middle);
        }
        self.scratch = items;
        self.rebalance_node(parent);
    }

    /// Gives the entries of two sibling leaves to the left one up to `middle`, which was `before`, and the
    /// others to the right one. A right one without entries is removed.
    fn share_leaves(&mut self, parent: u32, at: usize, items: &[Item<S>], before: usize, middle: usize) {
        let left = self.nodes.child(parent, at);
        let right = self.nodes.child(parent, at + 1);
        let (stay, go) = items.split_at(middle);
        self.leaves[left].fill(stay);
        self.leaves[right].fill(go);
        let moved = &items[before.min(middle)..before.max(middle)];
        self.set_locations(moved, if before < middle { left } else { right });
        let heads = self.heads_in(self.score_before(left, 0), stay);
        let both = self.nodes.branch(parent, at).heads + self.nodes.branch(parent, at + 1).heads;
        self.nodes.set_sums(parent, at, stay.len() as u32, heads);
        if go.is_empty() {
            self.nodes.remove(parent, at + 1);
            self.adopt(parent, at + 1);
            self.unlink(right);
        } else {
            self.nodes.set_sums(parent, at + 1, go.len() as u32, both - heads);
            self.nodes.set_first(parent, at + 1, go[0]);
        }
        self.renew_first(left);
    }

    /// Rebalances a node if it is too empty.
    fn rebalance_node(&mut self, number: u32) {
        let link = self.nodes.link(number);
        if link == Link::ROOT {
            if self.nodes.len(number) == 1 {
                self.drop_root();
            }
            return;
        }
        if self.nodes.len(number) >= FAN / 4 {
            return;
        }
        let (parent, at) = (link.parent, self.left_of_pair(link));
        let left = self.nodes.child(parent, at);
        let right = self.nodes.child(parent, at + 1);
        let mut branches = std::mem::take(&mut self.branches);
        branches.clear();
        self.nodes.copy_to(left, &mut branches);
        let before = branches.len();
        self.nodes.copy_to(right, &mut branches);

        let merge = branches.len() <= FAN * 3 / 4;
        let middle = if merge { branches.len() } else { branches.len() / 2 };
        self.nodes.fill(left, &branches[..middle]);
        self.nodes.fill(right, &branches[middle..]);
        self.adopt(left, before.min(middle));
        self.adopt(right, 0);
        self.branches = branches;
        let summary = self.nodes.summary(left);
        self.nodes.set_branch(parent, at, summary);
        if merge {
            self.nodes.remove(parent, at + 1);
            self.adopt(parent, at + 1);
            self.nodes.release(right);
        } else {
            let summary = self.nodes.summary(right);
            self.nodes.set_branch(parent, at + 1, summary);
        }
        self.rebalance_node(parent);
    }

    /// The index of a child, or of the one before it if it is the last: it and the next are siblings.
    fn left_of_pair(&self, link: Link) -> usize {
        (link.at as usize).min(self.nodes.len(link.parent) - 2)
    }

    /// Removes a leaf without entries from the chain and frees it.
    fn unlink(&mut self, leaf: u32) {
        let (prev, next) = (self.leaves[leaf].prev, self.leaves[leaf].next);
        if prev != NONE {
            self.leaves[prev].next = next;
        }
        if next != NONE {
            self.leaves[next].prev = prev;
        }
        self.leaves.release(leaf);
    }

    /// Replaces the root by its only child.
    fn drop_root(&mut self) {
        let old = self.root;
        self.root = self.nodes.child(old, 0);
        self.height -= 1;
        if self.height == 0 {
            self.leaves[self.root].set_link(Link::ROOT);
        } else {
            self.nodes.set_link(self.root, Link::ROOT);
        }
        self.nodes.release(old);
    }
}

/// The number of entries for the left of two siblings, which has `before` now. `None` if both stay as they
/// are. Then they are too many for one leaf and, because a mixture needs wider numbers, do not fit into two
/// halves either.
fn share<S: Score, const LEAF: usize>(items: &[Item<S>], before: usize) -> Option<usize> {
    let room = |items: &[Item<S>]| Span::of(items).room::<LEAF>();
    // The entries of one leaf alone still fit into one.
    if before == 0 || before == items.len() || items.len() <= room(items) * 7 / 8 {
        return Some(items.len());
    }
    let (left, right) = items.split_at(items.len() / 2);
    (left.len() <= room(left) && right.len() <= room(right)).then_some(left.len())
}
