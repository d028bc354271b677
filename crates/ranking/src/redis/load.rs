//! Bulk load of a window into Redis, while servers publish to it.
//!
//! A load deletes the old data first, so no stale player remains. It may be for lost partitions only; then it skips the
//! rows of the others. It writes rows like any other change: the newer version wins. So a change that is published
//! meanwhile is kept, and a removed player stays out although its row was read before. Recent tombstones are written
//! too: an older change that arrives late must not bring the player back.
//!
//! The window is readable once every partition has acknowledged every row. A superseded load writes nothing more. A
//! load that is dropped leaves the window loading, until the next load begins.

use super::client::Request;
use super::publish::VersionedChange;
use super::queries::decimal;
use super::script::Script;
use super::window::RedisWindow;
use super::{RankingError, reply};
use crate::memory::RankingChange;
use redis::Value;
use std::collections::VecDeque;
use tally_rules::{PlayerId, Record};
use tokio::task::JoinHandle;

/// Rows of one request: some milliseconds in which Redis serves no other.
const ROWS_AT_ONCE: usize = 1_000;
/// Requests in flight; more would only wait in Redis.
const UNDER_WAY_MAX: usize = 8;

/// A load in progress.
#[derive(Debug)]
pub struct Loader {
    window: RedisWindow,
    epoch: u64,
    /// By partition, whether the load writes it.
    begun: Vec<bool>,
    rows: Vec<Vec<[Vec<u8>; 3]>>,
    under_way: VecDeque<JoinHandle<Result<Value, RankingError>>>,
}

impl Loader {
    /// Begins in every partition, except those that may stay and are readable.
    pub(super) fn begin(
        window: &RedisWindow,
        epoch: u64,
        may_stay: impl Fn(usize) -> bool,
    ) -> Result<Self, RankingError> {
        let rows = vec![Vec::new(); window.partitions()];
        let begun = vec![true; window.partitions()];
        let mut loader = Self { window: window.clone(), epoch, begun, rows, under_way: VecDeque::new() };
        let keep = |at| decimal(u64::from(may_stay(at)));
        let begun = loader.in_begun(Script::Begin, |at| vec![loader.epoch(), keep(at)])?;
        loader.begun = begun.iter().map(|begun| Ok(reply::number(begun)? == 1)).collect::<Result<_, _>>()?;
        Ok(loader)
    }

    /// Whether it writes this partition.
    pub(crate) fn writes(&self, partition: usize) -> bool {
        self.begun[partition]
    }

    /// Whether there is nothing to write, because nothing was lost.
    pub(crate) fn is_idle(&self) -> bool {
        !self.begun.contains(&true)
    }

    /// Adds a row. An error is that of earlier rows, and ends the load.
    pub fn push(&mut self, player: &PlayerId, record: &Record, version: u64) -> Result<(), RankingError> {
        self.put(player, Some(*record), version)
    }

    /// Adds a tombstone.
    pub fn push_gone(&mut self, player: &PlayerId, version: u64) -> Result<(), RankingError> {
        self.put(player, None, version)
    }

    fn put(&mut self, player: &PlayerId, record: Option<Record>, version: u64) -> Result<(), RankingError> {
        let partition = self.window.partition_of(player);
        if !self.writes(partition) {
            return Ok(());
        }
        let change = RankingChange { player: player.clone(), record, ranked: false };
        let row = self.window.row(&VersionedChange { change, version, previous: None });
        self.rows[partition].push(row);
        if self.rows[partition].len() < ROWS_AT_ONCE {
            return Ok(());
        }
        self.send(partition);
        if self.under_way.len() > UNDER_WAY_MAX { self.wait() } else { Ok(()) }
    }

    /// Waits for all requests and makes the window readable.
    pub fn finish(mut self) -> Result<(), RankingError> {
        for partition in 0..self.rows.len() {
            self.send(partition);
        }
        while !self.under_way.is_empty() {
            self.wait()?;
        }
        self.in_begun(Script::Finish, |_| vec![self.epoch()]).map(drop)
    }

    fn epoch(&self) -> Vec<u8> {
        format!("{:016x}", self.epoch).into_bytes()
    }

    fn send(&mut self, partition: usize) {
        let rows = std::mem::take(&mut self.rows[partition]);
        if !rows.is_empty() {
            let request = self.window.bulk(partition, self.epoch(), rows.into_iter());
            self.under_way.push_back(self.window.redis().start(request));
        }
    }

    fn wait(&mut self) -> Result<(), RankingError> {
        let Some(oldest) = self.under_way.pop_front() else { return Ok(()) };
        self.window.redis().wait(oldest).map(drop)
    }

    /// Runs a script in each partition that the load writes.
    fn in_begun(
        &self,
        script: Script,
        args: impl Fn(usize) -> Vec<Vec<u8>>,
    ) -> Result<Vec<Value>, RankingError> {
        let begun = (0..self.begun.len()).filter(|at| self.begun[*at]);
        let requests: Vec<Request> = begun.map(|at| self.window.request(script, at, args(at))).collect();
        self.window.redis().all(&requests).into_iter().collect()
    }
}
