//! Submitting scores: one, or a list of rows of which each succeeds or fails alone.
//!
//! A score passes these types: [`NewScore`] as parsed, [`Submit`] as checked for the lane, `SubmitDecision` as decided in the
//! transaction, and [`Submitted`] as replied. Not here: the transaction (`batch`), and the update rule (`tally_rules::record`).

use super::batch::{
    Access, Applied, Effect, Effects, Piece, Players, Replying, RowTarget, ScoreBatchState, ScoreRequestKind,
    Slicing, TargetRow, Targets,
};
use super::shared::Shared;
use crate::boards::Board;
use crate::failure::Failure;
use crate::periods::view::View;
use crate::periods::{ALL_TIME_NAME, TargetWindow};
use crate::requests::{BatchKeys, KeyGuard};
use crate::tally::Tally;
use std::sync::Arc;
use tally_ranking::RankingBackend;
use tally_rules::definition::Subscore;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::outcome::Outcome;
use tally_rules::score::{self, ScoreInput};
use tally_rules::{BoardId, Definition, Micros, PlayerId, Record, Rejection};
use tally_store::{BoardNo, BoardRow, Window};

/// A score as a listener has parsed it.
#[derive(Clone, Debug)]
pub struct NewScore {
    /// The leaderboard.
    pub board: BoardId,
    /// The player.
    pub player: PlayerId,
    /// The number as the caller sent it.
    pub score: ScoreInput,
    /// The second integer, which orders equal scores.
    pub subscore: Option<i64>,
    /// When it happened, if the caller sets it.
    pub at: Option<Micros>,
    /// The idempotency key with the fingerprint of the request.
    pub idempotency: Option<IdempotencyKey>,
}

/// One score of one player, checked against its leaderboard.
#[derive(Clone, Debug)]
pub struct ScoreWrite {
    /// The player.
    pub player: PlayerId,
    /// The score, as an ordered integer.
    pub score: i64,
    /// The subscore; 0 if the leaderboard has none.
    pub subscore: i64,
    /// When it happened; the server's next instant if the caller does not set it.
    pub at: Option<Micros>,
}

/// A submit as the lane gets it.
#[derive(Clone, Debug)]
pub struct Submit {
    /// The leaderboard.
    pub board: Arc<Board>,
    /// The score.
    pub write: ScoreWrite,
    /// The idempotency key with the fingerprint of the request.
    pub idempotency: Option<IdempotencyKey>,
    /// Whether the reply names all windows that the score counts for.
    pub names_windows: bool,
}

/// A record before a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Previous {
    /// The record.
    pub record: Record,
    /// Its rank just before the change was published.
    pub rank: Option<u64>,
}

/// The reply to a submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The name of the window to which the record and the ranks belong.
    pub period: String,
    /// Names of the closed periods for which the score was too late.
    pub closed_periods: Vec<String>,
    /// The player's record after the submit.
    pub record: Record,
    /// Its rank just after the change was published; for a retry, its rank now.
    pub rank: Option<u64>,
    /// Whether the submit changed the record.
    pub changed: bool,
    /// The record before.
    pub previous: Option<Previous>,
    /// Whether this repeats an earlier reply.
    pub replayed: bool,
    /// The windows that the score counted for, in the order of the leaderboard; none if the caller did not ask for them.
    pub windows: Vec<CountedWindow>,
}

/// A window that a score counted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedWindow {
    /// Its name.
    pub period: String,
    /// The player's record there after the submit. A retry does not know it.
    pub record: Option<Record>,
}

impl Submitted {
    /// The reply to a retry, with the stored record. `Submit::replay` adds the rest.
    fn replay(record: Record) -> Self {
        let (period, closed_periods, previous) = (String::new(), Vec::new(), None);
        let windows = Vec::new();
        Self { period, closed_periods, record, rank: None, changed: false, previous, replayed: true, windows }
    }
}

#[derive(Debug)]
pub(crate) struct SubmitDecision {
    /// The record after and before, in the first window of the reply.
    record: Record,
    previous: Option<Record>,
    changed: bool,
    /// When the first request was decided, if this is a retry.
    replayed: Option<Micros>,
    /// The record after the submit in each of its windows; none for a retry.
    pub(super) records: Vec<(Window, Record)>,
}

impl ScoreRequestKind for Submit {
    type Decision = SubmitDecision;
    type Reply = Submitted;

    fn each_row<'a>(&'a self, each: &mut impl FnMut(TargetRow<'a>)) {
        each(self.row());
    }

    fn player(&self) -> Option<&PlayerId> {
        Some(&self.write.player)
    }

    fn idempotency(&self) -> Option<&IdempotencyKey> {
        self.idempotency.as_ref()
    }

