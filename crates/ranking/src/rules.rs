//! Everything that is computed from a ranking by the rules of its board: ranks, pages, players among each other.
//!
//! It works on a locked tree. Score and subscore are in normal form there, so nothing here depends on a board's
//! directions. Shared ranks are counted only where the score changes.

use crate::archive::ArchiveBlock;
use crate::blocks::{BLOCK_ENTRIES, pack};
use crate::memory::{Published, RankingChange};
use crate::page::{Among, Edge, Page, PageQuery, PageStart, Ranked, RankedEntry};
use crate::sorted::{Item, Sorted};
use std::collections::BTreeSet;
use tally_index::{Entry, RankingIndex, Score, Tie};
use tally_rules::definition::{Definition, Ranking, Ties};
use tally_rules::rank::{self, RankCounts};
use tally_rules::{Micros, PlayerId, Record, order_key};

/// The definition as a ranking needs it.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) definition: Definition,
}

/// A tree's score as score and subscore in normal form.
pub(crate) trait Normal: Score {
    fn of(normal: [i64; 2]) -> Self;
    fn parts(self) -> [i64; 2];
    /// The first and the last score with this first half.
    fn span(first: i64) -> (Self, Self);
}

impl Normal for i64 {
    fn of(normal: [i64; 2]) -> Self {
        normal[0]
    }
    fn parts(self) -> [i64; 2] {
        [self, 0]
    }
    fn span(first: i64) -> (Self, Self) {
        (first, first)
    }
}

impl Normal for [i64; 2] {
    fn of(normal: [i64; 2]) -> Self {
        normal
    }
    fn parts(self) -> [i64; 2] {
        self
    }
    fn span(first: i64) -> (Self, Self) {
        ([first, i64::MIN], [first, i64::MAX])
    }
}

impl Rules {
    pub(crate) fn new(definition: &Definition) -> Self {
        Self { definition: definition.clone() }
    }

    pub(crate) fn tie(&self) -> Tie {
        match self.definition.ties {
            Ties::First => Tie::StampAscending,
            Ties::Last => Tie::StampDescending,
            Ties::Player => Tie::Id,
            Ties::PlayerReversed => Tie::IdReversed,
        }
    }

    pub(crate) fn dense(&self) -> bool {
        self.definition.ranking == Ranking::Dense
    }

    pub(crate) fn entry<S: Normal>(&self, record: &Record) -> Entry<S> {
        Entry { score: S::of(order_key::normal(&self.definition, record)), stamp: record.at.0 }
    }

    /// Whether two entries of one player have the same key. The instant counts only if it decides ties.
    fn same_key<S: Normal>(&self, left: &Entry<S>, right: &Entry<S>) -> bool {
        let timed = matches!(self.definition.ties, Ties::First | Ties::Last);
        left.score == right.score && (!timed || left.stamp == right.stamp)
    }

    pub(crate) fn record<S: Normal>(&self, score: S, stamp: i64) -> Record {
        let (score, subscore) = order_key::from_normal(&self.definition, score.parts());
        Record { score, subscore, at: Micros(stamp) }
    }

    pub(crate) fn publish<S: Normal>(
        &self,
        sorted: &mut RankingIndex<S>,
        change: &RankingChange,
    ) -> Published {
        let id = change.player.as_bytes();
        let present: Option<(Entry<S>, u64)> = sorted.find(id);
        let before = present.map(|(entry, place)| self.rank_at(sorted, &entry, place));
        if let (Some(record), Some((now, _))) = (&change.record, present)
            && self.entry::<S>(record) == now
        {
            return Published { before, after: before };
        }
        self.place(sorted, change);
        let after = sorted.find(id).map(|(entry, place)| self.rank_at(sorted, &entry, place));
        Published { before, after }
    }

    /// Reads players' records in order.
    pub(crate) fn records<S: Normal>(
        &self,
        sorted: &RankingIndex<S>,
        players: &[&PlayerId],
        each: &mut impl FnMut(Option<Record>),
    ) {
        let ids: Vec<&[u8]> = players.iter().map(|player| player.as_bytes()).collect();
        for entry in sorted.get_many(&ids) {
            each(entry.map(|entry| self.record(entry.score, entry.stamp)));
        }
    }

    /// Prefetches what publishing these changes will read.
    pub(crate) fn warm<S: Normal>(&self, sorted: &RankingIndex<S>, changes: &[RankingChange]) {
        let ids: Vec<&[u8]> = changes.iter().map(|moved| moved.player.as_bytes()).collect();
        let scores = changes.iter().filter_map(|moved| moved.record.as_ref());
        let scores: Vec<S> = scores.map(|record| self.entry(record).score).collect();
        sorted.warm(&ids, &scores);
    }

