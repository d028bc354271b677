//! What the score lane does with a batch: one transaction, then one publication, then the answers.

use super::aim::{Aims, RowAim};
use super::command::{Done, Imported, Previous, Removed, Request, Submit, Submitted};
use super::decide::{self, Decision};
use super::standing::{Standing, Stood, Unready};
use super::steps::{Step, StepDone, StepReply};
use super::{plan, publish};
use crate::clock::Clock;
use crate::failure::Fault;
use crate::periods::ALL_TIME_NAME;
use crate::periods::view::View;
use crate::servers::{self, marks};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_lanes::{Failure, Histogram, Kind, Resolution, Weight, Work};
use tally_ranking::Published;
use tally_rules::instant::Instants;
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, Record, Refusal};
use tally_store::{BatchId, Changes, Durability, ScoreKey, Store, StoreError};

/// Bytes a request holds beside its player's name: a rough sum of the structures, for the queue's bound.
const REQUEST_BYTES: u32 = 256;

/// How often a batch is planned again before it is one of those that met others.
const TRIES: usize = 16;

/// The work of one lane of scores.
pub(super) struct ScoreWork {
    store: Arc<dyn Store>,
    clock: Clock,
    instants: Instants,
    keep_micros: i64,
    times: Arc<StoreTimes>,
    /// The batch that may have been committed, and what it decided.
    open: Option<(BatchId, Vec<Decision>, Aims, Stood)>,
}

/// A batch as decided, and its transaction.
type Decided = (Vec<Decision>, Aims, Stood);

/// How long the store took for each attempt of a batch.
#[derive(Debug, Default)]
pub(crate) struct StoreTimes {
    /// To read and lock what the batch needs.
    pub(crate) read: Histogram,
    /// To write and commit what was decided.
    pub(crate) commit: Histogram,
}

impl ScoreWork {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        instants: Instants,
        keep_micros: i64,
        times: Arc<StoreTimes>,
    ) -> Self {
        Self { store, clock, instants, keep_micros, times, open: None }
    }
}

impl Work for ScoreWork {
    type Request = Request;
    type Answer = Result<Done, Refusal>;
    type Fault = Fault;
    type Committed = Decided;

    fn weight(request: &Request) -> Weight {
        match request {
            Request::Submit(_)
            | Request::Remove(_)
            | Request::Ban(_)
            | Request::Redefine(_)
            | Request::Vanish(_)
            | Request::Fence => Weight { rows: 1, bytes: REQUEST_BYTES },
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
            _ => Kind::Group(0),
        }
    }

    fn commit(&mut self, batch: &[Request]) -> Result<Decided, Failure<Fault>> {
        let mut more = Vec::new();
        for _ in 0..TRIES {
            let unready = match self.attempt(batch, &more)? {
                Ok(decided) => return Ok(decided),
                Err(unready) => unready,
            };
            if let Err(fault) = self.prepare(batch, unready, &mut more) {
                return Err(Failure::Away(fault));
            }
        }
        let why = "its leaderboards are changed by other servers all the time";
        Err(Failure::Retry(Fault::StoreAway(why.into())))
    }

    /// The store knows by the name of the batch; what it decided was kept, because it must not be decided again.
    fn resolve(&mut self, _batch: &[Request]) -> Result<Resolution<Decided, Fault>, Fault> {
        let (batch, ..) = self.open.as_ref().expect("a commit was lost");
        let done = self.store.became(batch)?;
        let (_, decisions, aims, stood) = self.open.take().expect("a commit was lost");
        if let Some(committed) = done {
            let stood = stood.committed(committed, Vec::new());
            return Ok(Resolution::Committed((decisions, aims, stood)));
        }
        Ok(Resolution::NotCommitted(Fault::StoreAway("the connection was lost before the commit".into())))
    }

