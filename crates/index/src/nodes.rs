//! Inner nodes: for each child its first entry, how many entries the children before it have, and how many of
//! those are heads.
//!
//! A node has three parts under one number. A descent reads scores and children, a rank reads sums, and
//! neither reads the rest. Kept apart, what each reads of all nodes of a large board fits into the caches,
//! and its pages into the TLB. Together it would not.
//!
//! Counts are sums over the children before, and every child knows its index in its parent, so a rank reads
//! one number per level. A change adds to the rest of the sums, which is a few vectors wide. The first entry
//! is exact for every child, the leftmost included. It names a player by slot, and a slot that is no longer
//! in the ranking would be given to another player.
//!
//! A *head* is the first entry of a score group: its score differs from that of its predecessor in the whole
//! ranking. The number of heads up to a position is the number of distinct scores. Without dense ranks heads
//! stay 0.

use crate::leaf::Item;
use crate::pool::{NONE, Pool};
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

/// The parent of a leaf or node, `NONE` for the root, and the index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) parent: u32,
    pub(crate) at: u32,
}

impl Link {
    pub(crate) const ROOT: Link = Link { parent: NONE, at: 0 };
}

/// See the head of the file.
pub(crate) struct Nodes<S: Score, const FAN: usize> {
    keys: Pool<Keys<S, FAN>, 6>,
    counts: Pool<Counts<FAN>, 6>,
    rest: Pool<Rest<FAN>, 6>,
}

/// What a descent reads.
struct Keys<S, const FAN: usize> {
    len: u32,
    children: [u32; FAN],
    scores: [S; FAN],
}

/// What a rank reads.
struct Counts<const FAN: usize> {
    link: Link,
    sums: Sums<FAN>,
}

/// What equal scores, distinct scores and changes of structure read.
struct Rest<const FAN: usize> {
    /// 1 if the children are leaves.
    level: u32,
    heads: Sums<FAN>,
    stamps: [i64; FAN],
    slots: [u32; FAN],
}

impl<S: Score, const FAN: usize> Default for Keys<S, FAN> {
    fn default() -> Self {
        Keys { len: 0, children: [NONE; FAN], scores: [S::default(); FAN] }
    }
}

impl<const FAN: usize> Default for Counts<FAN> {
    fn default() -> Self {
        Counts { link: Link::ROOT, sums: Sums::NEW }
    }
}

impl<const FAN: usize> Default for Rest<FAN> {
    fn default() -> Self {
        Rest { level: 0, heads: Sums::NEW, stamps: [0; FAN], slots: [0; FAN] }
    }
}

/// Numbers by child, kept as sums. They fit: a ranking has fewer than 2^32 entries.
struct Sums<const FAN: usize> {
    /// Of all children.
    total: u32,
    /// Of the children before this one. Numbers past the last child have no meaning.
    before: [u32; FAN],
}

impl<const FAN: usize> Sums<FAN> {
    const NEW: Self = Sums { total: 0, before: [0; FAN] };

    /// Of the child at `at` of `len`.
    fn of(&self, at: usize, len: usize) -> u32 {
        let end = if at + 1 < len { self.before[at + 1] } else { self.total };
        end - self.before[at]
    }

    /// Adds to the number of a child, or with a wrapped number subtracts.
    #[inline]
    fn add(&mut self, at: usize, number: u32) {
        // All indexes: vector code without a branch to mispredict.
        for (other, before) in self.before.iter_mut().enumerate() {
            *before = before.wrapping_add(if other as u32 > at as u32 { number } else { 0 });
        }
        self.total = self.total.wrapping_add(number);
    }

    /// Inserts a child with this number before the one at `at` of `len`.
    fn insert(&mut self, at: usize, len: usize, number: u32) {
        let before = if at < len { self.before[at] } else { self.total };
        self.before.copy_within(at..len, at + 1);
        self.before[at] = before;
        self.add(at, number);
    }