    /// Publishes a change without ranks.
    pub(crate) fn place<S: Normal>(&self, sorted: &mut RankingIndex<S>, change: &RankingChange) {
        let id = change.player.as_bytes();
        match &change.record {
            Some(record) => sorted.set(id, self.entry(record)),
            None => sorted.remove(id),
        };
    }

    pub(crate) fn counts<S: Normal>(
        &self,
        sorted: &impl Sorted<S>,
        entry: &Entry<S>,
        before: u64,
    ) -> RankCounts {
        match self.definition.ranking {
            Ranking::Ordinal => RankCounts { before, better: 0, distinct_better: 0 },
            Ranking::Competition => {
                RankCounts { before, better: sorted.count_better(entry.score), distinct_better: 0 }
            }
            Ranking::Dense => RankCounts {
                before,
                better: sorted.count_better(entry.score),
                distinct_better: sorted.count_distinct_better(entry.score),
            },
        }
    }

    /// The rank of an entry at this position.
    fn rank_at<S: Normal>(&self, sorted: &impl Sorted<S>, entry: &Entry<S>, place: u64) -> u64 {
        1 + match self.definition.ranking {
            Ranking::Ordinal => place,
            Ranking::Competition => sorted.count_better(entry.score),
            Ranking::Dense => sorted.count_distinct_better(entry.score),
        }
    }

    pub(crate) fn rank_of<S: Normal>(
        &self,
        sorted: &impl Sorted<S>,
        player: &PlayerId,
        record: &Record,
    ) -> u64 {
        let entry: Entry<S> = self.entry(record);
        // The player's present entry is not one of the others.
        let own = sorted.find(player.as_bytes());
        let better = own.map(|(own, _)| own.score).filter(|own| *own < entry.score);
        let (counted, own) = match self.definition.ranking {
            Ranking::Competition => (sorted.count_better(entry.score), better.is_some()),
            Ranking::Dense => {
                let alone = |own| sorted.count_at_least(own) == sorted.count_better(own) + 1;
                (sorted.count_distinct_better(entry.score), better.is_some_and(alone))
            }
            Ranking::Ordinal => {
                let before = sorted.lower_bound(&entry, player.as_bytes());
                (before, own.is_some_and(|(_, own)| own < before))
            }
        };
        // A ranking that fails while it is read counts nothing, and no caller sees the answer.
        1 + counted.saturating_sub(u64::from(own))
    }

    pub(crate) fn page<S: Normal>(&self, sorted: &impl Sorted<S>, query: &PageQuery) -> Page {
        let (from, to) = self.bounds(sorted, query.min, query.max);
        let (from, to) = match (&query.start, query.edge) {
            (PageStart::Edge, _) => (from, to),
            (PageStart::Offset(offset), Edge::Best) => (from.saturating_add(*offset), to),
            (PageStart::Offset(offset), Edge::Worst) => (from, to.saturating_sub(*offset)),
            (PageStart::After(record, player), edge) => {
                let entry: Entry<S> = self.entry(record);
                let place = sorted.lower_bound(&entry, player.as_bytes());
                let unmoved =
                    sorted.find(player.as_bytes()).is_some_and(|(now, _)| self.same_key(&now, &entry));
                match edge {
                    Edge::Best => (from.max(place + u64::from(unmoved)), to),
                    Edge::Worst => (from, to.min(place)),
                }
            }
        };
        self.entry_range(sorted, query.edge, from, to, query.limit)
    }

    /// The archive block that begins at a position.
    pub(crate) fn block<S: Normal>(&self, sorted: &RankingIndex<S>, from: u64) -> ArchiveBlock {
        let items = Sorted::items_from(sorted, from, BLOCK_ENTRIES, false);
        let Some(first) = items.first().map(|item| item.entry.score) else { return ArchiveBlock::default() };
        let distinct_better = match self.definition.ranking {
            Ranking::Dense => sorted.count_distinct_better(first),
            Ranking::Ordinal | Ranking::Competition => 0,
        };
        let entry = |item: &Item<S>| (item.player.clone(), self.record(item.entry.score, item.entry.stamp));
        let entries: Vec<_> = items.iter().map(entry).collect();
        ArchiveBlock { distinct_better, entries: pack(&entries) }
    }

