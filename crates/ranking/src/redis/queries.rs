//! Queries of the partitions of a window, with decoded answers. Each call is one round trip, however many partitions it
//! queries.

use super::client::Request;
use super::script::Script;
use super::window::RedisWindow;
use super::{RankingError, reply};
use redis::Value;
use tally_rules::PlayerId;
use tally_rules::definition::Ranking;

/// A query of one partition for players and counts.
#[derive(Clone, Debug, Default)]
pub(super) struct PartitionQuery {
    pub(super) partition: usize,
    /// The fields of players.
    pub(super) players: Vec<Vec<u8>>,
    /// Bounds below which members are counted.
    pub(super) bounds: Vec<Vec<u8>>,
    /// Bounds below which distinct scores are counted.
    pub(super) distinct: Vec<Vec<u8>>,
}

/// What a query returns of players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlayerFields {
    /// Version and record.
    Record,
    /// Also the position.
    Place,
    /// The counts for ranks and percentiles of this kind.
    Counts(Ranking),
    /// The number of players with the same score.
    Same,
}

impl PlayerFields {
    fn letter(self) -> &'static [u8] {
        match self {
            Self::Record => b"-",
            Self::Place | Self::Counts(Ranking::Ordinal) => b"o",
            Self::Counts(Ranking::Competition) => b"c",
            Self::Counts(Ranking::Dense) => b"d",
            Self::Same => b"s",
        }
    }
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) total: u64,
    /// Each player fails alone.
    pub(super) players: Vec<Result<Option<HashEntry>, RankingError>>,
    pub(super) counts: Vec<u64>,
    pub(super) distinct: Vec<u64>,
}

/// A player in the hash.
#[derive(Clone, Debug)]
pub(super) struct HashEntry {
    pub(super) version: u64,
    /// `None` for a tombstone.
    pub(super) seen: Option<RankedMember>,
}

/// A player with an entry. Numbers that were not queried are 0.
#[derive(Clone, Debug)]
pub(super) struct RankedMember {
    pub(super) member: Vec<u8>,
    pub(super) place: u64,
    pub(super) better: u64,
    pub(super) distinct: u64,
    pub(super) same: u64,
}

impl RankedMember {
    /// A member without numbers.
    pub(super) fn of(member: Vec<u8>) -> Self {
        Self { member, place: 0, better: 0, distinct: 0, same: 0 }
    }
}

/// The selection of an entry range of a partition; see the script.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    Best { skip: u64, take: usize },
    Worst { skip: u64, take: usize },
    Up { from: u64, take: usize },
    Near { above: usize, below: usize },
    Player { field: Vec<u8>, above: usize, below: usize },
}

/// Bounds of an entry range: members not below `low`, and below `high`.
#[derive(Clone, Debug, Default)]
pub(super) struct Between {
    pub(super) low: Option<Vec<u8>>,
    pub(super) high: Option<Vec<u8>>,
}

/// An entry range of a partition.
#[derive(Debug)]
pub(super) struct EntryRange {
    pub(super) total: u64,
    /// The positions between the bounds.
    pub(super) from: u64,
    pub(super) to: u64,
    /// The position of the first member.
    pub(super) start: u64,
    /// The count for a shared rank of the first member.
    pub(super) shared: u64,
    /// Best first.
    pub(super) members: Vec<Vec<u8>>,
}

/// More than any count, and small enough for exact sums in the scripts.
const ALL: u64 = 1 << 52;

impl RedisWindow {
    pub(super) fn query(
        &self,
        queries: &[PartitionQuery],
        want: PlayerFields,
    ) -> Vec<Result<Answer, RankingError>> {
        let requests: Vec<Request> = queries.iter().map(|query| self.query_request(query, want)).collect();
        let answers = self.redis().all(&requests);
        queries.iter().zip(answers).map(|(query, answer)| self.answer(query, want, answer?)).collect()
    }

