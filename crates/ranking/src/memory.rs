//! The ranking of one window in memory: a counted tree behind a lock.
//!
//! Writers are the lanes, one batch at a time, so the lock is taken once per batch and board. Readers take it shared
//! for microseconds. The lock is the standard one and never held across an await: nothing under it waits.
//!
//! Boards with a subscore use a wider tree; other boards save 8 bytes a player. The only `match` on that is the macro
//! below.

use crate::archive::ArchiveBlock;
use crate::blocks::BLOCK_ENTRIES;
use crate::reads::{Reads, Ruled};
use crate::rules::Rules;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tally_index::{Builder, Duplicate, GROUP, RankingIndex};
use tally_rules::definition::Definition;
use tally_rules::{PlayerId, Record};

/// The ranking of one window.
pub struct MemoryRanking {
    rules: Rules,
    tree: RwLock<Tree>,
    changes: AtomicU64,
}

/// A committed change of one player.
#[derive(Clone, Debug)]
pub struct RankingChange {
    /// The player.
    pub player: PlayerId,
    /// The record now; `None` removes the player.
    pub record: Option<Record>,
    /// Whether the caller needs the ranks before and after the change. They cost as much as the change.
    pub ranked: bool,
}

/// Ranks around a published change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// The rank just before.
    pub before: Option<u64>,
    /// The rank just after.
    pub after: Option<u64>,
}

/// Maximum changes under one lock: readers wait some 50 µs. Also the maximum records that are read under one lock.
const HOLD_MAX: usize = 64;

/// An exclusive lock on a ranking, for one writer.
pub struct WriteGuard<'a> {
    rules: &'a Rules,
    tree: RwLockWriteGuard<'a, Tree>,
}

/// A shared lock on a ranking: the ranking does not change until the guard is dropped.
pub struct ReadGuard<'a> {
    rules: &'a Rules,
    tree: RwLockReadGuard<'a, Tree>,
}

/// The tree of a window, by the width of its scores.
enum Tree {
    Plain(RankingIndex<i64>),
    Wide(RankingIndex<[i64; 2]>),
}

macro_rules! on_tree {
    ($tree:expr, $index:ident => $body:expr) => {
        match $tree {
            Tree::Plain($index) => $body,
            Tree::Wide($index) => $body,
        }
    };
}

impl MemoryRanking {
    /// An empty ranking for boards of this definition.
    pub fn new(definition: &Definition) -> Self {
        let rules = Rules::new(definition);
        let (tie, dense) = (rules.tie(), rules.dense());
        let tree = if definition.has_subscore() {
            Tree::Wide(RankingIndex::new(tie, dense))
        } else {
            Tree::Plain(RankingIndex::new(tie, dense))
        };
        Self { rules, tree: RwLock::new(tree), changes: AtomicU64::new(0) }
    }

    /// Publishes committed changes in their order. It releases the lock at intervals, so that readers do not wait for
    /// all of a large batch.
    pub fn publish(&self, changes: &[RankingChange], mut published: impl FnMut(usize, Published)) {
        for (chunk, some) in changes.chunks(HOLD_MAX).enumerate() {
            let mut held = self.hold();
            for (at, change) in some.iter().enumerate() {
                if at.is_multiple_of(GROUP) {
                    held.warm(&some[at..some.len().min(at + GROUP)]);
                }
                if let Some(ranks) = held.publish(change) {
                    published(chunk * HOLD_MAX + at, ranks);
                }
            }
        }
    }

