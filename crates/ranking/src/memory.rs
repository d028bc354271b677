//! One part of one board in memory: a counted tree behind a lock.
//!
//! Writers are the lanes, one batch at a time, so the lock is taken once per batch and board; readers take it shared
//! for microseconds. The lock is the standard one and never held across an await: nothing under it waits.
//!
//! Boards with a subscore use a wider tree; everybody else pays 8 bytes a player less. The only `match` on that is
//! the macro below.

use crate::blocks::BLOCK_ENTRIES;
use crate::closed::StoredBlock;
use crate::page::{Among, Page, PageQuery, Ranked};
use crate::rules::Rules;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use tally_index::{Builder, Duplicate, Order};
use tally_rules::definition::Definition;
use tally_rules::{PlayerId, Record};

/// The order of one part.
pub struct PartOrder {
    rules: Rules,
    tree: RwLock<Tree>,
    changes: AtomicU64,
}

/// A committed change of one player.
#[derive(Clone, Debug)]
pub struct Movement {
    /// Who.
    pub player: PlayerId,
    /// The record now; `None` removes the player.
    pub record: Option<Record>,
}

/// Ranks around a published change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// The rank just before.
    pub before: Option<u64>,
    /// The rank just after.
    pub after: Option<u64>,
}

/// The tree of a part, by the width of its scores.
enum Tree {
    Plain(Order<i64>),
    Wide(Order<[i64; 2]>),
}

macro_rules! on_tree {
    ($tree:expr, $order:ident => $body:expr) => {
        match $tree {
            Tree::Plain($order) => $body,
            Tree::Wide($order) => $body,
        }
    };
}

impl PartOrder {
    /// An empty order for boards of this definition.
    pub fn new(definition: &Definition) -> Self {
        let rules = Rules::new(definition);
        let (tie, dense) = (rules.tie(), rules.dense());
        let tree = if definition.has_subscore() {
            Tree::Wide(Order::new(tie, dense))
        } else {
            Tree::Plain(Order::new(tie, dense))
        };
        Self { rules, tree: RwLock::new(tree), changes: AtomicU64::new(0) }
    }

    /// Publishes committed changes in their order, and says each one's ranks around it.
    pub fn publish(&self, movements: &[Movement]) -> Vec<Published> {
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::Relaxed);
        let one = |movement: &Movement| on_tree!(&mut *tree, order => self.rules.publish(order, movement));
        movements.iter().map(one).collect()
    }

    /// Replaces the whole order by what was loaded; refused where a player came twice.
    pub fn load(&self, loading: Loading) -> Result<(), Duplicate> {
        let loaded = loading.finish()?;
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::Relaxed);
        *tree = loaded;
        Ok(())
    }

    /// An empty load for this order.
    pub fn loading(&self) -> Loading {
        let (tie, dense) = (self.rules.tie(), self.rules.dense());
        let tree = if self.rules.definition.has_subscore() {
            LoadingTree::Wide(Builder::new(tie, dense))
        } else {
            LoadingTree::Plain(Builder::new(tie, dense))
        };
        Loading { rules: self.rules.clone(), tree }
    }

    /// A number that grows with every publication: the same before and after means that nothing moved between.
    pub fn changes(&self) -> u64 {
        let _tree = self.read();
        self.changes.load(Ordering::Relaxed)
    }

    /// How many players it has.
    pub fn total(&self) -> u64 {
        on_tree!(&*self.read(), order => order.len())
    }

    /// Bytes of memory it holds.
    pub fn bytes(&self) -> u64 {
        on_tree!(&*self.read(), order => order.bytes())
    }

    /// A player's place.
    pub fn ranked(&self, player: &PlayerId) -> Option<Ranked> {
        on_tree!(&*self.read(), order => self.rules.ranked(order, player))
    }

    /// Everything in order, in packed blocks: how a closed period is stored. The lock is held for one block at a time;
    /// where [`changes`](Self::changes) tells of any meanwhile, the blocks do not fit together.
    pub fn blocks<E>(&self, mut each: impl FnMut(u64, StoredBlock) -> Result<(), E>) -> Result<u64, E> {
        let total = self.total();
        for block in 0..total.div_ceil(BLOCK_ENTRIES as u64) {
            let offset = block * BLOCK_ENTRIES as u64;
            let stored = on_tree!(&*self.read(), order => self.rules.block(order, offset));
            each(block, stored)?;
        }
        Ok(total)
    }

    /// The rank that a record of this player has or would have among the others.
    pub fn rank_of(&self, player: &PlayerId, record: &Record) -> u64 {
        on_tree!(&*self.read(), order => self.rules.rank_of(order, player, record))
    }

    /// A stretch of the order.
    pub fn page(&self, query: &PageQuery) -> Page {
        on_tree!(&*self.read(), order => self.rules.page(order, query))
    }

    /// The places around a player, the player among them, clipped at the ends.
    pub fn around(&self, player: &PlayerId, above: usize, below: usize) -> Option<Page> {
        on_tree!(&*self.read(), order => self.rules.around(order, player, above, below))
    }

    /// These players among each other, each counted once.
    pub fn among(&self, players: &[PlayerId]) -> Among {
        on_tree!(&*self.read(), order => self.rules.among(order, players))
    }

    fn read(&self) -> RwLockReadGuard<'_, Tree> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PartOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartOrder").field("total", &self.total()).finish_non_exhaustive()
    }
}

/// An order being loaded: records in any order, built at once at the end.
pub struct Loading {
    rules: Rules,
    tree: LoadingTree,
}

enum LoadingTree {
    Plain(Builder<i64>),
    Wide(Builder<[i64; 2]>),
}

impl Loading {
    /// Takes one record; no player may come twice.
    pub fn push(&mut self, player: &PlayerId, record: &Record) {
        match &mut self.tree {
            LoadingTree::Plain(builder) => builder.push(player.as_bytes(), self.rules.entry(record)),
            LoadingTree::Wide(builder) => builder.push(player.as_bytes(), self.rules.entry(record)),
        }
    }

    fn finish(self) -> Result<Tree, Duplicate> {
        Ok(match self.tree {
            LoadingTree::Plain(builder) => Tree::Plain(builder.finish()?),
            LoadingTree::Wide(builder) => Tree::Wide(builder.finish()?),
        })
    }
}
