//! Everything that can be asked of a part of a board, wherever its order is.
//!
//! [`Reads`] is what doors ask: ranks and pages for leaderboards, places and stretches for those who see a board as a
//! sorted set. It is answered by a tree that somebody has locked and by the blocks of a closed period, both through
//! `rules`, so there is one way to compute each answer.

use crate::page::{Among, Page, PageQuery, Ranked};
use crate::rules::{Normal, Rules};
use crate::sorted::Sorted;
use std::marker::PhantomData;
use tally_index::Entry;
use tally_rules::{PlayerId, Record};

/// Questions to one order. Places are from 0, the best first.
pub trait Reads {
    /// How many players it has.
    fn total(&self) -> u64;
    /// A player's record. Ids are bytes as they came; one that is no player's name has no record.
    fn record(&self, player: &[u8]) -> Option<Record>;
    /// A player's record and place.
    fn find(&self, player: &[u8]) -> Option<(Record, u64)>;
    /// The places `from..to` that hold scores from `min` to `max`, both inclusive, as values of the board.
    fn score_places(&self, min: Option<i64>, max: Option<i64>) -> (u64, u64);
    /// How many entries, from the best, are before the first that is not `before`; the order must agree with it.
    fn partition(&self, before: &dyn Fn(&[u8]) -> bool) -> u64;
    /// At most `take` entries from a place on, towards worse or towards better.
    fn visit(&self, from: u64, take: usize, towards_better: bool, each: &mut dyn FnMut(&[u8], Record));
    /// Some entries from a cursor on, 0 the first; the next cursor, 0 at the end. Whoever is there from the first call to
    /// the last is met, though scores change in between.
    fn scan(&self, cursor: u64, take: usize, each: &mut dyn FnMut(&[u8], Record)) -> u64;
    /// A player's place with rank and percentile.
    fn ranked(&self, player: &PlayerId) -> Option<Ranked>;
    /// The rank that a record of this player has or would have among the others.
    fn rank_of(&self, player: &PlayerId, record: &Record) -> u64;
    /// A stretch of the order.
    fn page(&self, query: &PageQuery) -> Page;
    /// The places around a player, the player among them, clipped at the ends.
    fn around(&self, player: &PlayerId, above: usize, below: usize) -> Option<Page>;
    /// These players among each other, each counted once.
    fn among(&self, players: &[PlayerId]) -> Among;
}

/// An order with the rules of its board.
pub(crate) struct Ruled<'a, S, O> {
    rules: &'a Rules,
    order: &'a O,
    score: PhantomData<S>,
}

impl<'a, S: Normal, O: Sorted<S>> Ruled<'a, S, O> {
    pub(crate) fn new(rules: &'a Rules, order: &'a O) -> Self {
        Self { rules, order, score: PhantomData }
    }
}

impl<S: Normal, O: Sorted<S>> Reads for Ruled<'_, S, O> {
    fn total(&self) -> u64 {
        self.order.len()
    }
    fn record(&self, player: &[u8]) -> Option<Record> {
        let entry = self.order.get(player)?;
        Some(self.rules.record(entry.score, entry.stamp))
    }
    fn find(&self, player: &[u8]) -> Option<(Record, u64)> {
        let (entry, place) = self.order.find(player)?;
        Some((self.rules.record(entry.score, entry.stamp), place))
    }
    fn score_places(&self, min: Option<i64>, max: Option<i64>) -> (u64, u64) {
        self.rules.bounds(self.order, min, max)
    }
    fn partition(&self, before: &dyn Fn(&[u8]) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.order.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let mut is_before = false;
            self.order.visit(middle, 1, false, &mut |id, _| is_before = before(id));
            if is_before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
    fn visit(&self, from: u64, take: usize, towards_better: bool, each: &mut dyn FnMut(&[u8], Record)) {
        let one = &mut |id: &[u8], entry: Entry<S>| each(id, self.rules.record(entry.score, entry.stamp));
        self.order.visit(from, take, towards_better, one);
    }
    fn scan(&self, cursor: u64, take: usize, each: &mut dyn FnMut(&[u8], Record)) -> u64 {
        let one = &mut |id: &[u8], entry: Entry<S>| each(id, self.rules.record(entry.score, entry.stamp));
        self.order.scan(cursor, take, one)
    }
    fn ranked(&self, player: &PlayerId) -> Option<Ranked> {
        self.rules.ranked(self.order, player)
    }
    fn rank_of(&self, player: &PlayerId, record: &Record) -> u64 {
        self.rules.rank_of(self.order, player, record)
    }
    fn page(&self, query: &PageQuery) -> Page {
        self.rules.page(self.order, query)
    }
    fn around(&self, player: &PlayerId, above: usize, below: usize) -> Option<Page> {
        self.rules.around(self.order, player, above, below)
    }
    fn among(&self, players: &[PlayerId]) -> Among {
        self.rules.among(self.order, players)
    }
}