    /// Replaces the whole ranking by a load; fails if a player was added twice. `on_progress` gets the number of placed
    /// players at intervals.
    pub fn load(&self, loading: Loading, on_progress: impl FnMut(u64)) -> Result<(), Duplicate> {
        let loaded = loading.finish(on_progress)?;
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::Relaxed);
        *tree = loaded;
        Ok(())
    }

    /// An empty load for this ranking.
    pub fn loading(&self) -> Loading {
        let (tie, dense) = (self.rules.tie(), self.rules.dense());
        let tree = if self.rules.definition.has_subscore() {
            LoadingTree::Wide(Builder::new(tie, dense))
        } else {
            LoadingTree::Plain(Builder::new(tie, dense))
        };
        Loading { rules: self.rules.clone(), tree }
    }

    /// A number that grows with every publication. If it is the same before and after, nothing changed in between.
    pub fn changes(&self) -> u64 {
        let _tree = self.shared();
        self.changes.load(Ordering::Relaxed)
    }

    /// The number of players.
    pub fn total(&self) -> u64 {
        on_tree!(&*self.shared(), index => index.len())
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        on_tree!(&*self.shared(), index => index.bytes())
    }

    /// Runs queries under the shared lock.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> T {
        on_tree!(&*self.shared(), index => with(&Ruled::new(&self.rules, index)))
    }

    /// Reads players' records in order. It releases the lock at intervals, so each is of its own moment.
    pub fn records(&self, players: &[&PlayerId], mut each: impl FnMut(Option<Record>)) {
        for some in players.chunks(HOLD_MAX) {
            on_tree!(&*self.shared(), index => self.rules.records(index, some, &mut each));
        }
    }

    /// Locks the ranking for one writer until the guard is dropped.
    pub fn hold(&self) -> WriteGuard<'_> {
        let tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::Relaxed);
        WriteGuard { rules: &self.rules, tree }
    }

    /// Blocks changes until the guard is dropped. Take several in the order in which writers lock them. Do not query
    /// them through their [`MemoryRanking`] meanwhile: a waiting writer blocks new readers.
    pub fn share(&self) -> ReadGuard<'_> {
        ReadGuard { rules: &self.rules, tree: self.shared() }
    }

    /// All entries in packed blocks, as a closed period is stored. The lock is held for one block at a time. If
    /// [`changes`](Self::changes) differs afterwards, the blocks do not fit together.
    pub fn blocks<E>(&self, mut each: impl FnMut(u64, ArchiveBlock) -> Result<(), E>) -> Result<u64, E> {
        let total = self.total();
        for block in 0..total.div_ceil(BLOCK_ENTRIES as u64) {
            let offset = block * BLOCK_ENTRIES as u64;
            let stored = on_tree!(&*self.shared(), index => self.rules.block(index, offset));
            each(block, stored)?;
        }
        Ok(total)
    }

    fn shared(&self) -> RwLockReadGuard<'_, Tree> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteGuard<'_> {
    /// Prefetches what publishing these changes will read.
    fn warm(&self, changes: &[RankingChange]) {
        on_tree!(&*self.tree, index => self.rules.warm(index, changes));
    }

    /// Publishes one committed change. Returns the ranks around it if it is `ranked`.
    pub fn publish(&mut self, change: &RankingChange) -> Option<Published> {
        let rules = self.rules;
        if change.ranked {
            return Some(on_tree!(&mut *self.tree, index => rules.publish(index, change)));
        }
        on_tree!(&mut *self.tree, index => rules.place(index, change));
        None
    }

    /// Queries it as it is now.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> T {
        on_tree!(&*self.tree, index => with(&Ruled::new(self.rules, index)))
    }
}

impl ReadGuard<'_> {
    /// Runs queries.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> T {
        on_tree!(&*self.tree, index => with(&Ruled::new(self.rules, index)))
    }
}

impl std::fmt::Debug for MemoryRanking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryRanking").field("total", &self.total()).finish_non_exhaustive()
    }
}

/// A bulk load: records in any order, built at once at the end.
pub struct Loading {
    rules: Rules,
    tree: LoadingTree,
}

enum LoadingTree {
    Plain(Builder<i64>),
    Wide(Builder<[i64; 2]>),
}

impl Loading {
    /// Adds a record. No player may be added twice.
    pub fn push(&mut self, player: &PlayerId, record: &Record) {
        match &mut self.tree {
            LoadingTree::Plain(builder) => builder.push(player.as_bytes(), self.rules.entry(record)),
            LoadingTree::Wide(builder) => builder.push(player.as_bytes(), self.rules.entry(record)),
        }
    }

    /// Takes over the records of another load of the same ranking.
    ///
    /// # Panics
    ///
    /// If it is one of another ranking.
    pub fn absorb(&mut self, other: Self) {
        match (&mut self.tree, other.tree) {
            (LoadingTree::Plain(own), LoadingTree::Plain(other)) => own.absorb(other),
            (LoadingTree::Wide(own), LoadingTree::Wide(other)) => own.absorb(other),
            _ => unreachable!("both are loads of one ranking"),
        }
    }

    /// The number of players.
    pub fn count(&self) -> u64 {
        match &self.tree {
            LoadingTree::Plain(builder) => builder.count(),
            LoadingTree::Wide(builder) => builder.count(),
        }
    }

    fn finish(self, on_progress: impl FnMut(u64)) -> Result<Tree, Duplicate> {
        Ok(match self.tree {
            LoadingTree::Plain(builder) => Tree::Plain(builder.finish_with_progress(on_progress)?),
            LoadingTree::Wide(builder) => Tree::Wide(builder.finish_with_progress(on_progress)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::Micros;

    fn player(number: usize) -> PlayerId {
        PlayerId::new(&format!("p{number}")).unwrap()
    }

    #[test]
    fn records_of_many_are_those_of_each() {
        let ranking = MemoryRanking::new(&Definition::default());
        // More than one lock covers, and half of the players that are queried.
        let record = |number| Record { score: number as i64 % 7, subscore: 0, at: Micros(number as i64) };
        let moved =
            |number| RankingChange { player: player(number), record: Some(record(number)), ranked: true };
        let changes: Vec<_> = (0..150).map(|number| moved(2 * number)).collect();
        let mut heard = Vec::new();
        ranking.publish(&changes, |at, ranks| heard.push((at, ranks.before, ranks.after.is_some())));
        assert_eq!(heard, (0..150).map(|at| (at, None, true)).collect::<Vec<_>>());
        let players: Vec<_> = (0..300).map(player).collect();
        let mut found = Vec::new();
        ranking.records(&players.iter().collect::<Vec<_>>(), |record| found.push(record));
        let each = players.iter().map(|player| ranking.read(|ranking| ranking.record(player.as_bytes())));
        assert_eq!(found, each.collect::<Vec<_>>());
        assert_eq!(found.iter().flatten().count(), 150);
    }
}
