//! Submitting scores: one, or a batch whose rows stand for themselves.

use super::command::{Done, Request, ScoreWrite, Submit, Submitted};
use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::idempotency::Identity;
use tally_rules::score::{self, Given};
use tally_rules::{BoardId, Definition, Micros, PlayerId, Refusal};

/// A score as a door has parsed it.
#[derive(Clone, Debug)]
pub struct NewScore {
    /// Where.
    pub board: BoardId,
    /// Who.
    pub player: PlayerId,
    /// How much.
    pub score: Given,
    /// The second number.
    pub subscore: Option<i64>,
    /// When, if the caller says so.
    pub at: Option<Micros>,
    /// For retries.
    pub identity: Option<Identity>,
}

/// Submits one score.
pub async fn submit(tally: &Tally, new: NewScore) -> Result<(Arc<Board>, Submitted), Failure> {
    let board = tally.boards.find(&new.board)?;
    let write = checked(&board.definition, new.player, new.score, new.subscore, new.at)?;
    let running = new.identity.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    let request = Request::Submit(Submit { board: Arc::clone(&board), write, identity: new.identity });
    let done = tally.lane.ask(request, running).await?;
    Ok((board, submitted(done)))
}

/// One row's result.
pub type RowResult = Result<(Arc<Board>, Submitted), Failure>;

/// Submits many scores as neighbours. Each row succeeds or fails alone; the whole fails only if nothing was taken.
pub async fn submit_batch(tally: &Tally, rows: Vec<NewScore>) -> Result<Vec<RowResult>, Failure> {
    let mut results: Vec<Option<RowResult>> = Vec::with_capacity(rows.len());
    let (mut requests, mut boards) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in rows {
        match prepare(tally, row) {
            Ok((board, request)) => {
                boards.push(board);
                requests.push(request);
                results.push(None);
            }
            Err(failure) => results.push(Some(Err(failure))),
        }
    }
    let answers = tally.lane.ask_all(requests).await?;
    let mut answered = boards.into_iter().zip(answers).map(|(board, answer)| match answer {
        Ok(Ok(done)) => Ok((board, submitted(done))),
        Ok(Err(refusal)) => Err(Failure::Refused(refusal)),
        Err(fault) => Err(Failure::Fault(fault)),
    });
    let fill = |one: Option<RowResult>| one.unwrap_or_else(|| answered.next().expect("one answer a request"));
    Ok(results.into_iter().map(fill).collect())
}

type Prepared = (Arc<Board>, (Request, Option<crate::requests::Running>));

fn prepare(tally: &Tally, row: NewScore) -> Result<Prepared, Failure> {
    let board = tally.boards.find(&row.board)?;
    let write = checked(&board.definition, row.player, row.score, row.subscore, row.at)?;
    let running = row.identity.as_ref().map(|one| tally.running.begin(&one.key)).transpose()?;
    let request = Request::Submit(Submit { board: Arc::clone(&board), write, identity: row.identity });
    Ok((board, (request, running)))
}

/// A score as its board holds it.
pub(super) fn checked(
    definition: &Definition,
    player: PlayerId,
    given: Given,
    subscore: Option<i64>,
    at: Option<Micros>,
) -> Result<ScoreWrite, Refusal> {
    let score = score::ordered(definition.score, given).map_err(Refusal::InvalidScore)?;
    let subscore = match (definition.has_subscore(), subscore) {
        (true, Some(subscore)) => subscore,
        (false, None) => 0,
        (true, None) => return Err(Refusal::InvalidSubscore("is required: this leaderboard has a subscore")),
        (false, Some(_)) => {
            return Err(Refusal::InvalidSubscore("must be left out: this leaderboard has no subscore"));
        }
    };
    Ok(ScoreWrite { player, score, subscore, at })
}

fn submitted(done: Done) -> Submitted {
    match done {
        Done::Submitted(submitted) => submitted,
        Done::Removed(_) | Done::Imported(_) => unreachable!("a submit is answered as a submit"),
    }
}

/// A fault that one row has is one for the whole answer where every row has it.
pub fn common_fault(results: &[RowResult]) -> Option<Fault> {
    let fault = |one: &RowResult| match one {
        Err(Failure::Fault(fault)) => Some(fault.clone()),
        Ok(_) | Err(Failure::Refused(_)) => None,
    };
    let first = results.first().and_then(fault)?;
    results.iter().all(|one| fault(one).is_some()).then_some(first)
}
