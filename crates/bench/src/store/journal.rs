//! The product's store, through `Store::run` alone.

use super::Measured;
use super::batches::{Batches, before, name};
use crate::error::{During, Error};
use crate::spent;
use crate::submit::Contents;
use std::path::Path;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_rules::{PlayerId, Record};
use tally_store::plan::ALL_TIME;
use tally_store::sqlite::{Options, SqliteStore};
use tally_store::{BoardNo, Maintenance, ReadSet, Reads, ScoreKey, StoreError, Transactions, WriteSet};

const BOARD: BoardNo = BoardNo(1);
/// Rows of one transaction while filling, and of one step of a range scan.
const ROWS: usize = 10_000;

/// Writes batches for a time, at most `most` of them, and then the rest of `most` unmeasured. Returns the number of
/// measured ones.
pub(super) fn measure(
    path: &Path,
    mut batches: Batches,
    most: Option<u64>,
    time: Duration,
    reads: bool,
) -> Result<(Measured, u64), Error> {
    let store = SqliteStore::open(path, &Options::default()).during("open the store")?;
    fill(&store, batches.players).during("fill the store")?;
    let (mut latencies, mut rows, mut count) = (Latencies::default(), 0, 0);
    let (then, began) = (spent::spent(), Instant::now());
    while began.elapsed() < time && most.is_none_or(|most| count < most) {
        let batch = batches.draw();
        rows += batch.len() as u64;
        count += 1;
        let sent_at = Instant::now();
        write(&store, batch, reads).during("write a batch")?;
        latencies.record(sent_at.elapsed());
    }
    let seconds = began.elapsed().as_secs_f64();
    store.checkpoint().during("settle")?;
    let drained_seconds = began.elapsed().as_secs_f64();
    let spent = spent::since(then);
    for _ in count..most.unwrap_or(count) {
        write(&store, batches.draw(), false).during("write the rest")?;
    }
    let contents = list(&store).during("read the store")?;
    let way = if reads { "journal, reading" } else { "journal" };
    Ok((Measured { way, seconds, drained_seconds, latencies, rows, spent, contents }, count))
}

fn write(store: &SqliteStore, batch: Vec<(PlayerId, Record)>, reads: bool) -> Result<(), StoreError> {
    let rows = batch.into_iter().map(|(player, record)| (key(player), Some(record)));
    let mut scores: Vec<(ScoreKey, Option<Record>)> = rows.collect();
    let keys = if reads { scores.iter().map(|(key, _)| key.clone()).collect() } else { Vec::new() };
    let plan = ReadSet { scores: keys, ..ReadSet::default() };
    store
        .run(&plan, &mut |_| WriteSet { scores: std::mem::take(&mut scores), ..WriteSet::default() })
        .map(drop)
}

fn fill(store: &SqliteStore, players: u64) -> Result<(), StoreError> {
    let mut next = 0;
    while next < players {
        let end = players.min(next + ROWS as u64);
        write(store, (next..end).map(|number| (name(number), before())).collect(), false)?;
        next = end;
    }
    store.checkpoint()
}

fn list(store: &SqliteStore) -> Result<Contents, StoreError> {
    let (mut contents, mut last): (Contents, Option<PlayerId>) = Default::default();
    loop {
        let mut newest = None;
        let mut each = |player: PlayerId, record: Record| {
            contents.add(player.as_str(), record.score, record.subscore, record.at.0);
            newest = Some(player);
        };
        if store.scan_scores(BOARD, ALL_TIME, last.as_ref(), ROWS, &mut each)? < ROWS {
            return Ok(contents);
        }
        last = newest;
    }
}

fn key(player: PlayerId) -> ScoreKey {
    ScoreKey { board: BOARD, window: ALL_TIME, player }
}
