//! The service in this process, its lanes in front of a store, for the scenarios without the wire.
//!
//! Callers are futures that await the same use case as the listeners do, so a reply has the previous score and both ranks.
//! Not here: the store, and the submits.

use crate::submit::{BEGIN_MICROS, Contents, Operation};
use std::sync::Arc;
use tally_load::player;
use tally_rules::definition::{Definition, Update};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, PlayerId, Record};
use tally_service::scores::submit::{NewScore, submit};
use tally_service::secret::Secret;
use tally_service::{Failure, Keys, Progress, Settings, Tally, clock};
use tally_store::plan::{ALL_TIME, BoardChange};
use tally_store::{BoardNo, BoardRow, ReadSet, ScoreKey, Store, StoreError, WriteSet};

/// Rows of one transaction while filling, and of one step of a range scan.
const ROWS: u64 = 10_000;

/// Makes a board that keeps the latest score, with a score for every player.
pub(crate) fn fill(store: &dyn Store, board: &BoardId, players: u64) -> Result<BoardNo, StoreError> {
    let plan = ReadSet { board_names: vec![board.clone()], ..ReadSet::default() };
    let mut no = BoardNo::default();
    store.run(&plan, &mut |loaded| {
        no = loaded.next_board;
        let definition = Definition { update: Update::Latest, ..Definition::default() };
        let row = BoardRow { no, id: board.clone(), definition, created_at: Micros(BEGIN_MICROS) };
        WriteSet { boards: vec![BoardChange::Create(row)], ..WriteSet::default() }
    })?;
    let record = Record { score: 0, subscore: 0, at: Micros(BEGIN_MICROS) };
    let mut next = 0;
    while next < players {
        let end = players.min(next + ROWS);
        let key = |number| ScoreKey { board: no, window: ALL_TIME, player: player_id(number) };
        let scores: Vec<_> = (next..end).map(|number| (key(number), Some(record))).collect();
        store
            .run(&ReadSet::default(), &mut |_| WriteSet { scores: scores.clone(), ..WriteSet::default() })?;
        next = end;
    }
    Ok(no)
}

/// Starts the service, with the settings of the product.
pub(crate) fn serve(store: &Arc<dyn Store>, lanes: usize) -> Result<Arc<Tally>, Failure> {
    // Nothing outlives the run, so nothing must be secret.
    let (secret, settings) = (Secret::new([7; 32]), Settings { lanes, ..Settings::default() });
    let keys = Keys::load(Arc::clone(store), secret.clone(), clock::system(), &settings)?;
    let progress = Progress::default();
    Tally::start(Arc::clone(store), Arc::new(keys), clock::system(), settings, &progress)
}

/// A submit as an argument of the service.
pub(crate) fn new_score(board: &BoardId, operation: &Operation) -> NewScore {
    NewScore {
        board: board.clone(),
        player: player_id(operation.player),
        score: ScoreInput::Int(operation.score),
        subscore: None,
        at: Some(Micros(operation.at_micros)),
        idempotency: None,
    }
}

/// Submits and waits until it is durable; returns the previous score.
pub(crate) async fn call(tally: &Tally, new: NewScore) -> Result<Option<i64>, Failure> {
    let (_, done) = submit(tally, new).await?;
    Ok(done.previous.map(|previous| previous.record.score))
}

/// The records of the board, in order of players.
pub(crate) fn list(store: &dyn Store, board: BoardNo) -> Result<Contents, StoreError> {
    let mut contents = Contents::default();
    let mut last = None;
    loop {
        let mut newest = None;
        let limit = ROWS as usize;
        let scanned = store.scan_scores(board, ALL_TIME, last.as_ref(), limit, &mut |player, record| {
            contents.add(player.as_str(), record.score, record.subscore, record.at.0);
            newest = Some(player);
        })?;
        if scanned < limit {
            return Ok(contents);
        }
        last = newest;
    }
}

fn player_id(number: u64) -> PlayerId {
    PlayerId::new(&player(number)).expect("a good name")
}
