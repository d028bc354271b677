//! One read of a ranking in Redis: each query of [`Reads`] in as few round trips as possible.
//!
//! As with a closed period, the reader remembers the first query that fails. That query and all later ones return
//! neutral values. No caller sees them, because the whole read ends with the error. Queries of one read are sent at
//! different times: a caller that needs several facts of one moment uses one query.

use super::RankingError;
use super::queries::decimal;
use super::reply;
use super::script::Script;
use super::window::RedisWindow;
use crate::page::{Among, Page, PageQuery, Ranked};
use crate::reads::Reads;
use std::cell::OnceCell;
use tally_rules::{PlayerId, Record};

/// Positions of each partition that one round of a search probes.
const PROBES: u64 = 32;
/// The first byte of the fields that are not players.
const OURS: u8 = 0xff;

pub(super) struct Reader<'a> {
    window: &'a RedisWindow,
    error: OnceCell<RankingError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(window: &'a RedisWindow) -> Self {
        Self { window, error: OnceCell::new() }
    }

    pub(super) fn end<T>(self, answer: T) -> Result<T, RankingError> {
        self.error.into_inner().map_or(Ok(answer), Err)
    }

    fn run<T>(&self, neutral: T, query: impl FnOnce(&RedisWindow) -> Result<T, RankingError>) -> T {
        if self.error.get().is_some() {
            return neutral;
        }
        query(self.window).unwrap_or_else(|error| {
            let _ = self.error.set(error);
            neutral
        })
    }
}

impl Reads for Reader<'_> {
    fn total(&self) -> u64 {
        self.run(0, RedisWindow::total)
    }
    fn record(&self, player: &[u8]) -> Option<Record> {
        let player = id(player)?;
        self.run(None, |window| window.record(&player))
    }
    fn find(&self, player: &[u8]) -> Option<(Record, u64)> {
        let player = id(player)?;
        self.run(None, |window| window.find(&player))
    }
    fn score_places(&self, min: Option<i64>, max: Option<i64>) -> (u64, u64) {
        self.run((0, 0), |window| window.score_places(min, max))
    }
    fn partition(&self, before: &dyn Fn(&[u8]) -> bool) -> u64 {
        self.run(0, |window| window.partition_point(before))
    }
    fn visit(&self, from: u64, take: usize, towards_better: bool, each: &mut dyn FnMut(&[u8], Record)) {
        self.run((), |window| window.visit(from, take, towards_better, each));
    }
    fn scan(&self, cursor: u64, take: usize, each: &mut dyn FnMut(&[u8], Record)) -> u64 {
        self.run(0, |window| window.scan(cursor, take, each))
    }
    fn ranked(&self, player: &PlayerId) -> Option<Ranked> {
        self.run(None, |window| window.ranks(std::slice::from_ref(player)).pop().unwrap_or(Ok(None)))
    }
    fn rank_of(&self, player: &PlayerId, record: &Record) -> u64 {
        // Ranks begin at 1, also the neutral one.
        self.run(1, |window| window.rank_of(player, record))
    }
    fn page(&self, query: &PageQuery) -> Page {
        self.run(Page { total: 0, entries: Vec::new(), more: false }, |window| window.page(query))
    }
    fn around(&self, player: &PlayerId, above: usize, below: usize) -> Option<Page> {
        self.run(None, |window| window.around(player, above, below))
    }
    fn among(&self, players: &[PlayerId]) -> Among {
        let empty = Among { total: 0, entries: Vec::new(), missing: Vec::new() };
        self.run(empty, |window| window.among(players))
    }
}

impl RedisWindow {
    /// The number of entries before the first that is not `before`. The predicate depends on the key alone. So each
    /// partition has its own partition point, and all are searched in the same rounds.
    fn partition_point(&self, before: &dyn Fn(&[u8]) -> bool) -> Result<u64, RankingError> {
        let mut open: Vec<(u64, u64)> = self.totals()?.into_iter().map(|total| (0, total)).collect();
        while open.iter().any(|(low, high)| low < high) {
            let places: Vec<Vec<u64>> = open.iter().map(|(low, high)| probes(*low, *high)).collect();
            for ((range, places), members) in open.iter_mut().zip(&places).zip(self.probe(places.as_slice())?)
            {
                for (place, member) in places.iter().zip(members) {
                    let is_before = match member {
                        Some(member) => before(self.decoded(&member)?.0.as_bytes()),
                        None => false,
                    };
                    if is_before {
                        range.0 = range.0.max(place + 1);
                    } else {
                        range.1 = range.1.min(*place);
                        break;
                    }
                }
                range.1 = range.1.max(range.0);
            }
        }
        Ok(open.iter().map(|range| range.0).sum())
    }

    /// Some players from a cursor on, partition by partition. The cursor is that of Redis, times the number of
    /// partitions, plus the partition.
    fn scan(
        &self,
        cursor: u64,
        take: usize,
        each: &mut dyn FnMut(&[u8], Record),
    ) -> Result<u64, RankingError> {
        let partitions = self.partitions() as u64;
        let (at, inner) = ((cursor % partitions) as usize, cursor / partitions);
        let args = vec![decimal(inner), decimal(take.max(1) as u64)];
        let answer = self.redis().all(&[self.request(Script::Scan, at, args)]).pop();
        let mut values = reply::list(answer.unwrap_or(Err(RankingError::Lost))?)?.into_iter();
        let next = reply::cursor(reply::next(&mut values)?)?;
        let mut pairs = reply::list(reply::next(&mut values)?)?.into_iter();
        while let Some(field) = pairs.next() {
            let (field, kept) = (reply::bytes(field)?, reply::bytes(reply::next(&mut pairs)?)?);
            let Some(kept) = kept.get(8..).filter(|kept| !kept.is_empty() && field.first() != Some(&OURS))
            else {
                continue;
            };
            let found = self.codec().player(&field).zip(self.codec().record_of(kept));
            let (player, record) =
                found.ok_or_else(|| reply::strange("a player's record that cannot be decoded"))?;
            each(player.as_bytes(), record);
        }
        if next != 0 {
            // Cursors of Redis are below the size of its table.
            return next
                .checked_mul(partitions)
                .map(|next| next + at as u64)
                .ok_or_else(|| reply::strange("a cursor beyond any table"));
        }
        let next = at as u64 + 1;
        Ok(if next < partitions { next } else { 0 })
    }
}

/// Evenly spread positions of a range.
fn probes(low: u64, high: u64) -> Vec<u64> {
    let length = high.saturating_sub(low);
    let count = length.min(PROBES);
    (1..=count)
        .map(|nth| low + (u128::from(nth) * u128::from(length) / u128::from(count + 1)) as u64)
        .collect()
}

/// The player of an id as it came; `None` if it is invalid.
fn id(player: &[u8]) -> Option<PlayerId> {
    std::str::from_utf8(player).ok().and_then(|id| PlayerId::new(id).ok())
}
