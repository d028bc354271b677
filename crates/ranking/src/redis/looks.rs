//! Where players stand: one, several among each other, or one in each of several parts.
//!
//! Where a part is one partition a look tells everything. Where it is split, a look at the player's own partition tells
//! the key, and a second round asks every partition how many stand before it. Between the two others may move: the answer
//! is that of no single instant, but nobody is counted twice.

use super::RankingError;
use super::asks::{Answer, Ask, Look, Seen, Want};
use super::client::{Redis, Request};
use super::part::RedisWindow;
use super::reply;
use crate::page::{Among, Ranked, RankedEntry};
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::definition::Ranking;
use tally_rules::rank::{self, Counts};
use tally_rules::{PlayerId, Record};

/// Players or bounds of one request: a larger one would keep others waiting in Redis.
const AT_ONCE: usize = 100;

/// A player in a part.
type Item<'a> = (&'a RedisWindow, &'a PlayerId);

/// Where a player stands.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    pub(super) member: Vec<u8>,
    pub(super) counts: Counts,
    pub(super) total: u64,
}

type Looked = Vec<Result<Option<Lookup>, RankingError>>;

/// What the second round is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// What a rank counts.
    Ahead,
    /// Everybody before.
    Before,
}

pub(super) fn ranks(redis: &Redis, items: &[Item<'_>]) -> Vec<Result<Option<Ranked>, RankingError>> {
    let ranked = |(part, _): &Item<'_>, standing: Lookup| {
        let (_, record) = part.decoded(&standing.member)?;
        let (ranking, counts, total) = (part.ranking(), standing.counts, standing.total);
        let percentile = rank::percentile(ranking, counts, total);
        Ok(Ranked { rank: rank::rank(ranking, counts), record, total, percentile })
    };
    let found = standings(redis, items, Count::Ahead);
    items.iter().zip(found).map(|(item, found)| found?.map(|found| ranked(item, found)).transpose()).collect()
}

