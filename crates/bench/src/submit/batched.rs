//! The service in this process, its score lane in front of its store.
//!
//! Compared with a server only the wire is missing.

use super::measured::Measured;
use super::operations::Operations;
use crate::error::{During, Error};
use crate::ours;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_rules::BoardId;
use tally_service::{Failure, Tally};
use tally_store::Store;
use tally_store::sqlite::{Options, SqliteStore};

/// Runs so many callers for a time.
pub(super) fn measure(
    folder: &Path,
    players: u64,
    callers: usize,
    time: Duration,
    seed: u64,
) -> Result<Measured, Error> {
    let store = SqliteStore::open(&folder.join("tally.db"), &Options::default()).during("open the store")?;
    let store: Arc<dyn Store> = Arc::new(store);
    let no = ours::fill(&*store, &board(), players).during("fill the store")?;
    let tally = ours::serve(&store, 1).during("start the service")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().build().during("start a runtime")?;
    let before = tally.lane_stats();
    let (began, all) = runtime.block_on(async {
        let began = Instant::now();
        let until = began + time;
        let caller = |caller| {
            let operations = Operations::new(caller, callers, players, seed);
            tokio::spawn(call(Arc::clone(&tally), operations, until))
        };
        let tasks: Vec<_> = (0..callers).map(caller).collect();
        let mut all = Vec::with_capacity(callers);
        for task in tasks {
            all.push(task.await.expect("a caller does not panic"));
        }
        (began, all)
    });
    let seconds = began.elapsed().as_secs_f64();
    let (mut latencies, mut counts) = (Latencies::default(), Vec::with_capacity(callers));
    for one in all {
        let one = one.during("submit")?;
        counts.push(one.len() as u64);
        latencies.extend(one);
    }
    let after = tally.lane_stats();
    tally.drain();
    let batches = (after.batches - before.batches).max(1);
    let rows_per_commit = (after.rows - before.rows) as f64 / batches as f64;
    let contents = ours::list(&*store, no).during("read the store")?;
    Ok(Measured { seconds, latencies, counts, rows_per_commit, contents })
}

fn board() -> BoardId {
    BoardId::new("bench").expect("a good name")
}

async fn call(
    tally: Arc<Tally>,
    mut operations: Operations,
    until: Instant,
) -> Result<Vec<Duration>, Failure> {
    let mut latencies = Vec::new();
    let board = board();
    let mut sent = Instant::now();
    while sent < until {
        let operation = operations.draw();
        let new = ours::new_score(&board, &operation);
        sent = Instant::now();
        ours::call(&tally, new).await?;
        let received = Instant::now();
        latencies.push(received - sent);
        sent = received;
    }
    Ok(latencies)
}