    fn decide(
        &self,
        state: &mut ScoreBatchState,
        rows: &[RowTarget],
        _targets: &Targets,
    ) -> Result<SubmitDecision, Rejection> {
        if let Some(done) = self.replayed(state)? {
            return Ok(done);
        }
        state.check_live(self.board.no)?;
        let at = rows[0].at.clone()?;
        let Applied { previous, updated, records } =
            state.apply_attempt(&self.board, &self.write, at, &rows[0].windows)?;
        Ok(self.remembered(state, (previous, updated.record, updated.changed), records))
    }

    fn publish<'a>(
        &'a self,
        decision: &'a SubmitDecision,
        _rows: &'a [RowTarget],
        effects: &mut Effects<'a>,
    ) {
        if decision.replayed.is_none() {
            let (player, records) = (&self.write.player, &decision.records[..]);
            effects.add(&self.board, Effect::Scores { player, records, ranked: true });
        }
    }

    fn scores(&self, decision: &SubmitDecision) -> usize {
        usize::from(decision.replayed.is_none())
    }

    fn reply(&self, decision: SubmitDecision, with: Replying<'_>) -> Result<Submitted, Failure> {
        Ok(self.submitted_in(decision, with, None))
    }

    fn cut(&self, slicing: &Slicing<'_>, rows: &[RowTarget]) -> Option<Piece<Self>> {
        slicing.of_player(&self.write.player, self, rows)
    }
}

impl Submit {
    /// The decision of the first request, if this is a retry.
    pub(super) fn replayed(&self, state: &ScoreBatchState) -> Result<Option<SubmitDecision>, Rejection> {
        let done = match state.replay(self.idempotency.as_ref())? {
            Some((Outcome::Submitted { record, previous, changed, .. }, at)) => {
                Some(SubmitDecision { record, previous, changed, replayed: Some(at), records: Vec::new() })
            }
            Some(_) | None => None,
        };
        Ok(done)
    }

    /// The decision, stored for retries: the record before and after, and whether it has changed.
    pub(super) fn remembered(
        &self,
        state: &mut ScoreBatchState,
        (previous, record, changed): (Option<Record>, Record, bool),
        records: Vec<(Window, Record)>,
    ) -> SubmitDecision {
        let (score, subscore) = (self.board.definition.score, self.board.definition.has_subscore());
        let outcome = Outcome::Submitted { record, previous, changed, score, subscore };
        state.remember(self.idempotency.as_ref(), outcome);
        SubmitDecision { record, previous, changed, replayed: None, records }
    }

    pub(super) fn row(&self) -> TargetRow<'_> {
        let players = Players::one(&self.write.player);
        TargetRow { board: Some(&self.board), players, access: Access::Score(self.write.at) }
    }

    pub(super) fn submitted(&self, decision: SubmitDecision, with: Replying<'_>) -> Submitted {
        self.submitted_in(decision, with, None)
    }

    /// The reply; that to a retry is about the window of this name, or about the first one that the request counted for.
    pub(super) fn submitted_in(
        &self,
        decision: SubmitDecision,
        with: Replying<'_>,
        period: Option<&str>,
    ) -> Submitted {
        let SubmitDecision { record, previous, changed, replayed, records } = decision;
        let previous = previous.map(|record| Previous { record, rank: with.ranks.before });
        if let Some(then) = replayed {
            let done = Submitted { previous, changed, ..Submitted::replay(record) };
            let done = match period {
                Some(name) => Submitted { period: name.to_owned(), ..done },
                None => self.targeted_then(then, done),
            };
            return self.ranked_now(done, with.shared);
        }
        let name = |(window, _): &(Window, _)| with.targets.name(&self.board, *window);
        let counted = |one: &(Window, Record)| CountedWindow { period: name(one), record: Some(one.1) };
        let windows = if self.names_windows { records.iter().map(counted).collect() } else { Vec::new() };
        Submitted {
            period: records.first().map(name).unwrap_or_default(),
            closed_periods: with.rows[0].closed.clone(),
            record,
            rank: with.ranks.after,
            changed,
            previous,
            replayed: false,
            windows,
        }
    }

    /// Completes the reply to a retry with the periods of the first request, decided at `then`.
    fn targeted_then(&self, then: Micros, mut done: Submitted) -> Submitted {
        let board = &self.board;
        let (open, late) = board.periods().targets_then(self.write.at.map_or(then, |at| at.min(then)), then);
        done.closed_periods = late;
        let name = |target: &TargetWindow| {
            let (rule, span) = target.period?;
            board.periods().rule_no(rule).map(|state| state.name(span.start))
        };
        done.period = match open.first() {
            Some(target) if !board.definition.all_time => name(target).unwrap_or_default(),
            _ => ALL_TIME_NAME.to_owned(),
        };
        if self.names_windows {
            let all_time = board.definition.all_time.then(|| ALL_TIME_NAME.to_owned());
            let names = all_time.into_iter().chain(open.iter().filter_map(name));
            done.windows = names.map(|period| CountedWindow { period, record: None }).collect();
        }
        done
    }

    /// Completes the reply to a retry with the ranks of now.
    fn ranked_now(&self, mut done: Submitted, shared: &Shared) -> Submitted {
        let (board, player) = (&self.board, &self.write.player);
        // The period may be deleted by now. Then the reply has no ranks.
        let Ok(view) = View::find(board, Some(&done.period), shared.clock.now(), |_| None) else {
            return done;
        };
        let ranked = view.read(&*shared.store, |ranking| ranking.ranked(player)).map(|now| {
            done.rank = now.map(|now| now.rank);
        });
        let Some(previous) = done.previous.as_mut().filter(|_| ranked.is_ok() && !board.is_banned(player))
        else {
            return done;
        };
        previous.rank = view.read(&*shared.store, |ranking| ranking.rank_of(player, &previous.record)).ok();
        done
    }
}

