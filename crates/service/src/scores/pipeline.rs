//! Commands of one connection as one request: writes of several leaderboards, taken in order, with reads in between.
//!
//! Commands that arrive together cost one entry in the queue and one wake-up. Steps are decided like any other request. A read
//! among them runs in its turn while the batch is published: it sees the steps before it and none after it. An atomic pipeline
//! keeps readers out of the rankings that it changes until its last step is done.

use super::batch::{
    Decision, Effect, Effects, Piece, RecordChange, Replying, RowTarget, ScoreBatchState, ScoreRequestKind,
    Shards, Slicing, TargetRow, Targets, Versions, WindowInMemory,
};
use super::rankings::Rankings;
use super::select::select;
use super::steps::{PipelineStep, StepDone, StepReply};
use crate::boards::Board;
use crate::failure::Failure;
use crate::tally::Tally;
use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::{Arc, PoisonError};
use tally_ranking::{LockedRanking, Published, RankingChange, RankingError};
use tally_rules::{PlayerId, Record, Rejection};
use tally_store::{BoardNo, ReadSet, Window};

/// Steps, in order.
#[derive(Debug)]
pub struct Pipeline {
    /// The commands.
    pub steps: Vec<PipelineStep>,
    /// Whether other clients see all of it or nothing.
    pub atomic: bool,
    /// Whether the reply may come before the changes are durable.
    pub relaxed: bool,
    /// Whether it shares a batch with nothing else.
    pub alone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct PipelineDecision {
    steps: Vec<StepDone>,
    /// Why a shard has rejected all of its steps.
    rejected: Option<Rejection>,
    /// Whether a shard of several has done its steps.
    is_begun: bool,
    /// Players that it takes by rank, found before it is cut into slices, in the requested order.
    taken: Vec<(PlayerId, Record)>,
}

impl ScoreRequestKind for Pipeline {
    type Decision = PipelineDecision;
    type Reply = Vec<StepReply>;

    fn each_row<'a>(&'a self, each: &mut impl FnMut(TargetRow<'a>)) {
        self.steps.iter().for_each(|step| each(step.row()));
    }

    fn player(&self) -> Option<&PlayerId> {
        let mut only = None;
        for step in &self.steps {
            let mut players = step.row().players.iter();
            let (Some(player), None) = (players.next(), players.next()) else { return None };
            if *only.get_or_insert(player) != player {
                return None;
            }
        }
        only.filter(|_| !self.atomic)
    }

    fn weight(&self) -> usize {
        self.steps.iter().map(PipelineStep::weight).sum()
    }

    fn is_alone(&self) -> bool {
        self.alone
    }

    fn is_relaxed(&self) -> bool {
        self.relaxed
    }

    fn read(&self, _targets: &Targets, plan: &mut ReadSet) {
        plan.requests.extend(self.steps.iter().filter_map(|step| Some(step.idempotency()?.key.clone())));
    }

    /// A deleted leaderboard rejects all steps, before anything is done.
    fn decide(
        &self,
        state: &mut ScoreBatchState,
        rows: &[RowTarget],
        targets: &Targets,
    ) -> Result<PipelineDecision, Rejection> {
        for board in self.steps.iter().filter_map(|step| step.row().board) {
            state.check_live(board.no)?;
        }
        let rejected = |rejection| StepDone::of(StepReply::Rejected(rejection));
        let steps = self.steps.iter().zip(rows);
        let steps = steps.map(|(step, row)| step.decide(state, row, targets).unwrap_or_else(rejected));
        Ok(PipelineDecision { steps: steps.collect(), ..PipelineDecision::default() })
    }

    fn publish<'a>(
        &'a self,
        decision: &'a PipelineDecision,
        _rows: &'a [RowTarget],
        effects: &mut Effects<'a>,
    ) {
        for (step, done) in self.steps.iter().zip(&decision.steps) {
            if let Some(board) = step.row().board.filter(|_| !done.changes.is_empty()) {
                effects.add(board, Effect::Changes(&done.changes));
            }
        }
    }

    /// Some reply depends on the rankings just then.
    fn is_serial(&self) -> bool {
        self.atomic
            || self.steps.iter().any(|step| matches!(step, PipelineStep::Submit(_) | PipelineStep::Read(_)))
    }

