//! Lookups of ranks: of one player, of several among each other, or of one in each of several windows.
//!
//! In a window of one partition, one lookup returns everything. In a partitioned window, a lookup in the player's
//! partition returns the key, and a second round counts the entries before it in every partition. Other players may
//! move between the rounds. So the answer is that of no single instant, but no player is counted twice.

use super::RankingError;
use super::client::{Redis, Request};
use super::queries::{Answer, HashEntry, PartitionQuery, PlayerFields, RankedMember};
use super::reply;
use super::window::RedisWindow;
use crate::page::{Among, Ranked, RankedEntry};
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::definition::Ranking;
use tally_rules::rank::{self, RankCounts};
use tally_rules::{PlayerId, Record};

/// Players or bounds of one request. A larger one would delay other requests in Redis.
const AT_ONCE: usize = 100;

/// A player in a window.
type Item<'a> = (&'a RedisWindow, &'a PlayerId);

/// The member of a player, with its counts.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    pub(super) member: Vec<u8>,
    pub(super) counts: RankCounts,
    pub(super) total: u64,
}

type Lookups = Vec<Result<Option<Lookup>, RankingError>>;

/// What the second round counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// The entries that a rank counts.
    Ahead,
    /// All entries before.
    Before,
}

pub(super) fn ranks(redis: &Redis, items: &[Item<'_>]) -> Vec<Result<Option<Ranked>, RankingError>> {
    let ranked = |(window, _): &Item<'_>, lookup: Lookup| {
        let (_, record) = window.decoded(&lookup.member)?;
        let (ranking, counts, total) = (window.ranking(), lookup.counts, lookup.total);
        let percentile = rank::percentile(ranking, counts, total);
        Ok(Ranked { rank: rank::rank(ranking, counts), record, total, percentile })
    };
    let found = look_up(redis, items, Count::Ahead);
    items.iter().zip(found).map(|(item, found)| found?.map(|found| ranked(item, found)).transpose()).collect()
}

