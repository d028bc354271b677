//! The ranking of a closed period, read from its archive blocks: no memory of its own, a few rows for each query.
//!
//! A search over the first entries of blocks finds a position: some twenty rows for a hundred million players. Only the
//! block with the position is unpacked as a whole. The queries are those of any ranking, see `rules`. A block that
//! cannot be read fails the query; nothing is answered from the rest.

use crate::blocks::{BLOCK_ENTRIES, unpack, unpack_first};
use crate::reads::{Reads, Ruled};
use crate::rules::{Normal, Rules};
use crate::sorted::{Item, Sorted};
use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;
use tally_index::{Entry, Tie};
use tally_rules::definition::Definition;
use tally_rules::{PlayerId, Record};

/// A block as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveBlock {
    /// Distinct scores better than that of its first entry.
    pub distinct_better: u64,
    /// Its packed entries.
    pub entries: Vec<u8>,
}

/// The source of blocks and records.
pub trait ArchiveSource {
    /// The error of a failed read.
    type Error;
    /// A block by its number.
    fn block(&self, block: u64) -> Result<ArchiveBlock, Self::Error>;
    /// A player's record in this period.
    fn record(&self, player: &PlayerId) -> Result<Option<Record>, Self::Error>;
    /// The error for a corrupt block.
    fn corrupt(&self, block: u64) -> Self::Error;
}

/// Reads a closed period.
pub struct ArchivedRanking<'a, X: ArchiveSource> {
    rules: Rules,
    total: u64,
    source: &'a X,
}

impl<'a, X: ArchiveSource> ArchivedRanking<'a, X> {
    /// The ranking of a period with this definition and this number of entries.
    pub fn new(definition: &Definition, total: u64, source: &'a X) -> Self {
        Self { rules: Rules::new(definition), total, source }
    }

    /// Runs queries. The first block that cannot be read fails all of them.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, X::Error> {
        if self.rules.definition.has_subscore() {
            let blocks = Blocks::<[i64; 2], X>::new(self);
            let answer = with(&Ruled::new(&self.rules, &blocks));
            blocks.end(answer)
        } else {
            let blocks = Blocks::<i64, X>::new(self);
            let answer = with(&Ruled::new(&self.rules, &blocks));
            blocks.end(answer)
        }
    }
}

/// The blocks as a ranking. It keeps the first error; every later query returns a neutral value that no caller sees.
struct Blocks<'a, S, X: ArchiveSource> {
    closed: &'a ArchivedRanking<'a, X>,
    firsts: RefCell<HashMap<u64, Item<S>>>,
    read: RefCell<HashMap<u64, Rc<Block<S>>>>,
    error: OnceCell<X::Error>,
}

struct Block<S> {
    distinct_better: u64,
    items: Vec<Item<S>>,
}

impl<'a, S: Normal, X: ArchiveSource> Blocks<'a, S, X> {
    fn new(closed: &'a ArchivedRanking<'a, X>) -> Self {
        Self { closed, firsts: RefCell::default(), read: RefCell::default(), error: OnceCell::new() }
    }

    fn end<T>(self, answer: T) -> Result<T, X::Error> {
        self.error.into_inner().map_or(Ok(answer), Err)
    }

    fn fail<T>(&self, error: X::Error) -> Option<T> {
        let _ = self.error.set(error);
        None
    }

    fn count(&self) -> u64 {
        self.closed.total.div_ceil(BLOCK_ENTRIES as u64)
    }

    fn block(&self, number: u64) -> Option<Rc<Block<S>>> {
        if self.error.get().is_some() {
            return None;
        }
        if let Some(block) = self.read.borrow().get(&number) {
            return Some(Rc::clone(block));
        }
        let stored = self.stored(number)?;
        let left = self.closed.total - number * BLOCK_ENTRIES as u64;
        let entries =
            unpack(&stored.entries).filter(|list| list.len() as u64 == left.min(BLOCK_ENTRIES as u64));
        let Some(entries) = entries else { return self.fail(self.closed.source.corrupt(number)) };
        let items = entries.into_iter().map(|entry| self.unpacked(entry)).collect();
        let block = Rc::new(Block { distinct_better: stored.distinct_better, items });
        self.read.borrow_mut().insert(number, Rc::clone(&block));
        Some(block)
    }

    /// The first entry of a block.
    fn first(&self, number: u64) -> Option<Item<S>> {
        if let Some(block) = self.read.borrow().get(&number) {
            return Some(block.items[0].clone());
        }
        if let Some(first) = self.firsts.borrow().get(&number) {
            return Some(first.clone());
        }
        let stored = self.stored(number)?;
        let Some(first) = unpack_first(&stored.entries) else {
            return self.fail(self.closed.source.corrupt(number));
        };
        let first = self.unpacked(first);
        self.firsts.borrow_mut().insert(number, first.clone());
        Some(first)
    }

