//! Entry ranges of the ranking: pages from either end, around a player, and range scans.
//!
//! A bound or a cursor is a key, and a key cuts every partition by itself. Such a page is one round: each partition
//! returns its entries, and the merge is a sort. Only an offset far from the edge takes a k-way selection first, see
//! `select`. Ranks are those of `rules`. A shared rank is queried for the first entry alone; the others follow from the
//! positions where the score changes.

use super::RankingError;
use super::lookups::Count;
use super::member_codec::end_of_prefix;
use super::queries::{Between, EntryRange, Mode, PartitionQuery, PlayerFields};
use super::reply;
use super::select::select;
use super::window::RedisWindow;
use crate::page::{Edge, Page, PageQuery, PageStart, RankedEntry};
use tally_rules::definition::{Order, Ranking};
use tally_rules::{PlayerId, Record};

/// Up to this distance every partition returns all entries from the edge, which saves a selection.
const NEAR: u64 = 256;
/// Entries of one request of a range scan.
const WALK_AT_ONCE: usize = 2_000;
/// Maximum attempts to find a player that moves between two rounds.
const TRIES: usize = 3;

/// Where an entry range begins.
#[derive(Clone, Copy, Debug)]
enum From {
    /// This many entries from the edge of what is between the bounds.
    Edge(u64),
    /// At this position.
    Place(u64),
}

/// An entry range over all partitions.
#[derive(Debug, Default)]
struct MergedRange {
    total: u64,
    /// The positions between the bounds.
    from: u64,
    to: u64,
    /// The position of the first member.
    start: u64,
    /// The count for a shared rank of the first member.
    shared: u64,
    /// Best first.
    members: Vec<Vec<u8>>,
}

impl RedisWindow {
    pub(super) fn page(&self, query: &PageQuery) -> Result<Page, RankingError> {
        let mut between = self.between(query.min, query.max);
        let skip = match &query.start {
            PageStart::Edge => 0,
            PageStart::Offset(offset) => *offset,
            PageStart::After(record, player) => {
                match query.edge {
                    Edge::Best => {
                        let upper = Some(self.codec().upper(player, record));
                        between.low = between.low.max(upper);
                    }
                    Edge::Worst => {
                        let lower = self.codec().lower(player, record);
                        let high = between.high.take();
                        between.high = Some(high.map_or(lower.clone(), |high| high.min(lower)));
                    }
                }
                0
            }
        };
        let cut = self.cut(&between, query.edge, From::Edge(skip), query.limit, true)?;
        let left = cut.to.saturating_sub(cut.from).saturating_sub(skip);
        let more = (cut.members.len() as u64) < left;
        let mut entries = self.places(&cut)?;
        if query.edge == Edge::Worst {
            entries.reverse();
        }
        Ok(Page { total: cut.total, entries, more })
    }

    /// The positions with these scores, in one round trip.
    pub(super) fn score_places(
        &self,
        min: Option<i64>,
        max: Option<i64>,
    ) -> Result<(u64, u64), RankingError> {
        let cut = self.cut(&self.between(min, max), Edge::Best, From::Edge(0), 0, false)?;
        Ok((cut.from, cut.to))
    }

    pub(super) fn around(
        &self,
        player: &PlayerId,
        above: usize,
        below: usize,
    ) -> Result<Option<Page>, RankingError> {
        let cut = if self.is_split() {
            self.around_in_all(player, above, below)?
        } else {
            let mode =
                Mode::Player { field: self.codec().field(player), above, below: below.saturating_add(1) };
            let range = self.entry_ranges(&Between::default(), &[mode], true)?.pop().flatten();
            range.map(MergedRange::from)
        };
        let Some(cut) = cut else { return Ok(None) };
        Ok(Some(Page { total: cut.total, entries: self.places(&cut)?, more: false }))
    }