    /// Publishes the steps one after the other. The rankings that they change are held until the last one.
    fn publish_serially(
        &mut self,
        decision: &mut PipelineDecision,
        targets: &Targets,
        versions: &Versions<'_>,
    ) {
        let dones = &mut decision.steps;
        // All holders of several rankings lock them in one order.
        let mut windows: BTreeMap<(BoardNo, Window), WindowInMemory> = BTreeMap::new();
        for (step, done) in self.steps.iter().zip(dones.iter()) {
            let Some(board) = step.row().board else { continue };
            for (window, _, _) in &done.changes {
                if !windows.contains_key(&(board.no, *window)) {
                    windows.extend(
                        targets.ranking_of(board, *window).map(|ranking| ((board.no, *window), ranking)),
                    );
                }
            }
        }
        let held =
            windows.iter().map(|((board, window), ranking)| (*board, *window, ranking.ranking().hold()));
        let mut held: Vec<_> = held.collect();
        let mut buffer = Vec::new();
        for (step, done) in self.steps.iter_mut().zip(dones.iter_mut()) {
            if let PipelineStep::Read(read) = step {
                done.reply = StepReply::Read(read.run(&Rankings::held(&held), &mut buffer));
            } else if let Some(board) = step.row().board {
                let is_ranked = done.submit.is_some();
                let ranks = publish_held(board, &done.changes, is_ranked, (&mut held, versions));
                done.submit.iter_mut().for_each(|(_, around)| *around = ranks);
            }
        }
        for (step, done) in self.steps.iter().zip(dones.iter()) {
            let watched = |board: &&Arc<Board>| board.live.is_watched() && !board.is_shared();
            let Some(board) = step.row().board.filter(watched) else { continue };
            for (window, player, _) in done.changes.iter().filter(|(window, ..)| board.shows_live(*window)) {
                board.live.note(*window, std::iter::once(player));
            }
        }
    }

    fn scores(&self, decision: &PipelineDecision) -> usize {
        let scores = |(step, done): (&PipelineStep, &StepDone)| match (step, &done.submit, &done.reply) {
            (PipelineStep::Submit(submit), Some((decided, _)), _) => submit.scores(decided),
            (PipelineStep::Add { items, .. }, _, StepReply::Added { .. }) => items.len(),
            _ => 0,
        };
        self.steps.iter().zip(&decision.steps).map(scores).sum()
    }

    fn reply(&self, decision: PipelineDecision, with: Replying<'_>) -> Result<Vec<StepReply>, Failure> {
        let PipelineDecision { steps, rejected, is_begun, taken } = decision;
        if let Some(rejection) = rejected.filter(|_| !is_begun) {
            return Err(rejection.into());
        }
        let places: BTreeMap<_, _> =
            taken.iter().enumerate().map(|(place, (player, _))| (player, place)).collect();
        let reply = |((step, done), row): ((&PipelineStep, StepDone), &RowTarget)| match (
            step,
            done.submit,
            done.reply,
        ) {
            (PipelineStep::Submit(submit), Some((decided, ranks)), _) => {
                let with = Replying { rows: from_ref(row), ranks, ..with };
                StepReply::Submitted(submit.submitted(decided, with))
            }
            (_, _, StepReply::Took(mut list)) if !places.is_empty() => {
                // In the requested order, whichever shard they are on.
                list.sort_by_key(|(player, _)| places.get(player).copied());
                StepReply::Took(list)
            }
            (_, _, reply) => reply,
        };
        Ok(self.steps.iter().zip(steps).zip(with.rows).map(reply).collect())
    }

