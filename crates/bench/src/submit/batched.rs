//! Our way: the service in this process, its score lane in front of its store.
//!
//! Callers are futures that await the same use case as the doors do, so an answer has the previous score and both ranks.
//! What is missing beside a server is the wire.

use super::measured::Measured;
use super::operations::{BEGIN_MICROS, Contents, Operations};
use crate::error::{During, Error};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_load::{Latencies, player};
use tally_rules::definition::{Definition, Update};
use tally_rules::score::Given;
use tally_rules::{BoardId, Micros, PlayerId, Record};
use tally_service::scores::submit::{NewScore, submit};
use tally_service::secret::Secret;
use tally_service::{Failure, Keys, Progress, Settings, Tally, clock};
use tally_store::plan::{ALL_TIME, BoardChange};
use tally_store::sqlite::{Options, SqliteStore};
use tally_store::{BoardNo, BoardRow, Changes, Plan, ScoreKey, Store, StoreError};

/// Rows in one transaction while filling, and in one step of a walk.
const ROWS: u64 = 10_000;

/// Lets so many callers submit for a time.
pub(super) fn measure(
    folder: &Path,
    players: u64,
    callers: usize,
    time: Duration,
    seed: u64,
) -> Result<Measured, Error> {
    let store = SqliteStore::open(&folder.join("tally.db"), &Options::default()).during("open the store")?;
    let store: Arc<dyn Store> = Arc::new(store);
    let board = fill(&*store, players).during("fill the store")?;
    let tally = serve(&store).during("start the service")?;
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
        counts.push(one.count());
        latencies.merge(&one);
    }
    let after = tally.lane_stats();
    tally.drain();
    let batches = (after.batches - before.batches).max(1);
    let rows_per_commit = (after.rows - before.rows) as f64 / batches as f64;
    let contents = list(&*store, board).during("read the store")?;
    Ok(Measured { seconds, latencies, counts, rows_per_commit, contents })
}

fn board() -> BoardId {
    BoardId::new("bench").expect("a good name")
}

/// The board, which keeps the latest score, with a score for every player.
fn fill(store: &dyn Store, players: u64) -> Result<BoardNo, StoreError> {
    let plan = Plan { board_names: vec![board()], ..Plan::default() };
    let mut no = BoardNo::default();
    store.run(&plan, &mut |loaded| {
        no = loaded.next_board;
        let definition = Definition { update: Update::Latest, ..Definition::default() };
        let row = BoardRow { no, id: board(), definition, created_at: Micros(BEGIN_MICROS) };
        Changes { boards: vec![BoardChange::Create(row)], ..Changes::default() }
    })?;
    let record = Record { score: 0, subscore: 0, at: Micros(BEGIN_MICROS) };
    let mut next = 0;
    while next < players {
        let end = players.min(next + ROWS);
        let key = |number| ScoreKey { board: no, part: ALL_TIME, player: player_id(number) };
        let scores: Vec<_> = (next..end).map(|number| (key(number), Some(record))).collect();
        store.run(&Plan::default(), &mut |_| Changes { scores: scores.clone(), ..Changes::default() })?;
        next = end;
    }
    Ok(no)
}

fn player_id(number: u64) -> PlayerId {
    PlayerId::new(&player(number)).expect("a good name")
}

fn serve(store: &Arc<dyn Store>) -> Result<Arc<Tally>, Failure> {
    // Nothing outlives the run, so nothing has to be secret.
    let (secret, settings) = (Secret::new([7; 32]), Settings::default());
    let keys = Keys::load(Arc::clone(store), secret.clone(), clock::system(), &settings)?;
    let progress = Progress::default();
    Tally::start(Arc::clone(store), Arc::new(keys), &secret, clock::system(), settings, &progress)
}

async fn call(tally: Arc<Tally>, mut operations: Operations, until: Instant) -> Result<Latencies, Failure> {
    let mut latencies = Latencies::default();
    let board = board();
    let mut asked = Instant::now();
    while asked < until {
        let operation = operations.draw();
        let new = NewScore {
            board: board.clone(),
            player: player_id(operation.player),
            score: Given::Int(operation.score),
            subscore: None,
            at: Some(Micros(operation.at_micros)),
            identity: None,
        };
        asked = Instant::now();
        submit(&tally, new).await?;
        let heard = Instant::now();
        latencies.record(heard - asked);
        asked = heard;
    }
    Ok(latencies)
}

fn list(store: &dyn Store, board: BoardNo) -> Result<Contents, StoreError> {
    let mut contents = Contents::default();
    let mut last = None;
    loop {
        let mut newest = None;
        let limit = ROWS as usize;
        let walked = store.walk_scores(board, ALL_TIME, last.as_ref(), limit, &mut |player, record| {
            contents.add(player.as_str(), record.score, record.subscore, record.at.0);
            newest = Some(player);
        })?;
        if walked < limit {
            return Ok(contents);
        }
        last = newest;
    }
}