    /// The same query of every partition.
    pub(super) fn query_everywhere(
        &self,
        query: &PartitionQuery,
        want: PlayerFields,
    ) -> Result<Vec<Answer>, RankingError> {
        let queries: Vec<PartitionQuery> =
            (0..self.partitions()).map(|partition| PartitionQuery { partition, ..query.clone() }).collect();
        self.query(&queries, want).into_iter().collect()
    }

    pub(super) fn query_request(&self, query: &PartitionQuery, want: PlayerFields) -> Request {
        let mut args = self.widths();
        args.push(want.letter().to_vec());
        args.push(decimal(query.players.len() as u64));
        args.extend(query.players.iter().cloned());
        args.push(decimal(query.bounds.len() as u64));
        args.extend(query.bounds.iter().cloned());
        args.extend(query.distinct.iter().cloned());
        self.request(Script::PartitionQuery, query.partition, args)
    }

    pub(super) fn answer(
        &self,
        query: &PartitionQuery,
        want: PlayerFields,
        value: Value,
    ) -> Result<Answer, RankingError> {
        let mut values = reply::list(value)?.into_iter();
        let total = reply::number(&reply::next(&mut values)?)?;
        self.saw(query.partition, total);
        let mut players = Vec::with_capacity(query.players.len());
        for field in &query.players {
            players.push(self.decode_entry(field, want, reply::next(&mut values)?));
        }
        let mut numbers = values.map(|value| reply::number(&value)).collect::<Result<Vec<u64>, _>>()?;
        if numbers.len() != query.bounds.len() + query.distinct.len() {
            return Err(reply::strange("another number of counts than was asked for"));
        }
        let distinct = numbers.split_off(query.bounds.len());
        Ok(Answer { total, players, counts: numbers, distinct })
    }

    fn decode_entry(
        &self,
        field: &[u8],
        want: PlayerFields,
        item: Value,
    ) -> Result<Option<HashEntry>, RankingError> {
        if item == Value::Nil {
            return Ok(None);
        }
        let mut item = reply::list(item)?.into_iter();
        let kept = reply::bytes(reply::next(&mut item)?)?;
        let Some((version, kept)) = kept.split_first_chunk() else {
            return Err(reply::strange("a player without a version"));
        };
        let version = u64::from_be_bytes(*version);
        if kept.is_empty() {
            return Ok(Some(HashEntry { version, seen: None }));
        }
        let member = self.codec().join(field, kept);
        let member = member.ok_or_else(|| reply::strange("a player's record that cannot be decoded"))?;
        // The script returns -1 for a missing number: then the sorted set has lost a member.
        let numbers = item.map(|value| reply::number(&value).map_err(|_| RankingError::Lost));
        let numbers = numbers.collect::<Result<Vec<u64>, _>>()?;
        let seen = match (want, numbers.as_slice()) {
            (PlayerFields::Record, []) => RankedMember::of(member),
            (PlayerFields::Place | PlayerFields::Counts(Ranking::Ordinal), &[place]) => {
                RankedMember { place, ..RankedMember::of(member) }
            }
            (PlayerFields::Counts(Ranking::Competition), &[better]) => {
                RankedMember { better, ..RankedMember::of(member) }
            }
            (PlayerFields::Counts(Ranking::Dense), &[better, distinct]) => {
                RankedMember { better, distinct, ..RankedMember::of(member) }
            }
            (PlayerFields::Same, &[same]) => RankedMember { same, ..RankedMember::of(member) },
            _ => return Err(reply::strange("other counts of a player than were asked for")),
        };
        Ok(Some(HashEntry { version, seen: Some(seen) }))
    }

    /// An entry range of each partition, by its mode. `ranked` adds the count for a shared rank of the first member.
    pub(super) fn entry_ranges(
        &self,
        between: &Between,
        modes: &[Mode],
        ranked: bool,
    ) -> Result<Vec<Option<EntryRange>>, RankingError> {
        let request = |(partition, mode)| self.page_request(partition, between, mode, ranked);
        let requests: Vec<Request> = modes.iter().enumerate().map(request).collect();
        self.redis().all(&requests).into_iter().map(|value| entry_range(reply::only(value?)?)).collect()
    }

