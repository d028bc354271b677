//! What a score lane does with a batch: one transaction, then one publication, then the answers.
//!
//! A player's requests are in one lane at a time, so lanes need not wait for each other; what concerns several players has a
//! lane of its own, whose batches pass the gate alone. So do bans, and batches that open a period, at their own database: a
//! commit in doubt keeps no batch of another database waiting.

use super::aim::Aims;
use super::answer::{answer, before};
use super::command::{Done, Request, Submit, Submitted};
use super::decide::Decision;
use super::publish::Versions;
use super::several::Doubt;
use super::shared::Shared;
use super::standing::{OnDatabase, Standing, Stood, Unready};
use super::steps::{Step, StepDone, StepReply};
use super::transact::Part;
use super::{publish, spread};
use crate::clock::Judged;
use crate::failure::Fault;
use crate::periods::ALL_TIME_NAME;
use crate::periods::stale::Stale;
use crate::periods::view::View;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use tally_lanes::{BarrierGuard, BatchHandler, Failure, Histogram, Kind, Resolution, Weight};
use tally_rules::{Micros, Rejection};
use tally_store::{BatchId, BoardNo, PartRow, ScoreKey, ShardSet};

/// Bytes a request holds beside its player's name: a rough sum of the structures, for the queue's bound.
const REQUEST_BYTES: u32 = 256;

/// How often a batch is planned again before it is one of those that met others.
pub(super) const TRIES: usize = 16;

/// Why a batch is given up.
pub(super) const CHANGED: &str = "its leaderboards are changed by other servers all the time";

/// The work of one lane of scores.
pub(super) struct ScoreWork {
    pub(super) shared: Arc<Shared>,
    /// Which lane this is.
    number: usize,
    pub(super) times: Arc<StoreTimes>,
    /// When the last attempt had read what it needs.
    pub(super) read_at: Option<Instant>,
    /// The transaction that may have been committed, and what it decided.
    pub(super) lost: Option<(BatchId, Part)>,
    /// The batch that it belongs to.
    pub(super) open: Option<Open>,
}

/// A batch whose transaction may have been committed.
pub(super) enum Open {
    /// All of it is one transaction.
    Whole(Aims, Stood, usize, BarrierGuard),
    /// One of several databases is in doubt.
    Doubt(Box<Doubt>),
}

/// A batch as decided.
pub(super) struct Decided {
    pub(super) decisions: Vec<Decision>,
    /// Requests that hear of a fault, because a database has not done its part.
    pub(super) failed: BTreeMap<usize, Fault>,
    pub(super) aims: Aims,
    /// Closed periods whose records it has changed.
    pub(super) stale: Vec<(BoardNo, PartRow)>,
    /// Its transaction, and what it stands on.
    pub(super) stood: Stood,
    /// What each database has committed.
    pub(super) done: Vec<OnDatabase>,
    /// Until it is published.
    pub(super) pass: BarrierGuard,
}

/// How long the store took for each attempt of a batch.
#[derive(Debug, Default)]
pub(crate) struct StoreTimes {
    /// To read and lock what the batch needs.
    pub(crate) read: Histogram,
    /// To write and commit what was decided.
    pub(crate) commit: Histogram,
}

impl ScoreWork {
    pub(super) fn new(shared: Arc<Shared>, number: usize, times: Arc<StoreTimes>) -> Self {
        Self { shared, number, times, read_at: None, lost: None, open: None }
    }

    /// What a batch aims at and when, beside other lanes where it may be. The clock is read inside, so that no period ends
    /// between that and the end of the batch.
    pub(super) fn aim(
        &self,
        batch: &[Request],
        shards: ShardSet,
    ) -> Result<(Aims, Judged, BarrierGuard), (ShardSet, Fault)> {
        let all = ShardSet::first(self.shared.store.shards());
        let places = if spread::concerns_all(batch) { all } else { shards };
        // Instants are given once: those of aims that are not used come again.
        let aim = |alone| {
            let time = self.shared.clock.judge();
            let now = time.now;
            let mut instants = self.shared.instants.lock().unwrap_or_else(PoisonError::into_inner);
            let mut next = *instants;
            let aims = Aims::new(batch, &mut next, now, shards);
            let used = alone || aims.opened.is_empty();
            if used {
                *instants = next;
            }
            used.then_some((aims, time))
        };
        let alone = self.shared.is_of_several(self.number) || spread::is_alone(batch);
        let pass = self.shared.pass(places, alone)?;
        if let Some((aims, time)) = aim(alone) {
            return Ok((aims, time, pass));
        }
        // One lane of a database opens a period. Lanes of another one may open it at the same time: see `Aims::install`.
        drop(pass);
        let pass = self.shared.pass(places, true)?;
        let (aims, time) = aim(true).expect("alone");
        Ok((aims, time, pass))
    }
}