    /// Removes the child at `at` of `len`.
    fn remove(&mut self, at: usize, len: usize) {
        self.add(at, self.of(at, len).wrapping_neg());
        self.before.copy_within(at + 1..len, at);
    }

    /// Appends a child, at `at`.
    fn push(&mut self, at: usize, number: u32) {
        self.before[at] = self.total;
        self.total += number;
    }
}

impl<S: Score, const FAN: usize> Nodes<S, FAN> {
    pub(crate) fn new() -> Self {
        const {
            assert!(FAN >= 8);
            // A leaf keeps its index in its parent in a byte.
            assert!(FAN <= 256);
        }
        Nodes { keys: Pool::new(), counts: Pool::new(), rest: Pool::new() }
    }

    /// A node of these children, whose links are not set yet.
    pub(crate) fn add(&mut self, level: u32, branches: &[Branch<S>]) -> u32 {
        let number = self.keys.add(Keys::default());
        let others = [self.counts.add(Counts::default()), self.rest.add(Rest::default())];
        assert!(others == [number; 2], "the parts of a node have one number");
        self.rest[number].level = level;
        self.fill(number, branches);
        number
    }

    /// Frees a node; its number is reused.
    pub(crate) fn release(&mut self, number: u32) {
        self.keys.release(number);
        self.counts.release(number);
        self.rest.release(number);
    }

    /// The number of nodes in use.
    pub(crate) fn live(&self) -> usize {
        self.keys.live()
    }

    pub(crate) fn heap(&self) -> u64 {
        self.keys.heap() + self.counts.heap() + self.rest.heap()
    }

    #[inline]
    pub(crate) fn len(&self, node: u32) -> usize {
        self.keys[node].len as usize
    }

    pub(crate) fn level(&self, node: u32) -> u32 {
        self.rest[node].level
    }

    #[inline]
    pub(crate) fn link(&self, node: u32) -> Link {
        self.counts[node].link
    }

    pub(crate) fn set_link(&mut self, node: u32, link: Link) {
        self.counts[node].link = link;
    }

    #[inline]
    pub(crate) fn child(&self, node: u32, at: usize) -> u32 {
        self.keys[node].children[at]
    }

    #[inline]
    pub(crate) fn first(&self, node: u32, at: usize) -> Item<S> {
        let rest = &self.rest[node];
        Item { score: self.keys[node].scores[at], stamp: rest.stamps[at], slot: rest.slots[at] }
    }

    pub(crate) fn set_first(&mut self, node: u32, at: usize, first: Item<S>) {
        self.keys[node].scores[at] = first.score;
        let rest = &mut self.rest[node];
        rest.stamps[at] = first.stamp;
        rest.slots[at] = first.slot;
    }

    pub(crate) fn branch(&self, node: u32, at: usize) -> Branch<S> {
        let len = self.len(node);
        let count = self.counts[node].sums.of(at, len);
        let heads = self.rest[node].heads.of(at, len);
        Branch { first: self.first(node, at), child: self.child(node, at), count, heads }
    }

    pub(crate) fn set_branch(&mut self, node: u32, at: usize, branch: Branch<S>) {
        self.set_first(node, at, branch.first);
        self.keys[node].children[at] = branch.child;
        self.set_sums(node, at, branch.count, branch.heads);
    }

    /// Sets the numbers of entries and heads of a child.
    pub(crate) fn set_sums(&mut self, node: u32, at: usize, count: u32, heads: u32) {
        let old = self.branch(node, at);
        self.counts[node].sums.add(at, count.wrapping_sub(old.count));
        self.rest[node].heads.add(at, heads.wrapping_sub(old.heads));
    }