    pub(super) fn visit(
        &self,
        from: u64,
        take: usize,
        towards_better: bool,
        each: &mut dyn FnMut(&[u8], Record),
    ) -> Result<(), RankingError> {
        let edge = if towards_better { Edge::Worst } else { Edge::Best };
        let (mut between, mut start, mut left) = (Between::default(), From::Place(from), take);
        while left > 0 {
            let some = left.min(WALK_AT_ONCE);
            let mut cut = self.cut(&between, edge, start, some, false)?;
            if towards_better {
                cut.members.reverse();
            }
            for member in &cut.members {
                let (player, record) = self.decoded(member)?;
                each(player.as_bytes(), record);
            }
            left -= some;
            // Continues at the last key: players that move meanwhile do not shift it.
            let Some(last) = cut.members.pop().filter(|_| cut.members.len() + 1 == some) else { break };
            start = From::Edge(0);
            between = match edge {
                Edge::Best => Between { low: Some([last.as_slice(), &[0]].concat()), high: None },
                Edge::Worst => Between { low: None, high: Some(last) },
            };
        }
        Ok(())
    }

    /// The bounds of a range of scores.
    fn between(&self, min: Option<i64>, max: Option<i64>) -> Between {
        let (best, worst) = match self.codec().order() {
            Order::Descending => (max, min),
            Order::Ascending => (min, max),
        };
        let prefix = |score| self.codec().score_prefix(score);
        Between { low: best.map(prefix), high: worst.map(|score| end_of_prefix(&prefix(score))) }
    }

    fn cut(
        &self,
        between: &Between,
        edge: Edge,
        start: From,
        take: usize,
        ranked: bool,
    ) -> Result<MergedRange, RankingError> {
        if !self.is_split() {
            let mode = match (edge, start) {
                (Edge::Best, From::Edge(skip) | From::Place(skip)) => Mode::Best { skip, take },
                (Edge::Worst, From::Edge(skip)) => Mode::Worst { skip, take },
                (Edge::Worst, From::Place(from)) => Mode::Up { from, take },
            };
            let range = self.entry_ranges(between, &[mode], ranked)?.pop().flatten();
            return range.map(MergedRange::from).ok_or_else(|| reply::strange("no entry range"));
        }
        let mut cut = match (edge, start) {
            (_, From::Edge(skip)) | (Edge::Best, From::Place(skip))
                if skip == 0 || skip.saturating_add(take as u64) <= NEAR =>
            {
                self.cut_near(between, edge, skip, take)?
            }
            _ => self.cut_deep(between, edge, start, take)?,
        };
        if ranked {
            cut.shared = self.shared_of(&cut)?;
        }
        Ok(cut)
    }

    /// Near the edge: each partition returns all entries from the edge.
    fn cut_near(
        &self,
        between: &Between,
        edge: Edge,
        skip: u64,
        take: usize,
    ) -> Result<MergedRange, RankingError> {
        let skipped = usize::try_from(skip).unwrap_or(usize::MAX);
        let all = skipped.saturating_add(take);
        let mode = match edge {
            Edge::Best => Mode::Best { skip: 0, take: all },
            Edge::Worst => Mode::Worst { skip: 0, take: all },
        };
        let mut cut = self.merged(between, &vec![mode; self.partitions()])?;
        let there = cut.members.len();
        match edge {
            Edge::Best => {
                cut.members = cut.members.into_iter().skip(skipped).take(take).collect();
                cut.start = cut.from.saturating_add(skip);
            }
            Edge::Worst => {
                cut.members.truncate(there.saturating_sub(skipped));
                cut.members.drain(..cut.members.len().saturating_sub(take));
                cut.start = cut.to.saturating_sub(skip).saturating_sub(cut.members.len() as u64);
            }
        }
        Ok(cut)
    }