impl BatchHandler for ScoreWork {
    type Request = Request;
    type Answer = Result<Done, Rejection>;
    type Fault = Fault;
    type Committed = Decided;

    fn weight(request: &Request) -> Weight {
        match request {
            Request::Submit(_)
            | Request::Remove(_)
            | Request::Ban(_)
            | Request::Redefine(_)
            | Request::Vanish(_) => Weight { rows: 1, bytes: REQUEST_BYTES },
            Request::Erase(erase) => {
                let rows = u32::try_from(erase.boards.len()).unwrap_or(u32::MAX);
                Weight { rows, bytes: rows.saturating_mul(REQUEST_BYTES) }
            }
            Request::Commands(commands) => {
                let rows = commands.steps.iter().map(Step::rows).sum::<usize>();
                let rows = u32::try_from(rows).unwrap_or(u32::MAX);
                Weight { rows, bytes: rows.saturating_mul(REQUEST_BYTES) }
            }
            Request::Import(chunk) => {
                let rows = u32::try_from(chunk.rows.len()).unwrap_or(u32::MAX);
                Weight { rows, bytes: rows.saturating_mul(REQUEST_BYTES) }
            }
        }
    }

    /// A redefinition changes what rows aim at, so nothing shares a batch with it.
    fn kind(request: &Request) -> Kind {
        match request {
            Request::Redefine(_) | Request::Vanish(_) => Kind::Alone,
            Request::Commands(commands) if commands.alone => Kind::Alone,
            _ => Kind::Group(0),
        }
    }

    fn commit(&mut self, batch: &[Request]) -> Result<Decided, Failure<Fault>> {
        let shards = spread::shards(batch, &*self.shared.store);
        if shards.len() > 1 {
            return self.commit_each(batch, shards);
        }
        let shard = shards.lowest().unwrap_or(spread::FIRST);
        let mut more = Vec::new();
        for _ in 0..TRIES {
            match self.attempt(batch, &more, shard)? {
                Ok(decided) => return Ok(decided),
                Err(unready) => self.prepare(batch, unready, &mut more).map_err(Failure::Away)?,
            }
        }
        Err(Failure::Retry(Fault::Contention(CHANGED.into())))
    }

    fn read_at(&self) -> Option<Instant> {
        self.read_at
    }

    fn tell(&mut self, callers: usize, telling: Box<dyn Send>) {
        self.shared.teller.tell(callers, telling);
    }

    /// The store knows by the name of the transaction; what it decided was kept, because it must not be decided again.
    fn resolve(&mut self, _batch: &[Request]) -> Result<Resolution<Decided, Fault>, Fault> {
        let (lost, _) = self.lost.as_ref().expect("a commit was lost");
        let done = self.shared.store.became(lost).inspect_err(|_| match &mut self.open {
            Some(Open::Whole(_, stood, shard, pass)) => {
                stood.doubt(*shard);
                pass.mark_stuck();
            }
            Some(Open::Doubt(doubt)) => doubt.mark_stuck(),
            None => {}
        })?;
        let (_, part) = self.lost.take().expect("a commit was lost");
        let not_done = Fault::StoreAway("the connection was lost before the commit".into());
        let decided = match (self.open.take().expect("a commit was lost"), done) {
            (Open::Whole(aims, stood, shard, pass), Some(committed)) => {
                let part = Part { committed, changed: Vec::new(), ..part };
                Some(decided(part, aims, stood, (shard, pass)))
            }
            (Open::Whole(..), None) => None,
            (Open::Doubt(doubt), Some(committed)) => doubt.end(Ok(Part { committed, ..part })),
            (Open::Doubt(doubt), None) => doubt.end(Err(not_done.clone())),
        };
        Ok(decided.map_or(Resolution::NotCommitted(not_done), Resolution::Committed))
    }

