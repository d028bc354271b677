//! Publishes committed changes, with the ranks around those that are `ranked`.
//!
//! For a window of one partition, a script applies the changes one by one and returns the ranks in between. A
//! partitioned window takes two rounds. The first queries all partitions for the players and for the counts that the
//! ranks need, from which `serial_ranks` computes the serial ranks. The second writes the newest record of each player. A
//! third round is needed only if the caller's previous record was wrong.
//!
//! A change that is not newer than the stored one does nothing, so everything may be published again after an error. A
//! partition that cannot be written does not block the others. During a load, changes are written and no ranks are
//! returned.

use super::RankingError;
use super::client::Request;
use super::queries::{HashEntry, PartitionQuery, PlayerFields, RankedMember, decimal};
use super::reply;
use super::script::Script;
use super::serial_ranks::SerialRanks;
use super::window::RedisWindow;
use crate::memory::{Published, RankingChange};
use redis::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tally_rules::definition::Ranking;
use tally_rules::{PlayerId, Record};

/// Changes of one round. Redis serves no other request while a script runs.
const AT_ONCE: usize = 128;

/// A committed change with its version.
#[derive(Clone, Debug)]
pub struct VersionedChange {
    /// The change.
    pub change: RankingChange,
    /// Grows with every change of this player in this window.
    pub version: u64,
    /// The record before it, as far as the caller knows. A correct one saves a round trip, and a wrong one changes no
    /// answer.
    pub previous: Option<Record>,
}

/// The result of publishing.
#[derive(Debug, Default)]
pub(crate) struct PublishOutcome {
    /// Indexes of changes that were not newer than the stored ones.
    stale: Vec<usize>,
    /// Partitions that were not written, and why.
    pub(crate) failed: BTreeMap<usize, RankingError>,
    /// Whether a partition is lost.
    pub(crate) lost: bool,
}

impl RedisWindow {
    /// Publishes changes in their order, and reports the ranks around those that are `ranked`. Returns the indexes of
    /// changes that were not newer than the stored ones. After an error the changes of other partitions are written.
    pub fn publish(
        &self,
        changes: &[VersionedChange],
        each: impl FnMut(usize, Published),
    ) -> Result<Vec<usize>, RankingError> {
        let PublishOutcome { stale, failed, .. } = self.publish_but(&BTreeSet::new(), changes, each);
        // A lost partition is loaded again anyway, but an unavailable one needs another publish.
        let unavailable = failed.values().find(|error| **error != RankingError::Lost);
        unavailable.or_else(|| failed.values().next()).map_or(Ok(stale), |error| Err(error.clone()))
    }

    /// Like [`Self::publish`], without the changes of the partitions in `left_out`.
    pub(crate) fn publish_but(
        &self,
        left_out: &BTreeSet<usize>,
        changes: &[VersionedChange],
        mut each: impl FnMut(usize, Published),
    ) -> PublishOutcome {
        let mut outcome = PublishOutcome::default();
        for (nth, some) in changes.chunks(AT_ONCE).enumerate() {
            let first = nth * AT_ONCE;
            let may_rank = left_out.is_empty() && outcome.failed.is_empty();
            let ranked = may_rank && some.iter().any(|one| one.change.ranked);
            let mut publish_one = |at: usize, published| each(first + at, published);
            let came_late = if ranked && !self.is_split() {
                self.publish_serially(some, &mut publish_one).unwrap_or_else(|error| {
                    outcome.failed.insert(0, error);
                    Vec::new()
                })
            } else {
                // No ranks if the counts of a partition are unknown.
                let ranks = if ranked { self.ranks_around(some) } else { Ok(Vec::new()) };
                let may_write = |partition| !left_out.contains(&partition);
                let late = self.write(some, may_write, &mut outcome.failed);
                outcome.lost |= matches!(ranks, Err(RankingError::Lost));
                ranks.into_iter().flatten().for_each(|(at, published)| publish_one(at, published));
                late
            };
            outcome.stale.extend(came_late.into_iter().map(|at| first + at));
        }
        outcome.lost |= outcome.failed.values().any(|error| *error == RankingError::Lost);
        outcome
    }