/// Looks up each item in one round trip, or two if a window is partitioned.
pub(super) fn look_up(redis: &Redis, items: &[Item<'_>], count: Count) -> Lookups {
    let mut first = first_round(redis, items, count);
    let mut all: Lookups = first
        .iter_mut()
        .map(|found| {
            let (total, seen) = std::mem::replace(found, Ok((0, None)))?;
            Ok(seen.map(|seen| {
                let counts =
                    RankCounts { before: seen.place, better: seen.better, distinct_better: seen.distinct };
                Lookup { member: seen.member, counts, total }
            }))
        })
        .collect();
    second_round(redis, items, count, &mut all);
    for lookup in all.iter_mut().flatten().flatten() {
        // Other players may be removed between the rounds.
        lookup.total = lookup.total.max(lookup.counts.before.max(lookup.counts.better) + 1);
    }
    all
}

/// Looks up every player. Returns the total of the partition with each.
fn first_round(
    redis: &Redis,
    items: &[Item<'_>],
    count: Count,
) -> Vec<Result<(u64, Option<RankedMember>), RankingError>> {
    let mut by_place: BTreeMap<(*const (), usize), Vec<usize>> = BTreeMap::new();
    for (at, (window, player)) in items.iter().enumerate() {
        by_place.entry((window.identity(), window.partition_of(player))).or_default().push(at);
    }
    let mut queries: Vec<(PartitionQuery, PlayerFields, Vec<usize>)> = Vec::new();
    for ((_, partition), indexes) in by_place {
        for some in indexes.chunks(AT_ONCE) {
            let window = items[some[0]].0;
            let want = match count {
                _ if window.is_split() => PlayerFields::Record,
                Count::Ahead => PlayerFields::Counts(window.ranking()),
                Count::Before => PlayerFields::Place,
            };
            let players = some.iter().map(|at| window.codec().field(items[*at].1)).collect();
            queries.push((
                PartitionQuery { partition, players, ..PartitionQuery::default() },
                want,
                some.to_vec(),
            ));
        }
    }
    let requests: Vec<Request> = queries
        .iter()
        .map(|(query, want, indexes)| items[indexes[0]].0.query_request(query, *want))
        .collect();
    let mut all: Vec<_> = items.iter().map(|_| Err(RankingError::Lost)).collect();
    for ((query, want, indexes), value) in queries.iter().zip(redis.all(&requests)) {
        let answer = value.and_then(|value| items[indexes[0]].0.answer(query, *want, value));
        match answer {
            Ok(answer) => {
                for (at, found) in indexes.iter().zip(answer.players) {
                    all[*at] = found.map(|found| (answer.total, found.and_then(|found| found.seen)));
                }
            }
            Err(error) => indexes.iter().for_each(|at| all[*at] = Err(error.clone())),
        }
    }
    all
}

/// Counts the entries before each player that was found in a partitioned window, in all of its partitions.
fn second_round(redis: &Redis, items: &[Item<'_>], count: Count, all: &mut Lookups) {
    let mut by_window: BTreeMap<*const (), Vec<usize>> = BTreeMap::new();
    for (at, (window, _)) in items.iter().enumerate() {
        if window.is_split() && matches!(all[at], Ok(Some(_))) {
            by_window.entry(window.identity()).or_default().push(at);
        }
    }
    let mut queries: Vec<(PartitionQuery, &[usize])> = Vec::new();
    for indexes in by_window.values() {
        let window = items[indexes[0]].0;
        for some in indexes.chunks(AT_ONCE) {
            let bounds: Vec<Vec<u8>> = some
                .iter()
                .filter_map(|at| Some(window.bound(&all[*at].as_ref().ok()?.as_ref()?.member, count)))
                .collect();
            let query =
                |partition| PartitionQuery { partition, bounds: bounds.clone(), ..PartitionQuery::default() };
            queries.extend((0..window.partitions()).map(|partition| (query(partition), some)));
        }
    }
    let requests: Vec<Request> = queries
        .iter()
        .map(|(query, indexes)| items[indexes[0]].0.query_request(query, PlayerFields::Record))
        .collect();
    for ((query, indexes), value) in queries.iter().zip(redis.all(&requests)) {
        let window = items[indexes[0]].0;
        let answer = value.and_then(|value| window.answer(query, PlayerFields::Record, value));
        for (nth, at) in indexes.iter().enumerate() {
            let Ok(Some(lookup)) = &mut all[*at] else { continue };
            match &answer {
                Ok(answer) => {
                    // The first partition's answer begins the sums.
                    let begun = if query.partition == 0 { 0 } else { lookup.total };
                    lookup.total = begun + answer.total;
                    let counts = &mut lookup.counts;
                    match (count, window.ranking()) {
                        (Count::Ahead, Ranking::Competition) => counts.better += answer.counts[nth],
                        _ => counts.before += answer.counts[nth],
                    }
                }
                Err(error) => all[*at] = Err(error.clone()),
            }
        }
    }
}

impl RedisWindow {
    /// All entries that count as before or ahead of this member are below these bytes.
    pub(super) fn bound(&self, member: &[u8], count: Count) -> Vec<u8> {
        match (count, self.ranking()) {
            (Count::Before, _) | (_, Ranking::Ordinal) => member.to_vec(),
            (Count::Ahead, Ranking::Competition | Ranking::Dense) => self.codec().score_of(member).to_vec(),
        }
    }

    /// The member of a player, if it has an entry.
    pub(super) fn present(&self, player: &PlayerId) -> Result<Option<Vec<u8>>, RankingError> {
        let (partition, field) = self.whereabouts(player);
        let query = PartitionQuery { partition, players: vec![field], ..PartitionQuery::default() };
        let found = only(self.query(&[query], PlayerFields::Record))?.players.pop().unwrap_or(Ok(None))?;
        Ok(found.and_then(|found| found.seen).map(|seen| seen.member))
    }

    pub(super) fn record(&self, player: &PlayerId) -> Result<Option<Record>, RankingError> {
        self.present(player)?.map(|member| Ok(self.decoded(&member)?.1)).transpose()
    }

    pub(super) fn find(&self, player: &PlayerId) -> Result<Option<(Record, u64)>, RankingError> {
        let found = look_up(self.redis(), &[(self, player)], Count::Before).pop().unwrap_or(Ok(None))?;
        found.map(|found| Ok((self.decoded(&found.member)?.1, found.counts.before))).transpose()
    }

    /// The rank that a record of this player has or would have among the others, in one round trip.
    pub(super) fn rank_of(&self, player: &PlayerId, record: &Record) -> Result<u64, RankingError> {
        let (partition, field) = self.whereabouts(player);
        let bound = match self.ranking() {
            Ranking::Ordinal => self.codec().lower(player, record),
            Ranking::Competition | Ranking::Dense => self.codec().score_key(record),
        };
        let dense = self.ranking() == Ranking::Dense;
        let (bounds, distinct) =
            if dense { (vec![], vec![bound.clone()]) } else { (vec![bound.clone()], vec![]) };
        let mut queries: Vec<PartitionQuery> = (0..self.partitions())
            .map(|partition| PartitionQuery {
                partition,
                bounds: bounds.clone(),
                distinct: distinct.clone(),
                ..PartitionQuery::default()
            })
            .collect();
        queries[partition].players.push(field);
        let want = if dense { PlayerFields::Same } else { PlayerFields::Record };
        let mut answers: Vec<Answer> = self.query(&queries, want).into_iter().collect::<Result<_, _>>()?;
        let counted: u64 =
            answers.iter().flat_map(|answer| answer.counts.iter().chain(&answer.distinct)).sum();
        let found: Option<HashEntry> = answers[partition].players.pop().unwrap_or(Ok(None))?;
        // The player's present entry is not one of the others.
        let own = found.and_then(|found| found.seen).is_some_and(|own| match self.ranking() {
            Ranking::Ordinal => own.member < bound,
            Ranking::Competition => self.codec().score_of(&own.member) < bound.as_slice(),
            Ranking::Dense => self.codec().score_of(&own.member) < bound.as_slice() && own.same == 1,
        });
        Ok(1 + counted.saturating_sub(u64::from(own)))
    }

    pub(super) fn among(&self, players: &[PlayerId]) -> Result<Among, RankingError> {
        let mut met = BTreeSet::new();
        let unique: Vec<&PlayerId> = players.iter().filter(|player| met.insert(*player)).collect();
        if unique.is_empty() {
            return Ok(Among { total: self.total()?, entries: Vec::new(), missing: Vec::new() });
        }
        let items: Vec<Item<'_>> = unique.iter().map(|player| (self, *player)).collect();
        let (mut found, mut missing) = (Vec::with_capacity(items.len()), Vec::new());
        for (player, lookup) in unique.iter().zip(look_up(self.redis(), &items, Count::Ahead)) {
            match lookup? {
                Some(lookup) => found.push(lookup),
                None => missing.push((*player).clone()),
            }
        }
        // Members sort like the ranking.
        found.sort_unstable_by(|a, b| a.member.cmp(&b.member));
        let total = match found.iter().map(|lookup| lookup.total).max() {
            Some(total) => total,
            None => self.total()?,
        };
        let mut entries: Vec<(u64, RankedEntry)> = Vec::with_capacity(found.len());
        let (mut better, mut distinct) = (0, 0);
        for (at, lookup) in found.iter().enumerate() {
            let score = |at: usize| self.codec().score_of(&found[at].member);
            if at > 0 && score(at - 1) != score(at) {
                better = at as u64;
                distinct += 1;
            }
            let counts = RankCounts { before: at as u64, better, distinct_better: distinct };
            let (player, record) = self.decoded(&lookup.member)?;
            let overall = RankedEntry { rank: rank::rank(self.ranking(), lookup.counts), player, record };
            entries.push((rank::rank(self.ranking(), counts), overall));
        }
        Ok(Among { total, entries, missing })
    }

    pub(super) fn decoded(&self, member: &[u8]) -> Result<(PlayerId, Record), RankingError> {
        self.codec().decode(member).ok_or_else(|| reply::strange("a member that cannot be decoded"))
    }
}

/// The answer of a query of one partition.
fn only(mut answers: Vec<Result<Answer, RankingError>>) -> Result<Answer, RankingError> {
    answers.pop().unwrap_or(Err(RankingError::Lost))
}