/// Where each of these stands, in one round trip, or two where a part is split.
pub(super) fn standings(redis: &Redis, items: &[Item<'_>], count: Count) -> Looked {
    let mut looks = first_round(redis, items, count);
    let mut all: Looked = looks
        .iter_mut()
        .map(|look| {
            let (total, seen) = std::mem::replace(look, Ok((0, None)))?;
            Ok(seen.map(|seen| {
                let counts =
                    Counts { before: seen.place, better: seen.better, distinct_better: seen.distinct };
                Lookup { member: seen.member, counts, total }
            }))
        })
        .collect();
    second_round(redis, items, count, &mut all);
    for standing in all.iter_mut().flatten().flatten() {
        // Others may have gone between two rounds.
        standing.total = standing.total.max(standing.counts.before.max(standing.counts.better) + 1);
    }
    all
}

/// Looks at every player; gives the total of the partition with each.
fn first_round(
    redis: &Redis,
    items: &[Item<'_>],
    count: Count,
) -> Vec<Result<(u64, Option<Seen>), RankingError>> {
    let mut by_place: BTreeMap<(*const (), usize), Vec<usize>> = BTreeMap::new();
    for (at, (part, player)) in items.iter().enumerate() {
        by_place.entry((part.identity(), part.partition_of(player))).or_default().push(at);
    }
    let mut asks: Vec<(Ask, Want, Vec<usize>)> = Vec::new();
    for ((_, partition), whom) in by_place {
        for some in whom.chunks(AT_ONCE) {
            let part = items[some[0]].0;
            let want = match count {
                _ if part.is_split() => Want::Kept,
                Count::Ahead => Want::Counts(part.ranking()),
                Count::Before => Want::Place,
            };
            let players = some.iter().map(|at| part.codec().field(items[*at].1)).collect();
            asks.push((Ask { partition, players, ..Ask::default() }, want, some.to_vec()));
        }
    }
    let requests: Vec<Request> =
        asks.iter().map(|(ask, want, whom)| items[whom[0]].0.ask_request(ask, *want)).collect();
    let mut all: Vec<_> = items.iter().map(|_| Err(RankingError::Lost)).collect();
    for ((ask, want, whom), value) in asks.iter().zip(redis.all(&requests)) {
        let answer = value.and_then(|value| items[whom[0]].0.answer(ask, *want, value));
        match answer {
            Ok(answer) => {
                for (at, look) in whom.iter().zip(answer.players) {
                    all[*at] = look.map(|look| (answer.total, look.and_then(|look| look.seen)));
                }
            }
            Err(error) => whom.iter().for_each(|at| all[*at] = Err(error.clone())),
        }
    }
    all
}

/// Counts before everybody who was found in a split part, in all of its partitions.
fn second_round(redis: &Redis, items: &[Item<'_>], count: Count, all: &mut Looked) {
    let mut by_part: BTreeMap<*const (), Vec<usize>> = BTreeMap::new();
    for (at, (part, _)) in items.iter().enumerate() {
        if part.is_split() && matches!(all[at], Ok(Some(_))) {
            by_part.entry(part.identity()).or_default().push(at);
        }
    }
    let mut asks: Vec<(Ask, &[usize])> = Vec::new();
    for whom in by_part.values() {
        let part = items[whom[0]].0;
        for some in whom.chunks(AT_ONCE) {
            let bounds: Vec<Vec<u8>> = some
                .iter()
                .filter_map(|at| Some(part.bound(&all[*at].as_ref().ok()?.as_ref()?.member, count)))
                .collect();
            let ask = |partition| Ask { partition, bounds: bounds.clone(), ..Ask::default() };
            asks.extend((0..part.partitions()).map(|partition| (ask(partition), some)));
        }
    }
    let requests: Vec<Request> =
        asks.iter().map(|(ask, whom)| items[whom[0]].0.ask_request(ask, Want::Kept)).collect();
    for ((ask, whom), value) in asks.iter().zip(redis.all(&requests)) {
        let part = items[whom[0]].0;
        let answer = value.and_then(|value| part.answer(ask, Want::Kept, value));
        for (nth, at) in whom.iter().enumerate() {
            let Ok(Some(standing)) = &mut all[*at] else { continue };
            match &answer {
                Ok(answer) => {
                    // The first partition's answer begins the sums.
                    let begun = if ask.partition == 0 { 0 } else { standing.total };
                    standing.total = begun + answer.total;
                    let counts = &mut standing.counts;
                    match (count, part.ranking()) {
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
    /// The bytes below which everybody is who counts as before or ahead of this member.
    pub(super) fn bound(&self, member: &[u8], count: Count) -> Vec<u8> {
        match (count, self.ranking()) {
            (Count::Before, _) | (_, Ranking::Ordinal) => member.to_vec(),
            (Count::Ahead, Ranking::Competition | Ranking::Dense) => self.codec().score_of(member).to_vec(),
        }
    }

    /// A player's member, if the player is there.
    pub(super) fn present(&self, player: &PlayerId) -> Result<Option<Vec<u8>>, RankingError> {
        let (partition, field) = self.whereabouts(player);
        let ask = Ask { partition, players: vec![field], ..Ask::default() };
        let look = only(self.ask(&[ask], Want::Kept))?.players.pop().unwrap_or(Ok(None))?;
        Ok(look.and_then(|look| look.seen).map(|seen| seen.member))
    }

    pub(super) fn record(&self, player: &PlayerId) -> Result<Option<Record>, RankingError> {
        self.present(player)?.map(|member| Ok(self.decoded(&member)?.1)).transpose()
    }

    pub(super) fn find(&self, player: &PlayerId) -> Result<Option<(Record, u64)>, RankingError> {
        let found = standings(self.redis(), &[(self, player)], Count::Before).pop().unwrap_or(Ok(None))?;
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
        let mut asks: Vec<Ask> = (0..self.partitions())
            .map(|partition| Ask {
                partition,
                bounds: bounds.clone(),
                distinct: distinct.clone(),
                ..Ask::default()
            })
            .collect();
        asks[partition].players.push(field);
        let want = if dense { Want::Same } else { Want::Kept };
        let mut answers: Vec<Answer> = self.ask(&asks, want).into_iter().collect::<Result<_, _>>()?;
        let counted: u64 =
            answers.iter().flat_map(|answer| answer.counts.iter().chain(&answer.distinct)).sum();
        let look: Option<Look> = answers[partition].players.pop().unwrap_or(Ok(None))?;
        // The player's present entry is not one of the others.
        let own = look.and_then(|look| look.seen).is_some_and(|own| match self.ranking() {
            Ranking::Ordinal => own.member < bound,
            Ranking::Competition => self.codec().score_of(&own.member) < bound.as_slice(),
            Ranking::Dense => self.codec().score_of(&own.member) < bound.as_slice() && own.same == 1,
        });
        Ok(1 + counted.saturating_sub(u64::from(own)))
    }

    pub(super) fn among(&self, players: &[PlayerId]) -> Result<Among, RankingError> {
        let mut met = BTreeSet::new();
        let asked: Vec<&PlayerId> = players.iter().filter(|player| met.insert(*player)).collect();
        if asked.is_empty() {
            return Ok(Among { total: self.total()?, entries: Vec::new(), missing: Vec::new() });
        }
        let items: Vec<Item<'_>> = asked.iter().map(|player| (self, *player)).collect();
        let (mut found, mut missing) = (Vec::with_capacity(items.len()), Vec::new());
        for (player, standing) in asked.iter().zip(standings(self.redis(), &items, Count::Ahead)) {
            match standing? {
                Some(standing) => found.push(standing),
                None => missing.push((*player).clone()),
            }
        }
        // The order of members is the order of the board.
        found.sort_unstable_by(|a, b| a.member.cmp(&b.member));
        let total = match found.iter().map(|standing| standing.total).max() {
            Some(total) => total,
            None => self.total()?,
        };
        let mut entries: Vec<(u64, RankedEntry)> = Vec::with_capacity(found.len());
        let (mut better, mut distinct) = (0, 0);
        for (at, standing) in found.iter().enumerate() {
            let score = |at: usize| self.codec().score_of(&found[at].member);
            if at > 0 && score(at - 1) != score(at) {
                better = at as u64;
                distinct += 1;
            }
            let counts = Counts { before: at as u64, better, distinct_better: distinct };
            let (player, record) = self.decoded(&standing.member)?;
            let overall = RankedEntry { rank: rank::rank(self.ranking(), standing.counts), player, record };
            entries.push((rank::rank(self.ranking(), counts), overall));
        }
        Ok(Among { total, entries, missing })
    }

    pub(super) fn decoded(&self, member: &[u8]) -> Result<(PlayerId, Record), RankingError> {
        self.codec().decode(member).ok_or_else(|| reply::strange("a member that is none"))
    }
}

/// The answer of a question to one partition.
fn only(mut answers: Vec<Result<Answer, RankingError>>) -> Result<Answer, RankingError> {
    answers.pop().unwrap_or(Err(RankingError::Lost))
}
