//! The counted B+tree, writing side: entries are inserted, removed and moved; leaves split, merge and share.
//!
//! Every change makes counts, heads and first entries exact before it checks the structure. So a split or a
//! merge is bookkeeping between neighbours, and changes nothing further up than one branch more or less. A
//! leaf is split by the entry that does not fit; a node splits before it takes one more.
//!
//! Leaves are split in the middle, but at the ends of the ranking towards the outside, so that scores
//! arriving in order fill leaves. A leaf or node that has become too empty is rebalanced with a sibling; see
//! `rebalances`.

use crate::leaf::{Item, Leaf, Span};
use crate::nodes::{Branch, Link};
use crate::pool::NONE;
use crate::score::{Entry, Score};
use crate::tree::{Key, Location, Tree};

impl<S: Score, const LEAF: usize, const FAN: usize> Tree<S, LEAF, FAN> {
    /// Adds the entry of a player that has a record and no entry, to the leaf where it belongs. The caller
    /// updates the id table before: if the leaf splits, the entry may move on.
    pub(crate) fn insert(&mut self, location: Location, entry: Entry<S>) {
        self.len += 1;
        self.add_along(location.leaf, 1, 0);
        self.put(location, entry);
    }

    /// Removes the entry at an index. Returns whether other entries or leaves moved. The record stays.
    pub(crate) fn remove(&mut self, leaf: u32, at: usize) -> bool {
        let heads = self.take(leaf, at);
        self.len -= 1;
        self.add_along(leaf, -1, heads);
        let rebalances = self.leaves[leaf].is_sparse() && self.height > 0;
        if rebalances {
            self.rebalance_leaf(leaf);
        }
        rebalances
    }

    /// Changes the values of the entry at an index, which still belongs to the same leaf.
    pub(crate) fn move_within(&mut self, location: Location, at: usize, entry: Entry<S>) {
        let heads = self.take(location.leaf, at);
        self.add_along(location.leaf, 0, heads);
        self.put(location, entry);
    }

    /// Adds to the counts and heads of a leaf in its ancestors.
    #[inline]
    pub(crate) fn add_along(&mut self, leaf: u32, count: i32, heads: i32) {
        let mut link = self.leaves[leaf].link();
        while link.parent != NONE {
            if count != 0 {
                self.nodes.add_count(link.parent, link.at as usize, count);
            }
            if heads != 0 {
                self.nodes.add_heads(link.parent, link.at as usize, heads);
            }
            link = self.nodes.link(link.parent);
        }
    }

    /// Inserts into a leaf, with heads and first entries. The caller updates counts.
    fn put(&mut self, location: Location, entry: Entry<S>) {
        let Location { slot, leaf } = location;
        let item = Item { score: entry.score, stamp: entry.stamp, slot };
        let at =
            self.place_in(leaf, &Key { score: entry.score, stamp: entry.stamp, id: self.records.id(slot) });
        self.heads_for_insert(leaf, at, item.score);
        if self.leaves[leaf].insert(at, &item) {
            if at == 0 {
                self.renew_first(leaf);
            }
        } else {
            self.put_anew(leaf, at, item);
        }
    }

    /// The rest of `put` if the entry does not fit into the leaf or its widths: packs the leaf anew, or
    /// splits it.
    fn put_anew(&mut self, leaf: u32, at: usize, item: Item<S>) {
        let mut items = std::mem::take(&mut self.scratch);
        items.clear();
        self.leaves[leaf].copy_to(&mut items);
        items.insert(at, item);
        if items.len() <= Span::of(&items).room::<LEAF>() {
            self.leaves[leaf].fill(&items);
            if at == 0 {
                self.renew_first(leaf);
            }
        } else {
            self.split_leaf(leaf, &items, at);
        }
        self.scratch = items;
    }

    /// Removes from a leaf, with first entries. The caller updates counts, and heads by the returned change.
    #[must_use]
    fn take(&mut self, leaf: u32, at: usize) -> i32 {
        let heads = self.heads_for_remove(leaf, at);
        self.leaves[leaf].remove(at);
        if at == 0 && self.leaves[leaf].len() > 0 {
            self.renew_first(leaf);
        }
        heads
    }