    fn cut(&self, slicing: &Slicing<'_>, rows: &[RowTarget]) -> Option<Piece<Self>> {
        let Decision::Pipeline(known) = slicing.known else { return None };
        let (mut places, mut steps, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for (nth, (step, row)) in self.steps.iter().zip(rows).enumerate() {
            if let Some(step) = step.cut(slicing, &known.taken) {
                places.push(nth);
                steps.push(step);
                targets.push(row.clone());
            }
        }
        if steps.is_empty() {
            return None;
        }
        // A deleted leaderboard rejects all steps, whatever the shards of their players.
        for (step, row) in self.steps.iter().zip(rows) {
            if let Some(board) = step.row().board {
                steps.push(PipelineStep::Remove { board: Arc::clone(board), players: Vec::new() });
                targets.push(row.clone());
            }
        }
        Some(Piece { request: Self { steps, ..*self }, rows: targets, steps: places })
    }

    fn pending(
        &self,
        rows: &[RowTarget],
        targets: &Targets,
    ) -> Result<Option<PipelineDecision>, RankingError> {
        let mut taken = Vec::new();
        if let [PipelineStep::Take { board, which, .. }] = &self.steps[..]
            && let Some(shown) = rows[0].windows.first().and_then(|window| targets.ranking_of(board, *window))
        {
            taken = shown.ranking().read(|ranking| select(&board.definition, ranking, &[], which))?;
        }
        let steps = self.steps.iter().map(PipelineStep::pending).collect();
        Ok(Some(PipelineDecision { steps, taken, ..PipelineDecision::default() }))
    }

    fn join(known: Decision, new: Decision, steps: &[usize]) -> Decision {
        let Decision::Pipeline(mut known) = known else { return new };
        let mut join_all = |reply: &dyn Fn() -> StepReply| {
            steps.iter().for_each(|nth| known.steps[*nth].join(StepDone::of(reply())));
        };
        match new {
            Decision::Pipeline(new) => {
                steps.iter().zip(new.steps).for_each(|(nth, done)| known.steps[*nth].join(done));
                known.is_begun = true;
            }
            Decision::Rejected(rejection) => {
                join_all(&|| StepReply::Rejected(rejection.clone()));
                known.rejected = Some(rejection);
            }
            Decision::Failed(fault) => join_all(&|| StepReply::Failed(fault.clone())),
            _ => unreachable!("a decision is of the kind of its request"),
        }
        Decision::Pipeline(known)
    }
}

/// Publishes changes in rankings that are held; returns the ranks around the first if they are wanted.
fn publish_held(
    board: &Board,
    changes: &[RecordChange],
    ranked: bool,
    (held, versions): (&mut [(BoardNo, Window, LockedRanking<'_>)], &Versions<'_>),
) -> Published {
    let banned = board.banned.read().unwrap_or_else(PoisonError::into_inner);
    let mut first = Published::default();
    for (nth, (window, player, record)) in changes.iter().enumerate() {
        let ranking = held.iter_mut().find(|one| one.0 == board.no && one.1 == *window);
        let Some((_, _, ranking)) = ranking.filter(|_| !banned.contains(player)) else { continue };
        let ranked = ranked && nth == 0;
        let moved = RankingChange { player: player.clone(), record: *record, ranked };
        first = ranking.publish(&moved, versions.of_player(player)).unwrap_or(first);
    }
    first
}

/// Runs a pipeline; replies in order. On several shards a step that takes players by rank is a separate request: it finds these
/// players while nothing else changes them.
pub async fn run(tally: &Tally, pipeline: Pipeline) -> Result<Vec<StepReply>, Failure> {
    let is_taking = |step: &PipelineStep| matches!(step, PipelineStep::Take { .. });
    if tally.store.shards() == 1 || !pipeline.steps.iter().any(is_taking) {
        return ask(tally, pipeline).await;
    }
    let (mut pieces, mut replies): (Vec<Vec<PipelineStep>>, Vec<StepReply>) = (Vec::new(), Vec::new());
    for step in pipeline.steps {
        match pieces.last_mut().filter(|piece| !is_taking(&step) && !is_taking(&piece[0])) {
            Some(piece) => piece.push(step),
            None => pieces.push(vec![step]),
        }
    }
    for steps in pieces {
        let (count, alone) = (steps.len(), is_taking(&steps[0]));
        let done = ask(tally, Pipeline { steps, alone, ..pipeline }).await;
        match done {
            Ok(some) => replies.extend(some),
            // Nothing is done yet.
            Err(failure) if replies.is_empty() => return Err(failure),
            Err(failure) => replies.extend((0..count).map(|_| match failure.clone() {
                Failure::Fault(fault) => StepReply::Failed(fault),
                Failure::Rejected(rejection) => StepReply::Rejected(rejection),
            })),
        }
    }
    Ok(replies)
}

async fn ask(tally: &Tally, pipeline: Pipeline) -> Result<Vec<StepReply>, Failure> {
    tally.lane.ask(pipeline, None).await
}

/// Whether steps concern players of several shards, so that they cannot be one transaction.
pub fn concern_several(tally: &Tally, steps: &[PipelineStep]) -> bool {
    let mut shards = Shards::new(&*tally.store);
    steps.iter().for_each(|step| shards.row(step.row()));
    tally.store.shards() > 1 && shards.set.len() > 1
}