    fn publish_serially(
        &self,
        changes: &[VersionedChange],
        each: &mut dyn FnMut(usize, Published),
    ) -> Result<Vec<usize>, RankingError> {
        let kind: &[u8] = match self.ranking() {
            Ranking::Ordinal => b"o",
            Ranking::Competition => b"c",
            Ranking::Dense => b"d",
        };
        let mut args = self.widths();
        args.push(kind.to_vec());
        for one in changes {
            let [field, version, kept] = self.row(one);
            args.extend([field, version, decimal(u64::from(one.change.ranked)), kept]);
        }
        let mut answer = reply::list(self.one(Script::Publish, 0, args)?)?.into_iter();
        let ready = reply::bytes(reply::next(&mut answer)?)? == b"R";
        self.saw(0, reply::number(&reply::next(&mut answer)?)?);
        let answer = answer.map(|value| reply::signed(&value)).collect::<Result<Vec<i64>, _>>()?;
        if answer.len() != 3 * changes.len() {
            return Err(reply::strange("another number of changes than were published"));
        }
        let mut stale = Vec::new();
        for (at, (one, numbers)) in changes.iter().zip(answer.chunks(3)).enumerate() {
            if numbers[0] == 0 {
                stale.push(at);
            }
            if one.change.ranked && ready {
                let rank = |ahead: i64| u64::try_from(ahead).ok().map(|ahead| ahead + 1);
                each(at, Published { before: rank(numbers[1]), after: rank(numbers[2]) });
            }
        }
        Ok(stale)
    }

    /// The serial ranks around each change that is `ranked`.
    fn ranks_around(&self, changes: &[VersionedChange]) -> Result<Vec<(usize, Published)>, RankingError> {
        let players: Vec<&PlayerId> = changes.iter().map(|one| &one.change.player).collect();
        let guessed = SerialRanks::new(self, changes, &self.guess(changes));
        let bounds: Vec<Vec<u8>> = guessed.bounds().collect::<HashSet<_>>().into_iter().cloned().collect();
        let (entries, mut counts) = self.look_up_and_count(&players, bounds)?;
        let serial = SerialRanks::new(self, changes, &entries);
        let missing: HashSet<&Vec<u8>> =
            serial.bounds().filter(|bound| !counts.contains_key(*bound)).collect();
        if !missing.is_empty() {
            let bounds = missing.into_iter().cloned().collect();
            counts.extend(self.look_up_and_count(&[], bounds)?.1);
        }
        Ok(serial.ranks(&counts))
    }