    fn publish(&mut self, mut batch: Vec<Request>, decided: Decided) -> Vec<Result<Done, Rejection>> {
        let Decided { mut decisions, mut failed, mut aims, stale, stood, done, pass: _inside } = decided;
        aims.install();
        if !stale.is_empty() {
            batch.iter().for_each(|request| request.each_board(|board| Stale::mark(board, &stale)));
        }
        stood.check_age(&batch);
        let versions = Versions::of(&done, &*self.shared.store);
        let ranks = publish::publish(&mut batch, &mut decisions, &aims, &versions);
        stood.end(&done);
        for marked in done.iter().filter_map(|one| one.committed.marked) {
            if Standing::is_published(&batch) {
                self.shared.store.published(marked);
            } else {
                self.shared.unpublished.add(&*self.shared.store, marked);
            }
        }
        let rows = batch.iter().zip(decisions).zip(&aims.rows).zip(ranks).enumerate();
        rows.map(|(at, (((request, decision), rows), ranks))| match (request, decision) {
            _ if failed.contains_key(&at) => Ok(Done::Failed(failed.remove(&at).expect("it is there"))),
            (
                Request::Submit(submit),
                Decision::Submit { record, previous, changed, replayed: Some(then), .. },
            ) => {
                let previous = before(previous, None);
                let done = Submitted { record, previous, changed, ..Submitted::replay(record) };
                Ok(Done::Submitted(self.replay(submit, then, done)))
            }
            (Request::Commands(commands), Decision::Commands(dones)) => {
                let steps = commands.steps.iter().zip(dones);
                Ok(Done::Commands(steps.map(|(step, done)| self.step_reply(step, done)).collect()))
            }
            (request, decision) => answer(request, decision, &aims, rows.first(), ranks),
        })
        .collect()
    }
}

impl ScoreWork {
    /// One transaction, if everything is as it was planned.
    fn attempt(
        &mut self,
        batch: &[Request],
        more: &[ScoreKey],
        shard: usize,
    ) -> Result<Result<Decided, Unready>, Failure<Fault>> {
        let standing = Standing::of(batch);
        let (mut aims, time, pass) = match self.aim(batch, ShardSet::of(shard)) {
            Ok(aimed) => aimed,
            Err((shards, fault)) if shards.is_empty() => return Err(Failure::Away(fault)),
            Err((_, fault)) => return Err(Failure::Piece(fault)),
        };
        if let Some((_, fault)) = self.judge(batch, &mut aims, time)? {
            return Err(Failure::Piece(fault));
        }
        let Some(stood) = standing.plan(batch, &aims) else {
            return Ok(Err(Unready::Moved(Vec::new())));
        };
        match self.transact((batch, &aims), (&standing, &stood), (time, more), shard) {
            Ok(Ok(part)) => Ok(Ok(decided(part, aims, stood, (shard, pass)))),
            Ok(Err(unready)) => Ok(Err(unready)),
            Err(failure) => {
                if let Failure::Unknown(_) = &failure {
                    self.open = Some(Open::Whole(aims, stood, shard, pass));
                }
                Err(failure)
            }
        }
    }

    fn step_reply(&self, step: &Step, done: StepDone) -> StepReply {
        match (step, done) {
            (
                Step::Submit(submit),
                StepDone { reply: StepReply::Submitted(first), replayed: Some(then), .. },
            ) => StepReply::Submitted(self.replay(submit, then, first)),
            (_, done) => done.reply,
        }
    }

    /// The outcome is that of then, in the words of then; ranks are those of now.
    fn replay(&self, submit: &Submit, then: Micros, mut done: Submitted) -> Submitted {
        let (board, player) = (&submit.board, &submit.write.player);
        let (open, late) = board.periods().aim_then(submit.write.at.map_or(then, |at| at.min(then)), then);
        done.closed_periods = late;
        done.period = match open.first().and_then(|aimed| aimed.period) {
            Some((rule, span)) if !board.definition.all_time => {
                let periods = board.periods();
                let state = periods.rules.iter().find(|state| state.rule.no == rule);
                state.map_or_else(String::new, |state| state.name(span.start))
            }
            _ => ALL_TIME_NAME.to_owned(),
        };
        // A period that is gone by now has no ranks.
        let Ok(view) = View::find(board, Some(&done.period), self.shared.clock.now(), |_| None) else {
            return done;
        };
        let ranked = view.read(&*self.shared.store, |order| order.ranked(player)).map(|now| {
            done.rank = now.map(|now| now.rank);
        });
        let Some(previous) = done.previous.as_mut().filter(|_| ranked.is_ok() && !board.hides(player)) else {
            return done;
        };
        previous.rank = view.read(&*self.shared.store, |order| order.rank_of(player, &previous.record)).ok();
        done
    }
}

/// A batch that is one transaction.
fn decided(part: Part, aims: Aims, stood: Stood, (shard, pass): (usize, BarrierGuard)) -> Decided {
    let Part { decisions, stale, changed, committed } = part;
    let done = vec![OnDatabase { shard, committed, changed }];
    Decided { decisions, failed: BTreeMap::new(), aims, stale, stood, done, pass }
}