    fn publish(
        &mut self,
        mut batch: Vec<Request>,
        (mut decisions, aims, stood): Decided,
    ) -> Vec<Result<Done, Refusal>> {
        aims.install();
        stood.check_age(&batch);
        let ranks = publish::publish(&mut batch, &mut decisions, &aims, stood.committed.version);
        let marked = stood.committed.marked.filter(|_| Standing::is_published(&batch));
        stood.end();
        if let Some(marked) = marked {
            self.store.published(marked);
        }
        let rows = batch.iter().zip(decisions).zip(&aims.rows).zip(ranks);
        rows.map(|(((request, decision), rows), ranks)| match (request, decision) {
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
    ) -> Result<Result<Decided, Unready>, Failure<Fault>> {
        let now = (self.clock)();
        let standing = Standing::of(batch);
        let aims = Aims::new(batch, &mut self.instants, now);
        let mut reading = plan::read(batch, &aims);
        reading.add(more);
        // One request that waits for its commit makes the whole batch durable.
        let relaxed = |request: &Request| matches!(request, Request::Commands(commands) if commands.relaxed);
        if batch.iter().all(relaxed) {
            reading.plan.durability = Durability::Relaxed;
        }
        let Some(stood) = standing.plan(batch, &aims, &mut reading.plan) else {
            return Ok(Err(Unready::Moved(Vec::new())));
        };
        for (board, live) in aims.opened.values() {
            servers::open_order(&*self.store, board, live.part, &live.order);
        }
        let mut decided = Ok((Vec::new(), Vec::new()));
        let (times, mut since) = (&self.times, Instant::now());
        let done = self.store.run(&reading.plan, &mut |loaded| {
            times.read.record(since.elapsed());
            let all = standing
                .moved(&reading.plan, loaded)
                .and_then(|()| decide::decide(batch, &aims, &reading, loaded, (now, self.keep_micros)));
            let (changes, done) = match all {
                Ok((changes, decisions)) => {
                    let changed = standing.changed(&changes);
                    (changes, Ok((decisions, changed)))
                }
                Err(unready) => (Changes::default(), Err(unready)),
            };
            decided = done;
            since = Instant::now();
            changes
        });
        times.commit.record(since.elapsed());
        let (decisions, changed) = match decided {
            Err(Unready::Ranking(error)) => return Err(Failure::Away(error.into())),
            Err(unready) => return Ok(Err(unready)),
            Ok(decided) => decided,
        };
        match done {
            Ok(committed) => Ok(Ok((decisions, aims, stood.committed(committed, changed)))),
            Err(error) => {
                if let StoreError::LostAtCommit { batch, .. } = &error {
                    self.open = Some((*batch, decisions, aims, stood));
                }
                Err(failure(error))
            }
        }
    }

    /// Does what it takes to plan a batch again.
    fn prepare(&self, batch: &[Request], why: Unready, more: &mut Vec<ScoreKey>) -> Result<(), Fault> {
        let fault = |failure: crate::Failure| match failure {
            crate::Failure::Fault(fault) => fault,
            crate::Failure::Refused(refusal) => Fault::Broken(refusal.detail()),
        };
        match why {
            Unready::Moved(boards) => {
                for board in &boards {
                    servers::renew(&*self.store, board).map_err(fault)?;
                }
                // A batch of another lane may be about to change it here.
                std::thread::sleep(Duration::from_millis(1));
            }
            Unready::Missing(keys) => more.extend(keys),
            Unready::Behind(keys) => {
                let standing = Standing::of(batch);
                for ScoreKey { board, part, player } in keys {
                    let Some(board) = standing.board(board) else { continue };
                    marks::publish_one(&*self.store, board, part, &player).map_err(fault)?;
                }
            }
            Unready::Ranking(error) => return Err(error.into()),
        }
        Ok(())
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
        let (open, late) = board.periods().aim_then(submit.write.at.unwrap_or(then), then);
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
        let Ok(view) = View::find(board, Some(&done.period), (self.clock)(), |_| None) else { return done };
        let ranked = view.read(&*self.store, |order| order.ranked(player)).map(|now| {
            done.rank = now.map(|now| now.rank);
        });
        let Some(previous) = done.previous.as_mut().filter(|_| ranked.is_ok() && !board.hides(player)) else {
            return done;
        };
        previous.rank = view.read(&*self.store, |order| order.rank_of(player, &previous.record)).ok();
        done
    }
}

fn before(record: Option<Record>, rank: Option<u64>) -> Option<Previous> {
    record.map(|record| Previous { record, rank })
}

/// What the lane does next, by the kind of the store's fault.
fn failure(error: StoreError) -> Failure<Fault> {
    match error {
        StoreError::Conflict(_) => Failure::Retry(error.into()),
        StoreError::Row(_) => Failure::Row(error.into()),
        StoreError::LostAtCommit { .. } => Failure::Unknown(error.into()),
        StoreError::Away(_)
        | StoreError::Corrupt(_)
        | StoreError::Locked(_)
        | StoreError::TooNew { .. }
        | StoreError::TooOld { .. }
        | StoreError::NotOurs(_) => Failure::Away(error.into()),
    }
}

fn answer(
    request: &Request,
    decision: Decision,
    aims: &Aims,
    aim: Option<&RowAim>,
    ranks: Published,
) -> Result<Done, Refusal> {
    match (request, decision) {
        (_, Decision::Refused(refusal)) => Err(refusal),
        (_, Decision::Fence) => Ok(Done::Passed),
        (_, Decision::Vanish(gone)) => Ok(Done::Vanished(gone)),
        (_, Decision::Redefine { replayed, .. }) => {
            let created = replayed == Some(Outcome::BoardPut { created: true });
            Ok(Done::Redefined { created, replayed: replayed.is_some() })
        }
        (
            _,
            Decision::Remove { replayed } | Decision::Ban { replayed, .. } | Decision::Erase { replayed },
        ) => Ok(Done::Removed(Removed { replayed })),
        (_, Decision::Import { progress, refused, replayed, .. }) => {
            Ok(Done::Imported(Imported { progress, refused, replayed }))
        }
        (Request::Submit(submit), Decision::Submit { record, previous, changed, parts, .. }) => {
            let part = parts.first().map(|(part, _)| *part);
            let period = part.map_or_else(String::new, |part| aims.name(&submit.board, part));
            let closed_periods = aim.map_or_else(Vec::new, |aim| aim.closed.clone());
            let previous = before(previous, ranks.before);
            let (rank, replayed) = (ranks.after, false);
            let done = Submitted { period, closed_periods, record, rank, changed, previous, replayed };
            Ok(Done::Submitted(done))
        }
        (_, Decision::Commands(_)) => unreachable!("commands are answered step by step"),
        (_, Decision::Submit { .. }) => unreachable!("a submit is decided as one"),
    }
}
