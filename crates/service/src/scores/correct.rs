//! Correcting a score: a record is set whatever the update rule says, while the contest of its leaderboard is reviewed.
//!
//! It is a submit with another decision: the reply, the retry and the publication are those of `submit`. The record keeps its
//! instant, so ties stay as they were. Not here: who may, and whether the player takes part (`contests::correct`).

use super::batch::{
    Access, Effects, Kind, Piece, Replying, RowTarget, ScoreBatchState, Slicing, TargetRow, Targets,
    score_key,
};
use super::submit::{NewScore, RowResult, Submit, SubmitDecision, Submitted, earlier, prepare};
use crate::boards::Board;
use crate::failure::Failure;
use crate::requests::BatchKeys;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::audit::{AuditAction, Audited};
use tally_rules::definition::ScoreType;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{PlayerId, Record, Rejection, score};
use tally_store::plan::ALL_TIME;

/// A corrected score.
#[derive(Clone, Debug)]
pub(crate) struct Correct {
    pub(crate) submit: Submit,
    pub(crate) audited: Audited,
}

impl Kind for Correct {
    type Decision = SubmitDecision;
    type Reply = Submitted;

    fn each_row<'a>(&'a self, each: &mut impl FnMut(TargetRow<'a>)) {
        each(TargetRow { access: Access::Correct, ..self.submit.row() });
    }

    fn player(&self) -> Option<&PlayerId> {
        self.submit.player()
    }

    fn identity(&self) -> Option<&IdempotencyKey> {
        self.submit.identity()
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
        let key = score_key(board.no, ALL_TIME, &write.player);
        let previous = state.scores.get(&key).copied();
        let at = previous.map_or(now, |record| record.at);
        let record = Record { score: write.score, subscore: write.subscore, at };
        state.scores.set(&key, Some(record));
        let before = previous.map_or_else(|| "none".into(), |record| shown(board, record));
        let detail = format!("{}: {before} to {}", board.id.as_str(), shown(board, record)).into();
        state.audit.push(self.audited.row(AuditAction::ScoreCorrected, write.player.as_str(), Some(detail)));
        let done = (previous, record, previous != Some(record));
        Ok(self.submit.remembered(state, done, vec![(ALL_TIME, record)]))
    }

    fn publish<'a>(&'a self, decision: &'a SubmitDecision, rows: &'a [RowTarget], effects: &mut Effects<'a>) {
        self.submit.publish(decision, rows, effects);
    }

    fn reply(&self, decision: SubmitDecision, with: Replying<'_>) -> Result<Submitted, Failure> {
        self.submit.reply(decision, with)
    }

    fn cut(&self, slicing: &Slicing<'_>, rows: &[RowTarget]) -> Option<Piece<Self>> {
        slicing.of_player(&self.submit.write.player, self, rows)
    }
}

/// A score as the audit log has it, with its subscore.
fn shown(board: &Board, record: Record) -> String {
    let score = match board.definition.score {
        ScoreType::Int64 => record.score.to_string(),
        // Short for large numbers too.
        ScoreType::Float64 => format!("{:?}", score::to_f64(record.score)),
    };
    if board.definition.has_subscore() { format!("{score}/{}", record.subscore) } else { score }
}

/// Corrects a score.
pub(crate) async fn correct(tally: &Tally, new: &NewScore, audited: &Audited) -> RowResult {
    tally.of_present(&new.board, || once(tally, new, audited)).await
}

async fn once(tally: &Tally, new: &NewScore, audited: &Audited) -> RowResult {
    match prepare(tally, new, &mut BatchKeys::default()) {
        Ok((submit, running)) => {
            let board = Arc::clone(&submit.board);
            let request = Correct { submit, audited: audited.clone() };
            Ok((board, tally.lane.ask(request, running).await?))
        }
        Err(rejection) => earlier(tally, new, rejection).await,
    }
}