    fn stored(&self, number: u64) -> Option<ArchiveBlock> {
        if self.error.get().is_some() {
            return None;
        }
        self.closed.source.block(number).map_or_else(|error| self.fail(error), Some)
    }

    fn unpacked(&self, (player, record): (PlayerId, Record)) -> Item<S> {
        Item { player, entry: self.closed.rules.entry(&record) }
    }

    /// The number of entries before the first that is not `before`, which must agree with the order.
    fn partition(&self, before: impl Fn(&Item<S>) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.count());
        // Finds the last block whose first entry is still before.
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(first) = self.first(middle) else { return 0 };
            if before(&first) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == 0 {
            return 0;
        }
        let Some(block) = self.block(low - 1) else { return 0 };
        (low - 1) * BLOCK_ENTRIES as u64 + block.items.partition_point(before) as u64
    }

    fn item(&self, place: u64) -> Option<Item<S>> {
        let block = self.block(place / BLOCK_ENTRIES as u64)?;
        block.items.get((place % BLOCK_ENTRIES as u64) as usize).cloned()
    }

    /// Compares two keys of this board.
    fn compare(&self, left: &Entry<S>, left_id: &PlayerId, right: &Entry<S>, right_id: &[u8]) -> Ordering {
        let ids = left_id.as_bytes().cmp(right_id);
        left.score.cmp(&right.score).then_with(|| match self.closed.rules.tie() {
            Tie::StampAscending => left.stamp.cmp(&right.stamp).then(ids),
            Tie::StampDescending => right.stamp.cmp(&left.stamp).then(ids),
            Tie::Id => ids,
            Tie::IdReversed => ids.reverse(),
        })
    }
}

impl<S: Normal, X: ArchiveSource> Sorted<S> for Blocks<'_, S, X> {
    fn len(&self) -> u64 {
        self.closed.total
    }

    fn get(&self, player: &[u8]) -> Option<Entry<S>> {
        Some(self.find(player)?.0)
    }

    fn find(&self, player: &[u8]) -> Option<(Entry<S>, u64)> {
        let id = std::str::from_utf8(player).ok().and_then(|id| PlayerId::new(id).ok())?;
        let record = match self.closed.source.record(&id) {
            Ok(record) => record?,
            Err(error) => return self.fail(error),
        };
        let entry = self.closed.rules.entry(&record);
        let place = self.lower_bound(&entry, player);
        // A banned player has a record and no position.
        let there = place < self.closed.total && self.item(place).is_some_and(|item| item.player == id);
        there.then_some((entry, place))
    }

    fn count_better(&self, score: S) -> u64 {
        self.partition(|item| item.entry.score < score)
    }

    fn count_at_least(&self, score: S) -> u64 {
        self.partition(|item| item.entry.score <= score)
    }

    fn count_distinct_better(&self, score: S) -> u64 {
        let place = self.count_better(score);
        let Some(last) = place.checked_sub(1) else { return 0 };
        let Some(block) = self.block(last / BLOCK_ENTRIES as u64) else { return 0 };
        let before = (last % BLOCK_ENTRIES as u64) as usize;
        let changes =
            block.items[..=before].windows(2).filter(|pair| pair[0].entry.score != pair[1].entry.score);
        block.distinct_better + changes.count() as u64 + 1
    }

    fn lower_bound(&self, entry: &Entry<S>, player: &[u8]) -> u64 {
        self.partition(|item| self.compare(&item.entry, &item.player, entry, player) == Ordering::Less)
    }

    fn scan(&self, cursor: u64, take: usize, each: &mut dyn FnMut(&[u8], Entry<S>)) -> u64 {
        // Entries do not move any more, so the position is the cursor.
        self.visit(cursor, take, false, each);
        let next = cursor.saturating_add(take as u64);
        if next < self.closed.total { next } else { 0 }
    }

    fn visit(&self, from: u64, take: usize, back: bool, each: &mut dyn FnMut(&[u8], Entry<S>)) {
        let mut one = |place| match self.item(place) {
            Some(item) => each(item.player.as_bytes(), item.entry),
            None => debug_assert!(self.error.get().is_some(), "a place within the total has an entry"),
        };
        if back {
            let from = from.min(self.closed.total.saturating_sub(1));
            (0..(from + 1).min(self.closed.total)).rev().take(take).for_each(&mut one);
        } else {
            (from..self.closed.total).take(take).for_each(&mut one);
        }
    }
}
