//! Bulk load: builds an index from all its entries at once, in any order of arrival.
//!
//! Ids go straight into the arena of the new index. Entries are kept as runs of bounded size, each sorted
//! when it is full; `finish` merges the runs into leaves and puts the levels above on top. Runs are blocks
//! that are dropped as the merge passes them. So the peak is a little above the finished index and not twice
//! it. The id table is built at the end, when its size is known, and on a thread of its own.
//!
//! Several threads may each fill a builder of their own; one then takes over the runs of the others without
//! reading an entry.
//!
//! An id pushed twice is an error of the caller, found at the end. The store has one row per player, and an
//! index must not guess which of two would win.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::{fmt, thread};

use crate::id_table::IdTable;
use crate::leaf::{Item, Leaf, Span};
use crate::nodes::Branch;
use crate::pool::NONE;
use crate::ranking_index::RankingIndex;
use crate::records::Records;
use crate::score::{Entry, Score, Tie};
use crate::search::GROUP;
use crate::tree::{Key, Location, Tree, order};

/// Entries per run: sorting one takes some tens of milliseconds.
const RUN: usize = 1 << 20;
/// Entries between two progress reports.
const PROGRESS_INTERVAL: u64 = 1 << 18;
/// Entries per block of a sorted run, the unit in which memory is freed.
const BLOCK: usize = 1 << 13;

/// Collects entries; see the head of the file.
pub struct Builder<S: Score, const LEAF: usize = 82, const FAN: usize = 64> {
    tree: Tree<S, LEAF, FAN>,
    run: Vec<Item<S>>,
    runs: Vec<Run<S>>,
    count: u64,
    run_max: usize,
}

/// Two entries were pushed for one player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The player.
    pub id: Vec<u8>,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "player {} has two entries", self.id.escape_ascii())
    }
}

impl std::error::Error for Duplicate {}

impl<S: Score, const LEAF: usize, const FAN: usize> Builder<S, LEAF, FAN> {
    /// A builder without entries.
    pub fn new(tie: Tie, dense: bool) -> Self {
        Self::with_run(tie, dense, RUN)
    }

    /// With runs of another size, so that a test reaches the merge with few entries.
    #[doc(hidden)]
    pub fn with_run(tie: Tie, dense: bool, run_max: usize) -> Self {
        Builder { tree: Tree::new(tie, dense), run: Vec::new(), runs: Vec::new(), count: 0, run_max }
    }

    /// Adds a player that has not been added before.
    ///
    /// # Panics
    ///
    /// If the id is empty or longer than 255 bytes, or after some four billion players.
    pub fn push(&mut self, id: &[u8], entry: Entry<S>) {
        let slot = self.tree.records.add(id);
        if self.run.len() == self.run_max {
            self.end_run();
        }
        self.run.push(Item { score: entry.score, stamp: entry.stamp, slot });
        self.count += 1;
    }

    /// Takes over all entries of another builder of the same kind. Their ids stay in place and get other
    /// slots, so this costs next to nothing. A player that both have is found at the end.
    pub fn absorb(&mut self, mut other: Self) {
        other.end_run();
        let first = self.tree.records.absorb(other.tree.records);
        self.runs.extend(other.runs.into_iter().map(|run| Run { first: run.first + first, ..run }));
        self.count += other.count;
    }

    /// The number of entries that were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The index of all entries.
    ///
    /// # Errors
    ///
    /// If a player was added twice.
    pub fn finish(self) -> Result<RankingIndex<S, LEAF, FAN>, Duplicate> {
        self.finish_with_progress(|_| {})
    }

    /// Like [`Self::finish`]; `on_progress` gets the number of placed entries at intervals.
    ///
    /// # Errors
    ///
    /// If a player was added twice.
    pub fn finish_with_progress(
        mut self,
        mut on_progress: impl FnMut(u64),
    ) -> Result<RankingIndex<S, LEAF, FAN>, Duplicate> {
        self.end_run();
        self.run = Vec::new();
        let Builder { mut tree, runs, count, .. } = self;
        let records = std::mem::replace(&mut tree.records, Records::new());
        let mut leaf_of = vec![NONE; records.end()];
        // The id table needs only the ids, so it is built beside the leaves, which are set in it afterwards.
        let (branches, ids) = thread::scope(|scope| {
            let ids = scope.spawn(|| index_ids(&records, count));
            let branches = fill_leaves(&mut tree, &records, Merge::new(runs), &mut leaf_of, &mut on_progress);
            (branches, ids.join().expect("indexing ids does not panic"))
        });
        tree.ids = ids?;
        tree.ids.set_leaves(&leaf_of);
        tree.records = records;
        stack_nodes(&mut tree, branches);
        tree.len = count;
        Ok(RankingIndex { tree })
    }

    fn end_run(&mut self) {
        if self.run.is_empty() {
            return;
        }
        let Tree { tie, records, .. } = &self.tree;
        self.run.sort_unstable_by(|a, b| compare(*tie, records, a, b));
        self.runs.push(Run { first: 0, blocks: self.run.chunks(BLOCK).map(Vec::from).collect() });
        self.run.clear();
    }
}

/// A sorted run, in blocks.
struct Run<S> {
    /// Added to the slots of its items, which the builder that sorted it has numbered.
    first: u32,
    blocks: VecDeque<Vec<Item<S>>>,
}

/// The runs in one sequence: a binary heap by the next entry of each.
struct Merge<S> {
    runs: Vec<Cursor<S>>,
}

struct Cursor<S> {
    next: Item<S>,
    at: usize,
    run: Run<S>,
}