    /// The caller's guess of what is stored of each player: the record before its first change.
    fn guess<'a>(&self, changes: &'a [VersionedChange]) -> HashMap<&'a PlayerId, Option<HashEntry>> {
        let mut entries = HashMap::new();
        for one in changes {
            let player = &one.change.player;
            let seen = |record: Record| RankedMember::of(self.codec().member(player, &record));
            entries.entry(player).or_insert_with(|| {
                one.previous.map(|record| HashEntry { version: 0, seen: Some(seen(record)) })
            });
        }
        entries
    }

    /// What is stored of some players, and how many members are below some bounds.
    #[expect(clippy::type_complexity, reason = "two maps that are made together")]
    fn look_up_and_count<'a>(
        &self,
        players: &[&'a PlayerId],
        bounds: Vec<Vec<u8>>,
    ) -> Result<(HashMap<&'a PlayerId, Option<HashEntry>>, HashMap<Vec<u8>, u64>), RankingError> {
        let mut queries: Vec<PartitionQuery> = (0..self.partitions())
            .map(|partition| PartitionQuery {
                partition,
                bounds: bounds.clone(),
                ..PartitionQuery::default()
            })
            .collect();
        let mut whose: Vec<Vec<&PlayerId>> = vec![Vec::new(); queries.len()];
        for player in players.iter().collect::<HashSet<_>>() {
            let (partition, field) = self.whereabouts(player);
            queries[partition].players.push(field);
            whose[partition].push(player);
        }
        let mut entries = HashMap::new();
        let mut counts: HashMap<Vec<u8>, u64> = bounds.iter().map(|bound| (bound.clone(), 0)).collect();
        for (whose, answer) in whose.into_iter().zip(self.query(&queries, PlayerFields::Record)) {
            let answer = answer?;
            for (player, entry) in whose.into_iter().zip(answer.players) {
                entries.insert(player, entry?);
            }
            for (bound, count) in bounds.iter().zip(answer.counts) {
                counts.entry(bound.clone()).and_modify(|sum| *sum += count);
            }
        }
        Ok((entries, counts))
    }

    /// Writes the newest change of each player in one round, except where `may_write` forbids it or a write has failed.
    /// Returns the indexes of changes that were not newer, and adds the partitions that fail.
    fn write(
        &self,
        changes: &[VersionedChange],
        may_write: impl Fn(usize) -> bool,
        failed: &mut BTreeMap<usize, RankingError>,
    ) -> Vec<usize> {
        let mut newest: HashMap<&PlayerId, &VersionedChange> = HashMap::new();
        for one in changes {
            let kept = newest.entry(&one.change.player).or_insert(one);
            if kept.version < one.version {
                *kept = one;
            }
        }
        let mut rows: Vec<Vec<&VersionedChange>> = vec![Vec::new(); self.partitions()];
        for one in newest.into_values() {
            rows[self.partition_of(&one.change.player)].push(one);
        }
        let is_written =
            |at: &usize, rows: &[_]| !rows.is_empty() && may_write(*at) && !failed.contains_key(at);
        let rows: Vec<(usize, Vec<&VersionedChange>)> =
            rows.into_iter().enumerate().filter(|(at, rows)| is_written(at, rows)).collect();
        let request = |(partition, rows): &(usize, Vec<&VersionedChange>)| {
            self.bulk(*partition, Vec::new(), rows.iter().map(|one| self.row(one)))
        };
        let requests: Vec<Request> = rows.iter().map(request).collect();
        let mut there: HashMap<&PlayerId, u64> = HashMap::new();
        for ((partition, rows), answer) in rows.iter().zip(self.redis().all(&requests)) {
            let written = answer.and_then(|answer| self.written(*partition, rows, answer, &mut there));
            if let Err(error) = written {
                failed.insert(*partition, error);
            }
        }
        // As if the changes were written one by one.
        let mut late = Vec::new();
        for (at, one) in changes.iter().enumerate() {
            if there.get(&one.change.player).is_none_or(|there| one.version > *there) {
                there.insert(&one.change.player, one.version);
            } else {
                late.push(at);
            }
        }
        late
    }

    /// Decodes the answer of a write: the versions that were stored before.
    fn written<'a>(
        &self,
        partition: usize,
        rows: &[&'a VersionedChange],
        answer: Value,
        there: &mut HashMap<&'a PlayerId, u64>,
    ) -> Result<(), RankingError> {
        let mut answer = reply::list(answer)?.into_iter().skip(1);
        self.saw(partition, reply::number(&reply::next(&mut answer)?)?);
        for (one, version) in rows.iter().zip(answer) {
            if let Some(version) = reply::bytes(version)?.first_chunk() {
                there.insert(&one.change.player, u64::from_be_bytes(*version));
            }
        }
        Ok(())
    }

    /// A request that writes rows of different players. A load passes its epoch.
    pub(super) fn bulk(
        &self,
        partition: usize,
        epoch: Vec<u8>,
        rows: impl Iterator<Item = [Vec<u8>; 3]>,
    ) -> Request {
        let mut args = self.widths();
        args.push(epoch);
        args.extend(rows.flatten());
        self.request(Script::Bulk, partition, args)
    }

    /// Field, version, and the bytes after the version.
    pub(super) fn row(&self, one: &VersionedChange) -> [Vec<u8>; 3] {
        let kept = one.change.record.map(|record| self.codec().record_bytes(&record)).unwrap_or_default();
        [self.codec().field(&one.change.player), one.version.to_be_bytes().to_vec(), kept]
    }

    fn one(&self, script: Script, partition: usize, args: Vec<Vec<u8>>) -> Result<Value, RankingError> {
        self.redis().all(&[self.request(script, partition, args)]).pop().unwrap_or(Err(RankingError::Lost))
    }
}