    /// Updates the first entry of a leaf in its ancestors.
    pub(crate) fn renew_first(&mut self, leaf: u32) {
        let first = self.leaves[leaf].item(0);
        let mut link = self.leaves[leaf].link();
        while link.parent != NONE {
            self.nodes.set_first(link.parent, link.at as usize, first);
            if link.at > 0 {
                return;
            }
            link = self.nodes.link(link.parent);
        }
    }

    /// Splits a leaf for these entries, one too many. The one at `at` is new.
    fn split_leaf(&mut self, left: u32, items: &[Item<S>], at: usize) {
        let right = self.leaves.add(Leaf::default());
        let Leaf { prev, next, .. } = self.leaves[left];
        let mut middle = if at == items.len() - 1 && next == NONE {
            items.len() - items.len() / 8
        } else if at == 0 && prev == NONE {
            items.len() / 8
        } else {
            items.len() / 2
        };
        // Wide entries fit only by halves.
        if middle.max(items.len() - middle) > Span::of(items).room::<LEAF>() {
            middle = items.len() / 2;
        }
        let (stay, go) = items.split_at(middle);
        self.leaves[left].fill(stay);
        self.leaves[right].fill(go);
        self.set_locations(go, right);
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
            if at == 0 {
                self.renew_first(left);
            }
            self.add_branch(self.leaves[left].link(), branch);
        }
    }

    /// Sets the leaf of these entries in the id table.
    pub(crate) fn set_locations(&mut self, items: &[Item<S>], leaf: u32) {
        // Ids and then buckets are all over memory: each kind is loaded at once.
        self.hashes.clear();
        for item in items {
            self.hashes.push(self.ids.hash(self.records.id(item.slot)));
        }
        for &hash in &self.hashes {
            self.ids.warm(hash);
        }
        for (item, &hash) in items.iter().zip(&self.hashes) {
            self.ids.set_leaf(hash, Location { slot: item.slot, leaf });
        }
    }

    /// Adds a branch after this one, whose entries it takes over.
    fn add_branch(&mut self, link: Link, branch: Branch<S>) {
        let (mut parent, mut at) = (link.parent, link.at as usize);
        if self.nodes.len(parent) == FAN {
            let (right, middle) = self.split_node(parent, at);
            if at >= middle {
                (parent, at) = (right, at - middle);
            }
        }
        // Both branches are in one node: its own sums stay, so nothing above changes.
        let Branch { count, heads, .. } = self.nodes.branch(parent, at);
        self.nodes.set_sums(parent, at, count - branch.count, heads - branch.heads);
        self.nodes.insert(parent, at + 1, branch);
        self.adopt(parent, at + 1);
    }

    /// Splits a full node whose child `at` was split; returns the new one and where it starts.
    fn split_node(&mut self, left: u32, at: usize) -> (u32, usize) {
        let middle = if at == FAN - 1 { FAN - FAN / 8 - 1 } else { FAN / 2 };
        let mut branches = std::mem::take(&mut self.branches);
        branches.clear();
        self.nodes.copy_to(left, &mut branches);
        let right = self.nodes.add(self.nodes.level(left), &branches[middle..]);
        self.nodes.fill(left, &branches[..middle]);
        self.adopt(right, 0);
        self.branches = branches;
        let branch = self.nodes.summary(right);
        let link = self.nodes.link(left);
        if link == Link::ROOT {
            self.grow_root(self.nodes.summary(left), branch);
        } else {
            self.add_branch(link, branch);
        }
        (right, middle)
    }

    fn grow_root(&mut self, left: Branch<S>, right: Branch<S>) {
        self.height += 1;
        self.root = self.nodes.add(self.height, &[left, right]);
        self.adopt(self.root, 0);
    }

    /// Sets the links of the children of a node, from this one on.
    pub(crate) fn adopt(&mut self, parent: u32, from: usize) {
        for at in from..self.nodes.len(parent) {
            let child = self.nodes.child(parent, at);
            let link = Link { parent, at: at as u32 };
            if self.nodes.level(parent) == 1 {
                self.leaves[child].set_link(link);
            } else {
                self.nodes.set_link(child, link);
            }
        }
    }
}
