//! Submitting scores: one, or a batch whose rows stand for themselves.

use super::command::{Done, Previous, Request, ScoreWrite, Submit, Submitted};
use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::periods::ALL_TIME_NAME;
use crate::requests::{Begun, Running};
use crate::tally::Tally;
use std::sync::Arc;
use tally_ranking::RankingBackend;
use tally_rules::definition::Subscore;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::outcome::Outcome;
use tally_rules::score::{self, Given};
use tally_rules::{BoardId, Definition, Micros, PlayerId, Rejection};
use tally_store::{BoardNo, BoardRow};

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
    pub identity: Option<IdempotencyKey>,
}

/// Submits one score.
pub async fn submit(tally: &Tally, new: NewScore) -> RowResult {
    tally.of_present(&new.board, || submit_once(tally, &new)).await
}

async fn submit_once(tally: &Tally, new: &NewScore) -> RowResult {
    let (board, request, running) = match prepare(tally, new, &mut Begun::default()) {
        Ok(prepared) => prepared,
        Err(rejection) => return earlier(tally, new, rejection).await,
    };
    let done = tally.lane.ask(request, running).await?;
    Ok((board, submitted(done)))
}

/// One row's result.
pub type RowResult = Result<(Arc<Board>, Submitted), Failure>;

/// Submits many scores as neighbours. Each row succeeds or fails alone; the whole fails only if nothing was taken.
pub async fn submit_batch(tally: &Tally, rows: Vec<NewScore>) -> Result<Vec<RowResult>, Failure> {
    let mut results: Vec<Option<RowResult>> = Vec::with_capacity(rows.len());
    let (mut requests, mut boards) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    // What other servers have made or deleted: one look for all rows.
    tally.looked_now().await;
    let mut begun = Begun::default();
    for row in rows {
        match prepare(tally, &row, &mut begun) {
            Ok((board, request, running)) => {
                boards.push(board);
                requests.push((request, running));
                results.push(None);
            }
            Err(rejection) => results.push(Some(earlier(tally, &row, rejection).await)),
        }
    }
    let answers = tally.lane.ask_all(requests).await?;
    let mut answered = boards.into_iter().zip(answers).map(|(board, answer)| match answer {
        Ok(Ok(done)) => Ok((board, submitted(done))),
        Ok(Err(rejection)) => Err(Failure::Refused(rejection)),
        Err(fault) => Err(Failure::Fault(fault)),
    });
    let fill = |one: Option<RowResult>| one.unwrap_or_else(|| answered.next().expect("one answer a request"));
    Ok(results.into_iter().map(fill).collect())
}

type Prepared = (Arc<Board>, Request, Option<Running>);

fn prepare(tally: &Tally, new: &NewScore, begun: &mut Begun) -> Result<Prepared, Rejection> {
    let board = tally.boards.find(&new.board)?;
    let write = checked(&board.definition, new.player.clone(), new.score, new.subscore, new.at)?;
    let running = begun.begin(&tally.running, new.identity.as_ref())?;
    let request =
        Request::Submit(Submit { board: Arc::clone(&board), write, identity: new.identity.clone() });
    Ok((board, request, running))
}

/// What to say of a submit that cannot be done now: its first answer, if it was done before.
async fn earlier(tally: &Tally, new: &NewScore, rejection: Rejection) -> RowResult {
    let stored = match &new.identity {
        Some(identity) if rejection != Rejection::IdempotencyInProgress => tally.stored(identity).await?,
        Some(_) | None => None,
    };
    let Some(Outcome::Submitted { record, previous, changed, score, subscore }) = stored else {
        return Err(rejection.into());
    };
    let subscore = if subscore { Subscore::Descending } else { Subscore::None };
    let definition = Definition { score, subscore, ..Definition::default() };
    let row = BoardRow { no: BoardNo(0), id: new.board.clone(), definition, created_at: record.at };
    let previous = previous.map(|record| Previous { record, rank: None });
    let (period, closed_periods) = (ALL_TIME_NAME.to_owned(), Vec::new());
    let done = Submitted { period, closed_periods, record, rank: None, changed, previous, replayed: true };
    Ok((Arc::new(Board::new(row, Vec::new(), &RankingBackend::Memory)?), done))
}

/// A score as its board holds it.
pub fn checked(
    definition: &Definition,
    player: PlayerId,
    given: Given,
    subscore: Option<i64>,
    at: Option<Micros>,
) -> Result<ScoreWrite, Rejection> {
    let score = score::ordered(definition.score, given).map_err(Rejection::InvalidScore)?;
    let subscore = match (definition.has_subscore(), subscore) {
        (true, Some(subscore)) => subscore,
        (false, None) => 0,
        (true, None) => {
            return Err(Rejection::InvalidSubscore("is required: this leaderboard has a subscore"));
        }
        (false, Some(_)) => {
            return Err(Rejection::InvalidSubscore("must be left out: this leaderboard has no subscore"));
        }
    };
    Ok(ScoreWrite { player, score, subscore, at })
}

fn submitted(done: Done) -> Submitted {
    match done {
        Done::Submitted(submitted) => submitted,
        _ => unreachable!("a submit is answered as a submit"),
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