impl<S: Score> Merge<S> {
    fn new(runs: Vec<Run<S>>) -> Self {
        let cursor = |run: Run<S>| {
            let mut next = *run.blocks.front()?.first()?;
            next.slot += run.first;
            Some(Cursor { next, at: 0, run })
        };
        Merge { runs: runs.into_iter().filter_map(cursor).collect() }
    }

    /// Builds the heap, before the first `next`.
    fn prepare(&mut self, tie: Tie, records: &Records) {
        for at in (0..self.runs.len() / 2).rev() {
            self.sift(at, tie, records);
        }
    }

    fn next(&mut self, tie: Tie, records: &Records) -> Option<Item<S>> {
        let top = self.runs.first_mut()?;
        let item = top.next;
        if !top.step() {
            self.runs.swap_remove(0);
        }
        self.sift(0, tie, records);
        Some(item)
    }

    fn sift(&mut self, mut at: usize, tie: Tie, records: &Records) {
        let less = |a: &Cursor<S>, b: &Cursor<S>| compare(tie, records, &a.next, &b.next).is_lt();
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.runs.len() && less(&self.runs[child], &self.runs[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.runs.swap(at, least);
            at = least;
        }
    }
}

impl<S: Score> Cursor<S> {
    /// Advances to the next entry, if there is one.
    fn step(&mut self) -> bool {
        self.at += 1;
        let Run { first, blocks } = &mut self.run;
        if blocks.front().is_some_and(|block| self.at == block.len()) {
            blocks.pop_front();
            self.at = 0;
        }
        match blocks.front() {
            Some(block) => {
                self.next = block[self.at];
                self.next.slot += *first;
                true
            }
            None => false,
        }
    }
}

fn compare<S: Score>(tie: Tie, records: &Records, a: &Item<S>, b: &Item<S>) -> Ordering {
    a.score
        .cmp(&b.score)
        .then_with(|| order(tie, records, a, &Key { score: b.score, stamp: b.stamp, id: records.id(b.slot) }))
}

/// Puts all entries into chained leaves, seven eighths full. Returns what the level above needs.
fn fill_leaves<S: Score, const LEAF: usize, const FAN: usize>(
    tree: &mut Tree<S, LEAF, FAN>,
    records: &Records,
    mut merge: Merge<S>,
    leaf_of: &mut [u32],
    on_progress: &mut impl FnMut(u64),
) -> Vec<Branch<S>> {
    let mut branches: Vec<Branch<S>> = Vec::new();
    let mut items = Vec::with_capacity(LEAF);
    let mut before: Option<S> = None;
    let (mut placed, mut tell_at) = (0, PROGRESS_INTERVAL);
    merge.prepare(tree.tie, records);
    let mut next = merge.next(tree.tie, records);
    while next.is_some() {
        items.clear();
        let mut span = Span::of(&[]);
        while let Some(item) = next {
            span.add(&item);
            if items.len() >= span.room::<LEAF>() * 7 / 8 {
                break;
            }
            items.push(item);
            next = merge.next(tree.tie, records);
        }
        // The first leaf exists from the beginning.
        let leaf = if branches.is_empty() { tree.root } else { tree.leaves.add(Leaf::default()) };
        let heads = tree.heads_in(before, &items);
        before = items.last().map(|item| item.score);
        tree.leaves[leaf].fill(&items);
        for item in &items {
            leaf_of[item.slot as usize] = leaf;
        }
        if let Some(prev) = branches.last() {
            tree.leaves[prev.child].next = leaf;
            tree.leaves[leaf].prev = prev.child;
        }
        placed += items.len() as u64;
        if placed >= tell_at {
            on_progress(placed);
            tell_at = placed + PROGRESS_INTERVAL;
        }
        branches.push(Branch { first: items[0], child: leaf, count: items.len() as u32, heads });
    }
    branches
}

/// Builds the levels above the leaves, each spread evenly over as few nodes of seven eighths as it needs.
fn stack_nodes<S: Score, const LEAF: usize, const FAN: usize>(
    tree: &mut Tree<S, LEAF, FAN>,
    mut below: Vec<Branch<S>>,
) {
    while below.len() > 1 {
        tree.height += 1;
        let nodes = below.len().div_ceil(FAN * 7 / 8);
        let mut above = Vec::with_capacity(nodes);
        let mut rest = &below[..];
        for left in (1..=nodes).rev() {
            let (branches, others) = rest.split_at(rest.len().div_ceil(left));
            rest = others;
            let number = tree.nodes.add(tree.height, branches);
            tree.adopt(number, 0);
            above.push(tree.nodes.summary(number));
        }
        below = above;
    }
    // Without a branch the index is empty, and its first leaf stays the root.
    tree.root = below.first().map_or(tree.root, |branch| branch.child);
}

/// Builds the table of all ids, which must differ.
fn index_ids(records: &Records, count: u64) -> Result<IdTable, Duplicate> {
    let mut ids = IdTable::new(count as usize);
    let mut slots = records.slots();
    let mut group = Vec::with_capacity(GROUP);
    loop {
        // Ids go to distant buckets of a large table: a group waits for all of them together.
        group.clear();
        group.extend(slots.by_ref().take(GROUP).map(|slot| (slot, ids.hash(records.id(slot)))));
        if group.is_empty() {
            return Ok(ids);
        }
        group.iter().for_each(|(_, hash)| ids.warm(*hash));
        for &(slot, hash) in &group {
            let id = records.id(slot);
            if ids.find(hash, |other| records.id(other.slot) == id).is_some() {
                return Err(Duplicate { id: id.to_vec() });
            }
            ids.insert(hash, Location { slot, leaf: NONE }, |slot| records.id(slot));
        }
    }
}