    fn page_request(&self, partition: usize, between: &Between, mode: &Mode, ranked: bool) -> Request {
        let (name, a, b, field) = match mode {
            Mode::Best { skip, take } => ("best", *skip, *take, None),
            Mode::Worst { skip, take } => ("worst", *skip, *take, None),
            Mode::Up { from, take } => ("up", *from, *take, None),
            Mode::Near { above, below } => ("near", *above as u64, *below, None),
            Mode::Player { field, above, below } => ("player", *above as u64, *below, Some(field)),
        };
        let entries = match mode {
            Mode::Near { above, below } | Mode::Player { above, below, .. } => above.saturating_add(*below),
            Mode::Best { take, .. } | Mode::Worst { take, .. } | Mode::Up { take, .. } => *take,
        };
        let want: &[u8] = match self.ranking() {
            Ranking::Competition if ranked => b"c",
            Ranking::Dense if ranked => b"d",
            _ => b"-",
        };
        let bound = |bytes: &Option<Vec<u8>>| bytes.clone().unwrap_or_default();
        let mut args = self.widths();
        args.extend([name.into(), bound(&between.low), bound(&between.high)]);
        args.extend([decimal(a.min(ALL)), decimal((b as u64).min(ALL)), want.to_vec()]);
        args.push(field.cloned().unwrap_or_default());
        Request { entries, ..self.request(Script::Page, partition, args) }
    }

    /// The members at these positions of each partition, `None` past the end.
    pub(super) fn probe(&self, places: &[Vec<u64>]) -> Result<Vec<Vec<Option<Vec<u8>>>>, RankingError> {
        let probed: Vec<usize> = (0..places.len()).filter(|at| !places[*at].is_empty()).collect();
        let one = |at: &usize| {
            let args = places[*at].iter().map(|place| decimal(*place)).collect();
            self.request(Script::Probe, *at, args)
        };
        let requests: Vec<Request> = probed.iter().map(one).collect();
        let mut all = vec![Vec::new(); places.len()];
        for (at, value) in probed.into_iter().zip(self.redis().all(&requests)) {
            let members = reply::list(value?)?.into_iter().skip(1);
            all[at] = members.map(optional).collect::<Result<_, _>>()?;
        }
        Ok(all)
    }

    /// The partition and the field of a player.
    pub(super) fn whereabouts(&self, player: &PlayerId) -> (usize, Vec<u8>) {
        (self.partition_of(player), self.codec().field(player))
    }

    /// The lengths of a head and of a score, which most scripts need to split members.
    pub(super) fn widths(&self) -> Vec<Vec<u8>> {
        vec![decimal(self.codec().head_bytes() as u64), decimal(self.codec().score_bytes() as u64)]
    }
}

fn entry_range(value: Value) -> Result<Option<EntryRange>, RankingError> {
    if value == Value::Nil {
        return Ok(None);
    }
    let mut values = reply::list(value)?.into_iter();
    let mut number = || reply::number(&reply::next(&mut values)?);
    let (total, from, to) = (number()?, number()?, number()?);
    let start = reply::signed(&reply::next(&mut values)?)?;
    let shared = reply::number(&reply::next(&mut values)?)?;
    let members = values.next().map_or(Ok(Vec::new()), reply::list)?;
    let members = members.into_iter().map(reply::bytes).collect::<Result<_, _>>()?;
    // An empty range may begin before the first position.
    let start = u64::try_from(start).unwrap_or_default();
    Ok(Some(EntryRange { total, from, to, start, shared, members }))
}

fn optional(value: Value) -> Result<Option<Vec<u8>>, RankingError> {
    if value == Value::Nil { Ok(None) } else { reply::bytes(value).map(Some) }
}

pub(super) fn decimal(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}
