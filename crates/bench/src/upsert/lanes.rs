//! The service in this process, its lanes in front of the store on MySQL or MariaDB.
//!
//! Each number of callers has its own board, so that all begin alike. Not here: the wire.

use super::measured::Round;
use super::shares::Share;
use crate::error::{During, Error};
use crate::ours;
use crate::submit::{Contents, Operations};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_rules::BoardId;
use tally_service::{Failure, Tally};
use tally_store::mysql::{MySqlStore, Options};
use tally_store::{BoardNo, Store};

/// Concurrent lanes, the product's default.
const LANES: usize = 3;

/// The figures of a round of lanes.
pub(crate) struct Submitted {
    pub(crate) round: Round,
    /// The streams for the next round.
    pub(crate) streams: Vec<Operations>,
    pub(crate) rows_per_commit: f64,
    /// The sum of the previous scores of all replies.
    pub(crate) previous: i64,
}

/// The running service.
pub(crate) struct Lanes {
    store: Arc<dyn Store>,
    tally: Arc<Tally>,
    boards: Vec<BoardNo>,
}

impl Lanes {
    /// Starts it in an empty database, with so many boards.
    pub(crate) fn start(url: &str, boards: usize, players: u64) -> Result<Self, Error> {
        // As the product opens it: with rankings in memory there is one writer.
        let writer = Some("the bench".to_owned());
        let store =
            MySqlStore::open(url, &Options { writer, ..Options::default() }).during("open the store")?;
        let store: Arc<dyn Store> = Arc::new(store);
        let fill = |number| ours::fill(&*store, &board(number), players);
        let boards = (0..boards).map(fill).collect::<Result<_, _>>().during("fill the store")?;
        let tally = ours::serve(&store, LANES).during("start the service")?;
        Ok(Self { store, tally, boards })
    }

    /// Submits each share by its own caller.
    pub(crate) async fn round(&self, number: usize, shares: Vec<Share>) -> Result<Submitted, Failure> {
        let before = self.tally.lane_stats();
        let began = Instant::now();
        let caller = |share| tokio::spawn(call(Arc::clone(&self.tally), board(number), share));
        let tasks: Vec<_> = shares.into_iter().map(caller).collect();
        let mut ended = Vec::with_capacity(tasks.len());
        for task in tasks {
            ended.push(task.await.expect("a caller does not panic")?);
        }
        let seconds = began.elapsed().as_secs_f64();
        let (mut latencies, mut streams, mut previous) = (Latencies::default(), Vec::new(), 0_i64);
        for (one, before, share) in ended {
            latencies.extend(one);
            previous = previous.wrapping_add(before);
            streams.extend(share.into_streams());
        }
        let after = self.tally.lane_stats();
        let batches = (after.batches - before.batches).max(1);
        let rows_per_commit = (after.rows - before.rows) as f64 / batches as f64;
        Ok(Submitted { round: Round { seconds, latencies }, streams, rows_per_commit, previous })
    }

    /// The contents of a board.
    pub(crate) fn contents(&self, number: usize) -> Result<Contents, Error> {
        ours::list(&*self.store, self.boards[number]).during("read the store")
    }

    pub(crate) fn stop(self) {
        self.tally.drain();
    }
}

fn board(number: usize) -> BoardId {
    BoardId::new(&format!("bench-{number}")).expect("a good name")
}

async fn call(
    tally: Arc<Tally>,
    board: BoardId,
    mut share: Share,
) -> Result<(Vec<Duration>, i64, Share), Failure> {
    let (mut latencies, mut previous) = (Vec::with_capacity(share.left()), 0_i64);
    for one in share.by_ref() {
        let new = ours::new_score(&board, &one);
        let sent_at = Instant::now();
        let before = ours::call(&tally, new).await?;
        latencies.push(sent_at.elapsed());
        previous = previous.wrapping_add(before.expect("every player has a score"));
    }
    Ok((latencies, previous, share))
}
