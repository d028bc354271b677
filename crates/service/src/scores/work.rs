//! What a score lane does with a batch: one transaction, then one publication, then the answers.
//!
//! A player's requests are in one lane at a time, so lanes need not wait for each other; what concerns several players has a
//! lane of its own, whose batches pass the gate alone.

use super::aim::Aims;
use super::answer::{answer, before};
use super::command::{Done, Request, Submit, Submitted};
use super::decide::{self, Decision};
use super::left_out::LeftOut;
use super::shared::Shared;
use super::standing::{Standing, Stood, Unready};
use super::steps::{Step, StepDone, StepReply};
use super::{plan, publish, spread};
use crate::clock::Judged;
use crate::failure::{Fault, in_lane};
use crate::periods::ALL_TIME_NAME;
use crate::periods::stale::Stale;
use crate::periods::view::View;
use crate::servers::{self, marks};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tally_lanes::{Failure, Histogram, Kind, Pass, Resolution, Weight, Work};
use tally_rules::{Micros, Refusal};
use tally_store::{
    BatchId, BoardNo, Changes, Committed, Durability, Loaded, PartRow, ScoreKey, ShardSet, StoreError,
};

/// Bytes a request holds beside its player's name: a rough sum of the structures, for the queue's bound.
const REQUEST_BYTES: u32 = 256;

/// How often a batch is planned again before it is one of those that met others.
const TRIES: usize = 16;

/// The work of one lane of scores.
pub(super) struct ScoreWork {
    shared: Arc<Shared>,
    /// Which lane this is.
    number: usize,
    times: Arc<StoreTimes>,
    /// When the last attempt had read what it needs.
    read_at: Option<Instant>,
    /// The batch that may have been committed, and what it decided.
    open: Option<(BatchId, Decided)>,
}

