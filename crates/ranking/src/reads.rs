//! All queries of a window, wherever its ranking is.
//!
//! Listeners query [`Reads`]: ranks and pages for leaderboards, positions and entry ranges for protocols that show a
//! board as a sorted set. A locked tree answers it, and so do the blocks of a closed period. Both do so through
//! `rules`, so each answer is computed in one way.

use crate::page::{Among, Page, PageQuery, Ranked};
use crate::rules::{Normal, Rules};
use crate::sorted::Sorted;
use std::marker::PhantomData;
use tally_index::Entry;
use tally_rules::{PlayerId, Record};

/// Queries of one ranking. Positions begin at 0, the best first.
pub trait Reads {
    /// The number of players.
    fn total(&self) -> u64;
    /// A player's record. Ids are bytes as they came; an invalid one has no record.
    fn record(&self, player: &[u8]) -> Option<Record>;
    /// A player's record and position.
    fn find(&self, player: &[u8]) -> Option<(Record, u64)>;
    /// The positions `from..to` with scores from `min` to `max`, both inclusive, as values of the board.
    fn score_places(&self, min: Option<i64>, max: Option<i64>) -> (u64, u64);
    /// The number of entries, from the best, before the first that is not `before`, which must agree with the order.
    fn partition(&self, before: &dyn Fn(&[u8]) -> bool) -> u64;
    /// At most `take` entries from a position on, towards worse or towards better.
    fn visit(&self, from: u64, take: usize, towards_better: bool, each: &mut dyn FnMut(&[u8], Record));
    /// Some entries from a cursor on, 0 the first. Returns the next cursor, 0 at the end. A player with an entry from
    /// the first call to the last is visited, even if its score changes.
    fn scan(&self, cursor: u64, take: usize, each: &mut dyn FnMut(&[u8], Record)) -> u64;
    /// A player's rank and percentile, with its record.
    fn ranked(&self, player: &PlayerId) -> Option<Ranked>;
    /// The rank that a record of this player has or would have among the others.
    fn rank_of(&self, player: &PlayerId, record: &Record) -> u64;
    /// An entry range of the ranking.
    fn page(&self, query: &PageQuery) -> Page;
    /// The entries around a player, its own among them, clipped at the ends.
    fn around(&self, player: &PlayerId, above: usize, below: usize) -> Option<Page>;
    /// These players ranked among each other, each counted once.
    fn among(&self, players: &[PlayerId]) -> Among;
}

/// A ranking with the rules of its board.
pub(crate) struct Ruled<'a, S, O> {
    rules: &'a Rules,
    sorted: &'a O,
    score: PhantomData<S>,
}

impl<'a, S: Normal, O: Sorted<S>> Ruled<'a, S, O> {
    pub(crate) fn new(rules: &'a Rules, sorted: &'a O) -> Self {
        Self { rules, sorted, score: PhantomData }
    }
}

impl<S: Normal, O: Sorted<S>> Reads for Ruled<'_, S, O> {
    fn total(&self) -> u64 {
        self.sorted.len()
    }
    fn record(&self, player: &[u8]) -> Option<Record> {
        let entry = self.sorted.get(player)?;
        Some(self.rules.record(entry.score, entry.stamp))
    }
    fn find(&self, player: &[u8]) -> Option<(Record, u64)> {
        let (entry, place) = self.sorted.find(player)?;
        Some((self.rules.record(entry.score, entry.stamp), place))
    }
    fn score_places(&self, min: Option<i64>, max: Option<i64>) -> (u64, u64) {
        self.rules.bounds(self.sorted, min, max)
    }
    fn partition(&self, before: &dyn Fn(&[u8]) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.sorted.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let mut is_before = false;
            self.sorted.visit(middle, 1, false, &mut |id, _| is_before = before(id));
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
        self.sorted.visit(from, take, towards_better, one);
    }
    fn scan(&self, cursor: u64, take: usize, each: &mut dyn FnMut(&[u8], Record)) -> u64 {
        let one = &mut |id: &[u8], entry: Entry<S>| each(id, self.rules.record(entry.score, entry.stamp));
        self.sorted.scan(cursor, take, one)
    }
    fn ranked(&self, player: &PlayerId) -> Option<Ranked> {
        self.rules.ranked(self.sorted, player)
    }
    fn rank_of(&self, player: &PlayerId, record: &Record) -> u64 {
        self.rules.rank_of(self.sorted, player, record)
    }
    fn page(&self, query: &PageQuery) -> Page {
        self.rules.page(self.sorted, query)
    }
    fn around(&self, player: &PlayerId, above: usize, below: usize) -> Option<Page> {
        self.rules.around(self.sorted, player, above, below)
    }
    fn among(&self, players: &[PlayerId]) -> Among {
        self.rules.among(self.sorted, players)
    }
}