    /// There must be room.
    pub(crate) fn insert(&mut self, node: u32, at: usize, branch: Branch<S>) {
        let len = self.len(node);
        let (keys, rest) = (&mut self.keys[node], &mut self.rest[node]);
        keys.scores.copy_within(at..len, at + 1);
        keys.children.copy_within(at..len, at + 1);
        keys.children[at] = branch.child;
        keys.len += 1;
        rest.stamps.copy_within(at..len, at + 1);
        rest.slots.copy_within(at..len, at + 1);
        rest.heads.insert(at, len, branch.heads);
        self.counts[node].sums.insert(at, len, branch.count);
        self.set_first(node, at, branch.first);
    }

    pub(crate) fn remove(&mut self, node: u32, at: usize) {
        let len = self.len(node);
        let (keys, rest) = (&mut self.keys[node], &mut self.rest[node]);
        keys.scores.copy_within(at + 1..len, at);
        keys.children.copy_within(at + 1..len, at);
        keys.len -= 1;
        rest.stamps.copy_within(at + 1..len, at);
        rest.slots.copy_within(at + 1..len, at);
        rest.heads.remove(at, len);
        self.counts[node].sums.remove(at, len);
    }

    /// Replaces all branches.
    pub(crate) fn fill(&mut self, node: u32, branches: &[Branch<S>]) {
        self.keys[node].len = branches.len() as u32;
        self.counts[node].sums.total = 0;
        self.rest[node].heads.total = 0;
        for (at, branch) in branches.iter().enumerate() {
            self.set_first(node, at, branch.first);
            self.keys[node].children[at] = branch.child;
            self.counts[node].sums.push(at, branch.count);
            self.rest[node].heads.push(at, branch.heads);
        }
    }

    /// Appends all branches to `out`.
    pub(crate) fn copy_to(&self, node: u32, out: &mut Vec<Branch<S>>) {
        out.extend((0..self.len(node)).map(|at| self.branch(node, at)));
    }

    /// This node as a branch of its parent.
    pub(crate) fn summary(&self, node: u32) -> Branch<S> {
        let (count, heads) = (self.counts[node].sums.total, self.rest[node].heads.total);
        Branch { first: self.first(node, 0), child: node, count, heads }
    }

    /// Changes the number of entries of a child and the node.
    #[inline]
    pub(crate) fn add_count(&mut self, node: u32, at: usize, change: i32) {
        self.counts[node].sums.add(at, change as u32);
    }

    /// Changes the number of heads of a child and the node.
    #[inline]
    pub(crate) fn add_heads(&mut self, node: u32, at: usize, change: i32) {
        self.rest[node].heads.add(at, change as u32);
    }

    /// Entries of the children before this one.
    #[inline]
    pub(crate) fn counts_before(&self, node: u32, at: usize) -> u32 {
        self.counts[node].sums.before[at]
    }

    /// Heads of the children before this one.
    #[inline]
    pub(crate) fn heads_before(&self, node: u32, at: usize) -> u32 {
        self.rest[node].heads.before[at]
    }

    /// The child with the entry at this position within the node.
    #[inline]
    pub(crate) fn child_with(&self, node: u32, place: u32) -> usize {
        let before = &self.counts[node].sums.before[..self.len(node)];
        before.iter().map(|&before| usize::from(before <= place)).sum::<usize>() - 1
    }

    /// Prefetches the lines that a change of counts will read; see [`crate::search::warm`].
    #[inline]
    pub(crate) fn warm_counts(&self, node: u32) {
        let Counts { link, sums } = &self.counts[node];
        warm(link);
        for at in (0..FAN).step_by(16) {
            warm(&sums.before[at]);
        }
    }

    /// The child to descend into: the last whose first entry is before a key, else the first. The key has
    /// this score; among equal scores `before` decides.
    #[inline]
    pub(crate) fn choose(&self, node: u32, score: S, before: impl FnMut(usize) -> bool) -> usize {
        let Keys { len, scores, .. } = &self.keys[node];
        for at in (0..FAN).step_by(64 / size_of::<S>()) {
            warm(&scores[at]);
        }
        let scores = &scores[..*len as usize];
        search(scores.len(), |at| scores[at] < score, |at| scores[at] == score, before).saturating_sub(1)
    }
}