/// A batch as decided.
pub(super) struct Decided {
    decisions: Vec<Decision>,
    aims: Aims,
    /// Closed periods whose records it has changed.
    stale: Vec<(BoardNo, PartRow)>,
    /// Its transaction, and what it stands on.
    stood: Stood,
    /// Until it is published.
    pass: Pass,
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
        Self { shared, number, times, read_at: None, open: None }
    }

    /// What a batch aims at and when, beside other lanes where it may be. The clock is read inside, so that no period ends
    /// between that and the end of the batch.
    fn aim(&self, batch: &[Request], left_out: &LeftOut) -> Result<(Aims, Judged, Pass), (ShardSet, Fault)> {
        let places = spread::places(batch, left_out, &*self.shared.store);
        // Instants are given once: those of aims that are not used come again.
        let aim = |alone| {
            let time = self.shared.clock.judge();
            let now = time.now;
            let mut instants = self.shared.instants.lock().unwrap_or_else(PoisonError::into_inner);
            let mut next = *instants;
            let aims = Aims::new(batch, left_out, &mut next, now);
            let used = alone || aims.opened.is_empty();
            if used {
                *instants = next;
            }
            used.then_some((aims, time))
        };
        let alone = self.shared.is_of_several(self.number);
        let pass = self.shared.pass(places, alone)?;
        if let Some((aims, time)) = aim(alone && places == ShardSet::first(self.shared.store.shards())) {
            return Ok((aims, time, pass));
        }
        // Two lanes must not open one part twice.
        drop(pass);
        let pass = self.shared.pass_alone()?;
        let (aims, time) = aim(true).expect("alone");
        Ok((aims, time, pass))
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
            _ => Kind::Group(0),
        }
    }

    fn commit(&mut self, batch: &[Request]) -> Result<Decided, Failure<Fault>> {
        let (mut more, mut left_out, mut tries) = (Vec::new(), LeftOut::default(), 0);
        while tries < TRIES {
            match self.attempt(batch, &more, &left_out)? {
                Ok(decided) => return Ok(decided),
                Err(Unready::Away(shards, fault)) => {
                    if !left_out.add(batch, shards, &fault, &*self.shared.store) {
                        return Err(Failure::Piece(fault));
                    }
                }
                Err(unready) => {
                    self.prepare(batch, unready, &mut more).map_err(Failure::Away)?;
                    tries += 1;
                }
            }
        }
        let why = "its leaderboards are changed by other servers all the time";
        Err(Failure::Retry(Fault::Contention(why.into())))
    }

    fn read_at(&self) -> Option<Instant> {
        self.read_at
    }

    fn tell(&mut self, callers: usize, telling: Box<dyn Send>) {
        self.shared.teller.tell(callers, telling);
    }

    /// The store knows by the name of the batch; what it decided was kept, because it must not be decided again.
    fn resolve(&mut self, _batch: &[Request]) -> Result<Resolution<Decided, Fault>, Fault> {
        let (batch, decided) = self.open.as_ref().expect("a commit was lost");
        let done = self.shared.store.became(batch).inspect_err(|_| decided.pass.stick())?;
        let (_, decided) = self.open.take().expect("a commit was lost");
        if let Some(committed) = done {
            let stood = decided.stood.committed(committed, Vec::new());
            return Ok(Resolution::Committed(Decided { stood, ..decided }));
        }
        Ok(Resolution::NotCommitted(Fault::StoreAway("the connection was lost before the commit".into())))
    }

    fn publish(&mut self, mut batch: Vec<Request>, decided: Decided) -> Vec<Result<Done, Refusal>> {
        let Decided { mut decisions, aims, stale, stood, pass: _inside } = decided;
        aims.install();
        if !stale.is_empty() {
            batch.iter().for_each(|request| request.each_board(|board| Stale::mark(board, &stale)));
        }
        stood.check_age(&batch);
        let ranks = publish::publish(&mut batch, &mut decisions, &aims, stood.committed.version);
        let marked = stood.committed.marked;
        stood.end();
        match marked {
            Some(marked) if Standing::is_published(&batch) => self.shared.store.published(marked),
            Some(marked) => self.shared.unpublished.add(&*self.shared.store, marked),
            None => {}
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
        left_out: &LeftOut,
    ) -> Result<Result<Decided, Unready>, Failure<Fault>> {
        let Shared { store, keep_micros, .. } = &*self.shared;
        let standing = Standing::of(batch);
        let (mut aims, time, pass) = match self.aim(batch, left_out) {
            Ok(aimed) => aimed,
            Err((shards, fault)) if shards.is_empty() => return Err(Failure::Away(fault)),
            Err((shards, fault)) => return without(batch, shards, fault, false).map(Err),
        };
        let (now, keep_micros) = (time.now, time.keep(*keep_micros));
        aims.judge(batch, &**store, now).map_err(in_lane)?;
        let purging = aims.settle_purged(batch, &**store, now).map_err(in_lane)?;
        if !purging.is_empty() {
            return Err(Failure::Row(Fault::Purging(purging)));
        }
        let mut reading = plan::read(batch, &aims, &**store);
        reading.add(more);
        spread::hint(&mut reading.plan, batch, left_out, &**store);
        // One request that waits for its commit makes the whole batch durable.
        let relaxed = |request: &Request| matches!(request, Request::Commands(commands) if commands.relaxed);
        if batch.iter().all(relaxed) {
            reading.plan.durability = Durability::Relaxed;
        }
        let Some(stood) = standing.plan(batch, &aims, &mut reading.plan) else {
            return Ok(Err(Unready::Moved(Vec::new())));
        };
        for (board, live) in aims.opened.values() {
            servers::open_order(&**store, board, live.part, &live.order);
        }
        let mut decided = Ok((Vec::new(), Vec::new(), Vec::new()));
        let (times, read_at, mut since) = (&self.times, &mut self.read_at, Instant::now());
        let mut run = |loaded: &Loaded| {
            let has_read = Instant::now();
            times.read.record(has_read.duration_since(since));
            *read_at = Some(has_read);
            let all = standing
                .moved(&reading.plan, loaded)
                .and_then(|()| decide::decide(batch, &aims, &reading, loaded, (now, keep_micros)));
            let (changes, done) = match all {
                Ok((changes, decisions)) => {
                    let (changed, stale) = (standing.changed(&changes), Stale::of(&changes));
                    (changes, Ok((decisions, changed, stale)))
                }
                Err(unready) => (Changes::default(), Err(unready)),
            };
            decided = done;
            since = Instant::now();
            changes
        };
        let done = if left_out.is_all(batch) {
            // Boards are taken to be there; whoever asks them hears what there is.
            run(&Loaded { boards: vec![Some(0); reading.plan.boards.len()], ..Loaded::default() });
            Ok(Committed::default())
        } else {
            store.run(&reading.plan, &mut run)
        };
        times.commit.record(since.elapsed());
        let (decisions, changed, stale) = match decided {
            Err(Unready::Ranking(error)) => return Err(Failure::Away(error.into())),
            Err(unready) => return Ok(Err(unready)),
            Ok(decided) => decided,
        };
        match done {
            Ok(committed) => {
                let stood = stood.committed(committed, changed);
                Ok(Ok(Decided { decisions, aims, stale, stood, pass }))
            }
            Err(error @ StoreError::ShardAway { number, alone, .. }) => {
                without(batch, ShardSet::of(number), error.into(), alone).map(Err)
            }
            Err(error) => {
                if let StoreError::LostAtCommit { batch, .. } = &error {
                    self.open = Some((*batch, Decided { decisions, aims, stale, stood, pass }));
                }
                Err(in_lane(error))
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
                    servers::renew(&*self.shared.store, board).map_err(fault)?;
                }
                // A batch of another lane may be about to change it here.
                self.shared.background.wait(Duration::from_millis(1));
            }
            Unready::Missing(keys) => more.extend(keys),
            Unready::Behind(keys) => {
                let standing = Standing::of(batch);
                for ScoreKey { board, part, player } in keys {
                    let Some(board) = standing.board(board) else { continue };
                    marks::publish_one(&*self.shared.store, board, part, &player).map_err(fault)?;
                }
            }
            Unready::Ranking(error) => return Err(error.into()),
            Unready::Away(_, fault) => return Err(fault),
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

/// What becomes of a batch some of whose databases are away, or only one of which is concerned: one request of commands
/// goes on without those of them, a batch is cut until each stands for itself.
fn without(
    batch: &[Request],
    shards: ShardSet,
    fault: Fault,
    alone: bool,
) -> Result<Unready, Failure<Fault>> {
    let has_commands = batch.iter().any(|request| matches!(request, Request::Commands(_)));
    match batch {
        [_] if has_commands => Ok(Unready::Away(shards, fault)),
        [_] => Err(Failure::Piece(fault)),
        _ if alone && !has_commands => Err(Failure::Piece(fault)),
        _ => Err(Failure::Row(fault)),
    }
}
