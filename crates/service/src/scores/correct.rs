//! Correcting a score: a record is set whatever the update rule says, in all time or in an open period. In a contest only the
//! record of all time can be corrected, and only during the review.
//!
//! It is a submit with another decision: the reply, the retry and the publication are those of `submit`. The record keeps its
//! instant, so ties stay as they were. Not here: whether a player takes part in a contest (`contests::correct`).

use super::batch::{
    Access, Effects, Piece, Replying, RowTarget, ScoreBatchState, ScoreRequestKind, Slicing, TargetRow,
    Targets, score_key,
};
use super::submit::{NewScore, RowResult, Submit, SubmitDecision, Submitted, earlier, prepare};
use crate::boards::Board;
use crate::failure::Failure;
use crate::periods::{ALL_TIME_NAME, TARGET_ALL_TIME, TargetWindow};
use crate::requests::BatchKeys;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::definition::ScoreType;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{Micros, PlayerId, Record, Rejection, score};
use tally_store::plan::ALL_TIME;

/// A corrected score.
#[derive(Clone, Debug)]
pub(crate) struct Correct {
    pub(crate) submit: Submit,
    pub(crate) audited: Audited,
    /// The window, and its public name.
    pub(crate) target: TargetWindow,
    pub(crate) period: String,
}

impl ScoreRequestKind for Correct {
    type Decision = SubmitDecision;
    type Reply = Submitted;

    fn each_row<'a>(&'a self, each: &mut impl FnMut(TargetRow<'a>)) {
        each(TargetRow { access: Access::Correct(self.target), ..self.submit.row() });
    }

    fn player(&self) -> Option<&PlayerId> {
        self.submit.player()
    }

    fn idempotency(&self) -> Option<&IdempotencyKey> {
        self.submit.idempotency()
    }

    fn decide(
        &self,
        state: &mut ScoreBatchState,
        rows: &[RowTarget],
        _targets: &Targets,
    ) -> Result<SubmitDecision, Rejection> {
        if let Some(done) = self.submit.replayed(state)? {
            return Ok(done);
        }
        let Submit { board, write, .. } = &self.submit;
        state.check_live(board.no)?;
        let now = rows[0].at.clone()?;
        let window = self.target.window;
        let key = score_key(board.no, window, &write.player);
        let previous = state.scores.get(&key).copied();
        let at = previous.map_or(now, |record| record.at);
        let record = Record { score: write.score, subscore: write.subscore, at };
        state.scores.set(&key, Some(record));
        let changed = previous != Some(record);
        if changed {
            let before = previous.map_or_else(|| "none".into(), |record| shown(board, record));
            let part = if window == ALL_TIME { String::new() } else { format!(" {}", self.period) };
            let detail = format!("{}{part}: {before} to {}", board.id.as_str(), shown(board, record)).into();
            let row = self.audited.row(AuditAction::ScoreCorrected, write.player.as_str(), Some(detail));
            state.audit.push(row);
        }
        let done = (previous, record, changed);
        Ok(self.submit.remembered(state, done, vec![(window, record)]))
    }

    fn publish<'a>(&'a self, decision: &'a SubmitDecision, rows: &'a [RowTarget], effects: &mut Effects<'a>) {
        self.submit.publish(decision, rows, effects);
    }

    fn reply(&self, decision: SubmitDecision, with: Replying<'_>) -> Result<Submitted, Failure> {
        Ok(self.submit.submitted_in(decision, with, Some(&self.period)))
    }

    fn cut(&self, slicing: &Slicing<'_>, rows: &[RowTarget]) -> Option<Piece<Self>> {
        slicing.of_player(&self.submit.write.player, self, rows)
    }
}

/// A score as the audit log has it, with its subscore.
pub(super) fn shown(board: &Board, record: Record) -> String {
    let score = match board.definition.score {
        ScoreType::Int64 => record.score.to_string(),
        // Short for large numbers too.
        ScoreType::Float64 => format!("{:?}", score::to_f64(record.score)),
    };
    if board.definition.has_subscore() { format!("{score}/{}", record.subscore) } else { score }
}

/// Corrects a score in all time, or in the open period of this name.
pub(crate) async fn correct(
    tally: &Tally,
    new: &NewScore,
    period: Option<&str>,
    audited: &Audited,
) -> RowResult {
    tally.of_present(&new.board, || once(tally, new, period, audited)).await
}

async fn once(tally: &Tally, new: &NewScore, period: Option<&str>, audited: &Audited) -> RowResult {
    let prepared = prepare(tally, new, &mut BatchKeys::default()).and_then(|(submit, running)| {
        let (target, period) = target(&submit.board, period, tally.now())?;
        Ok((Correct { submit, audited: audited.clone(), target, period }, running))
    });
    match prepared {
        Ok((request, running)) => {
            let board = Arc::clone(&request.submit.board);
            Ok((board, tally.lane.ask(request, running).await?))
        }
        Err(rejection) => earlier(tally, new, rejection).await,
    }
}

/// The window of that name: all time, or the period of a rule that is open, such as `weekly` or `weekly:2026-11-23`.
fn target(board: &Board, period: Option<&str>, now: Micros) -> Result<(TargetWindow, String), Rejection> {
    let period = match period {
        None | Some(ALL_TIME_NAME) if board.definition.all_time => {
            return Ok((TARGET_ALL_TIME, ALL_TIME_NAME.into()));
        }
        None | Some(ALL_TIME_NAME) => return Err(Rejection::PeriodNotFound),
        Some(period) => period,
    };
    let (rule, which) = period.split_once(':').map_or((period, None), |(rule, which)| (rule, Some(which)));
    let periods = board.periods();
    let state = periods.rule(rule).ok_or(Rejection::PeriodNotFound)?;
    let at = match which {
        None => now,
        Some(which) => state.calendar.local_instant(which).ok_or(Rejection::PeriodNotFound)?,
    };
    let span = state.span_at(at).ok_or(Rejection::PeriodNotFound)?;
    if !state.takes(span, now) {
        return Err(Rejection::PeriodClosed(None));
    }
    Ok((state.target(span), state.name(span.start)))
}