    /// Far from the edge: a selection first finds the cut of each partition.
    fn cut_deep(
        &self,
        between: &Between,
        edge: Edge,
        start: From,
        take: usize,
    ) -> Result<MergedRange, RankingError> {
        let nothing = Mode::Best { skip: 0, take: 0 };
        let ends = self.entry_ranges(between, &vec![nothing.clone(); self.partitions()], false)?;
        let ends: Vec<(u64, u64)> =
            ends.into_iter().flatten().map(|one| (one.from, one.to.max(one.from))).collect();
        let (from, to) = ends.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        // The number of entries before the cut.
        let before = match (edge, start) {
            (Edge::Best, From::Edge(skip) | From::Place(skip)) => from.saturating_add(skip).min(to),
            (Edge::Worst, From::Edge(skip)) => to.saturating_sub(skip).max(from),
            (Edge::Worst, From::Place(place)) => place.saturating_add(1).min(to),
        };
        let cuts = select(&ends, before, |places| self.probe(places))?;
        let one = |cut: &u64| match (edge, cut.checked_sub(1)) {
            (Edge::Best, _) => Mode::Best { skip: *cut, take },
            (Edge::Worst, Some(last)) => Mode::Up { from: last, take },
            (Edge::Worst, None) => nothing.clone(),
        };
        let mut cut = self.merged(&Between::default(), &cuts.iter().map(one).collect::<Vec<_>>())?;
        (cut.from, cut.to) = (from, to);
        match edge {
            Edge::Best => {
                cut.members.truncate(take.min(usize::try_from(to - before).unwrap_or(usize::MAX)));
                cut.start = before;
            }
            Edge::Worst => {
                let take = take.min(usize::try_from(before - from).unwrap_or(usize::MAX));
                cut.members.drain(..cut.members.len().saturating_sub(take));
                cut.start = before.saturating_sub(cut.members.len() as u64);
            }
        }
        Ok(cut)
    }

    /// An entry range of each partition, merged.
    fn merged(&self, between: &Between, modes: &[Mode]) -> Result<MergedRange, RankingError> {
        let mut cut = MergedRange::default();
        for range in self.entry_ranges(between, modes, false)?.into_iter().flatten() {
            cut.total += range.total;
            cut.from += range.from;
            cut.to += range.to;
            cut.members.extend(range.members);
        }
        cut.members.sort_unstable();
        Ok(cut)
    }

    /// Around a player of a partitioned window: first the key, then its neighbours in every partition.
    fn around_in_all(
        &self,
        player: &PlayerId,
        above: usize,
        below: usize,
    ) -> Result<Option<MergedRange>, RankingError> {
        let mut found = None;
        for _ in 0..TRIES {
            let Some(member) = self.present(player)? else { return Ok(None) };
            let between = Between { low: Some(member.clone()), high: None };
            let mode = Mode::Near { above, below: below.saturating_add(1) };
            let mut cut = self.merged(&between, &vec![mode; self.partitions()])?;
            let before = cut.members.partition_point(|other| *other < member);
            let there = cut.members.get(before) == Some(&member);
            cut.members.truncate(before.saturating_add(below).saturating_add(1));
            cut.members.drain(..before.saturating_sub(above));
            cut.start = cut.from - before.min(above) as u64;
            found = Some(cut);
            if there {
                break;
            }
        }
        let Some(mut cut) = found else { return Ok(None) };
        cut.shared = self.shared_of(&cut)?;
        Ok(Some(cut))
    }

    /// The count for a shared rank of the first member of a merged range.
    fn shared_of(&self, cut: &MergedRange) -> Result<u64, RankingError> {
        let first = cut.members.first().filter(|_| self.ranking() == Ranking::Competition && cut.start > 0);
        let Some(first) = first else { return Ok(0) };
        let query =
            PartitionQuery { bounds: vec![self.bound(first, Count::Ahead)], ..PartitionQuery::default() };
        Ok(self
            .query_everywhere(&query, PlayerFields::Record)?
            .iter()
            .flat_map(|answer| &answer.counts)
            .sum())
    }

    /// Adds ranks to an entry range.
    fn places(&self, cut: &MergedRange) -> Result<Vec<RankedEntry>, RankingError> {
        let (mut place, mut shared) = (cut.start, cut.shared);
        let mut last: Option<&[u8]> = None;
        let mut places = Vec::with_capacity(cut.members.len());
        for member in &cut.members {
            let score = self.codec().score_of(member);
            if last.is_some_and(|last| last != score) {
                shared = if self.ranking() == Ranking::Dense { shared + 1 } else { place };
            }
            last = Some(score);
            let ahead = if self.ranking() == Ranking::Ordinal { place } else { shared };
            let (player, record) = self.decoded(member)?;
            places.push(RankedEntry { rank: ahead + 1, player, record });
            place += 1;
        }
        Ok(places)
    }
}

impl std::convert::From<EntryRange> for MergedRange {
    fn from(one: EntryRange) -> Self {
        let EntryRange { total, from, to, start, shared, members } = one;
        Self { total, from, to, start, shared, members }
    }
}