/// Submits one score.
pub async fn submit(tally: &Tally, new: NewScore) -> RowResult {
    submit_naming(tally, new, false).await
}

/// The same, with the windows that the score counts for if `windows` is true.
pub async fn submit_naming(tally: &Tally, new: NewScore, windows: bool) -> RowResult {
    tally.of_present(&new.board, || submit_once(tally, &new, windows)).await
}

async fn submit_once(tally: &Tally, new: &NewScore, windows: bool) -> RowResult {
    match prepare(tally, new, &mut BatchKeys::default()) {
        Ok((submit, running)) => {
            let board = Arc::clone(&submit.board);
            let submit = Submit { names_windows: windows, ..submit };
            Ok((board, tally.lane.ask(submit, running).await?))
        }
        Err(rejection) => earlier(tally, new, rejection).await,
    }
}

/// The result of one row.
pub type RowResult = Result<(Arc<Board>, Submitted), Failure>;

/// Submits many scores, which stay together in the queue of a lane. Each row succeeds or fails alone. The call fails only if the
/// lane accepted none of them. Replies name the windows that a score counts for if `windows` is true.
pub async fn submit_batch(
    tally: &Tally,
    rows: Vec<NewScore>,
    windows: bool,
) -> Result<Vec<RowResult>, Failure> {
    let mut results: Vec<Option<RowResult>> = Vec::with_capacity(rows.len());
    let (mut requests, mut boards) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    // One read of the change feed for all rows.
    tally.refresh().await;
    let mut keys = BatchKeys::default();
    for row in rows {
        results.push(match prepare(tally, &row, &mut keys) {
            Ok((submit, running)) => {
                boards.push(Arc::clone(&submit.board));
                requests.push((Submit { names_windows: windows, ..submit }, running));
                None
            }
            Err(rejection) => Some(earlier(tally, &row, rejection).await),
        });
    }
    let replies = tally.lane.ask_all(requests).await?;
    let mut done = boards.into_iter().zip(replies).map(|(board, reply)| Ok((board, reply?)));
    let fill = |one: Option<RowResult>| one.unwrap_or_else(|| done.next().expect("one reply a request"));
    Ok(results.into_iter().map(fill).collect())
}

/// Checks a score and marks its idempotency key as running.
pub(super) fn prepare(
    tally: &Tally,
    new: &NewScore,
    keys: &mut BatchKeys,
) -> Result<(Submit, Option<KeyGuard>), Rejection> {
    let board = tally.boards.find(&new.board)?;
    let write = checked(&board.definition, new.player.clone(), new.score, new.subscore, new.at)?;
    let running = keys.begin(&tally.running, new.idempotency.as_ref())?;
    Ok((Submit { board, write, idempotency: new.idempotency.clone(), names_windows: false }, running))
}

/// The stored reply to a retry that is rejected now, such as after its leaderboard was deleted. Without one, the rejection.
pub(crate) async fn earlier(tally: &Tally, new: &NewScore, rejection: Rejection) -> RowResult {
    let stored = match &new.idempotency {
        Some(idempotency) if rejection != Rejection::IdempotencyInProgress => {
            tally.stored(idempotency).await?
        }
        Some(_) | None => None,
    };
    let Some(Outcome::Submitted { record, previous, changed, score, subscore }) = stored else {
        return Err(rejection.into());
    };
    // The reply needs a leaderboard only for the form of its numbers, which is stored with the outcome.
    let subscore = if subscore { Subscore::Descending } else { Subscore::None };
    let definition = Definition { score, subscore, ..Definition::default() };
    let row = BoardRow { no: BoardNo(0), id: new.board.clone(), definition, created_at: record.at };
    let previous = previous.map(|record| Previous { record, rank: None });
    let done = Submitted { previous, changed, period: ALL_TIME_NAME.into(), ..Submitted::replay(record) };
    Ok((Arc::new(Board::new(row, Vec::new(), &RankingBackend::Memory)?), done))
}

/// Checks a score against its leaderboard.
pub fn checked(
    definition: &Definition,
    player: PlayerId,
    given: ScoreInput,
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