    pub(crate) fn ranked<S: Normal>(&self, sorted: &impl Sorted<S>, player: &PlayerId) -> Option<Ranked> {
        let (entry, before) = sorted.find(player.as_bytes())?;
        let counts = self.counts(sorted, &entry, before);
        let (ranking, total) = (self.definition.ranking, sorted.len());
        Some(Ranked {
            rank: rank::rank(ranking, counts),
            record: self.record(entry.score, entry.stamp),
            total,
            percentile: rank::percentile(ranking, counts, total),
        })
    }

    pub(crate) fn around<S: Normal>(
        &self,
        sorted: &impl Sorted<S>,
        player: &PlayerId,
        above: usize,
        below: usize,
    ) -> Option<Page> {
        let (_, place) = sorted.find(player.as_bytes())?;
        let from = place.saturating_sub(above as u64);
        let to = (place + below as u64 + 1).min(sorted.len());
        Some(self.entry_range(sorted, Edge::Best, from, to, usize::MAX))
    }

    pub(crate) fn among<S: Normal>(&self, sorted: &impl Sorted<S>, players: &[PlayerId]) -> Among {
        let mut seen = BTreeSet::new();
        let (mut found, mut missing) = (Vec::with_capacity(players.len()), Vec::new());
        for player in players.iter().filter(|player| seen.insert(*player)) {
            match sorted.find(player.as_bytes()) {
                Some((entry, place)) => found.push((place, entry, player)),
                None => missing.push(player.clone()),
            }
        }
        found.sort_unstable_by_key(|(place, _, _)| *place);
        let mut entries: Vec<(u64, RankedEntry)> = Vec::with_capacity(found.len());
        let (mut better, mut distinct) = (0, 0);
        for (at, (place, entry, player)) in found.iter().enumerate() {
            if at > 0 && found[at - 1].1.score != entry.score {
                better = at as u64;
                distinct += 1;
            }
            let counts = RankCounts { before: at as u64, better, distinct_better: distinct };
            let overall = RankedEntry {
                rank: self.rank_at(sorted, entry, *place),
                player: (*player).clone(),
                record: self.record(entry.score, entry.stamp),
            };
            entries.push((rank::rank(self.definition.ranking, counts), overall));
        }
        Among { total: sorted.len(), entries, missing }
    }

    /// The positions with scores from `min` to `max`.
    pub(crate) fn bounds<S: Normal>(
        &self,
        sorted: &impl Sorted<S>,
        min: Option<i64>,
        max: Option<i64>,
    ) -> (u64, u64) {
        let normal = |score: i64| order_key::directed(self.definition.order, score);
        let (a, b) = (min.map(normal), max.map(normal));
        let (best, worst) = match self.definition.order {
            tally_rules::definition::Order::Descending => (b, a),
            tally_rules::definition::Order::Ascending => (a, b),
        };
        let from = best.map_or(0, |first| sorted.count_better(S::span(first).0));
        let to = worst.map_or(sorted.len(), |last| sorted.count_at_least(S::span(last).1));
        (from, to)
    }

    /// Entries at the positions `from..to`, seen from an edge, at most `limit`.
    pub(crate) fn entry_range<S: Normal>(
        &self,
        sorted: &impl Sorted<S>,
        edge: Edge,
        from: u64,
        to: u64,
        limit: usize,
    ) -> Page {
        let total = sorted.len();
        if from >= to {
            return Page { total, entries: Vec::new(), more: false };
        }
        let take = usize::try_from(to - from).unwrap_or(usize::MAX).min(limit);
        let entries = match edge {
            Edge::Best => self.places(sorted, sorted.items_from(from, take, false), from, 1),
            Edge::Worst => self.places(sorted, sorted.items_from(to - 1, take, true), to - 1, -1),
        };
        Page { total, more: (take as u64) < to - from, entries }
    }

    /// Adds ranks to a range scan. Shared ranks are counted only where the score changes.
    fn places<S: Normal>(
        &self,
        sorted: &impl Sorted<S>,
        items: Vec<Item<S>>,
        first: u64,
        step: i64,
    ) -> Vec<RankedEntry> {
        let mut shared: Option<(S, u64)> = None;
        let mut place = first;
        let mut places = Vec::with_capacity(items.len());
        for item in items {
            let score = item.entry.score;
            let rank = match (self.definition.ranking, shared) {
                (Ranking::Ordinal, _) => place + 1,
                (_, Some((before, rank))) if before == score => rank,
                (Ranking::Competition, _) => sorted.count_better(score) + 1,
                (Ranking::Dense, _) => sorted.count_distinct_better(score) + 1,
            };
            shared = Some((score, rank));
            places.push(RankedEntry {
                rank,
                player: item.player,
                record: self.record(score, item.entry.stamp),
            });
            place = place.saturating_add_signed(step);
        }
        places
    }
}
