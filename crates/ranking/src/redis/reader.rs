//! One reading of an order in Redis: every question of [`Reads`] in as few round trips as it can be.
//!
//! As with a closed period, the first question that fails is remembered: it and all after it get a neutral answer that
//! nobody sees, because the reading as a whole ends with the error. Questions of one reading are asked at different
//! moments; a caller who needs several facts of one moment asks one question for them.

use super::RankingError;
use super::asks::decimal;
use super::part::RedisWindow;
use super::reply;
use super::script::Script;
use crate::page::{Among, Page, PageQuery, Ranked};
use crate::reads::Reads;
use std::cell::OnceCell;
use tally_rules::{PlayerId, Record};

/// Places of each partition that one round of a search looks at.
const PROBES: u64 = 32;
/// The first byte of fields that are ours.
const OURS: u8 = 0xff;

/// A reading.
pub(super) struct Reader<'a> {
    part: &'a RedisWindow,
    error: OnceCell<RankingError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(part: &'a RedisWindow) -> Self {
        Self { part, error: OnceCell::new() }
    }

    pub(super) fn end<T>(self, answer: T) -> Result<T, RankingError> {
        self.error.into_inner().map_or(Ok(answer), Err)
    }

    fn ask<T>(&self, neutral: T, question: impl FnOnce(&RedisWindow) -> Result<T, RankingError>) -> T {
        if self.error.get().is_some() {
            return neutral;
        }
        question(self.part).unwrap_or_else(|error| {
            let _ = self.error.set(error);
            neutral
        })
    }
}

impl Reads for Reader<'_> {
    fn total(&self) -> u64 {
        self.ask(0, RedisWindow::total)
    }
    fn record(&self, player: &[u8]) -> Option<Record> {
        let player = id(player)?;
        self.ask(None, |part| part.record(&player))
    }
    fn find(&self, player: &[u8]) -> Option<(Record, u64)> {
        let player = id(player)?;
        self.ask(None, |part| part.find(&player))
    }
    fn score_places(&self, min: Option<i64>, max: Option<i64>) -> (u64, u64) {
        self.ask((0, 0), |part| part.score_places(min, max))
    }
    fn partition(&self, before: &dyn Fn(&[u8]) -> bool) -> u64 {
        self.ask(0, |part| part.partition_point(before))
    }
    fn visit(&self, from: u64, take: usize, towards_better: bool, each: &mut dyn FnMut(&[u8], Record)) {
        self.ask((), |part| part.visit(from, take, towards_better, each));
    }
    fn scan(&self, cursor: u64, take: usize, each: &mut dyn FnMut(&[u8], Record)) -> u64 {
        self.ask(0, |part| part.scan(cursor, take, each))
    }
    fn ranked(&self, player: &PlayerId) -> Option<Ranked> {
        self.ask(None, |part| part.ranks(std::slice::from_ref(player)).pop().unwrap_or(Ok(None)))
    }
    fn rank_of(&self, player: &PlayerId, record: &Record) -> u64 {
        // Ranks are from 1, and so is the neutral one.
        self.ask(1, |part| part.rank_of(player, record))
    }
    fn page(&self, query: &PageQuery) -> Page {
        self.ask(Page { total: 0, entries: Vec::new(), more: false }, |part| part.page(query))
    }
    fn around(&self, player: &PlayerId, above: usize, below: usize) -> Option<Page> {
        self.ask(None, |part| part.around(player, above, below))
    }
    fn among(&self, players: &[PlayerId]) -> Among {
        let nobody = Among { total: 0, entries: Vec::new(), missing: Vec::new() };
        self.ask(nobody, |part| part.among(players))
    }
}

impl RedisWindow {
    /// How many are before the first that is not `before`. It is a property of the key, so it cuts every partition by
    /// itself, and all are searched in the same rounds.
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

    /// Some players from a cursor on, partition by partition: the cursor is that of Redis, times the partitions, plus the
    /// partition.
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
            let (player, record) = found.ok_or_else(|| reply::strange("a player's record that is none"))?;
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

/// Some places of a range, the middle among them.
fn probes(low: u64, high: u64) -> Vec<u64> {
    let length = high.saturating_sub(low);
    let count = length.min(PROBES);
    (1..=count)
        .map(|nth| low + (u128::from(nth) * u128::from(length) / u128::from(count + 1)) as u64)
        .collect()
}

/// Ids are bytes as they came; one that is no player's name is nobody's.
fn id(player: &[u8]) -> Option<PlayerId> {
    std::str::from_utf8(player).ok().and_then(|id| PlayerId::new(id).ok())
}
