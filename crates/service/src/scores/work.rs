//! What a score lane does with a batch: one transaction, then one publication, then the answers.
//!
//! A player's records belong to one lane, so lanes need not wait for each other; a batch that concerns more than the
//! players of its lane passes the gate alone.

use super::aim::{Aims, RowAim};
use super::command::{Done, Imported, Previous, Removed, Request, Submit, Submitted};
use super::decide::{self, Decision};
use super::standing::{Standing, Stood, Unready};
use super::steps::{Step, StepDone, StepReply};
use super::{plan, publish, spread};
use crate::clock::Clock;
use crate::failure::{Fault, in_lane};
use crate::periods::ALL_TIME_NAME;
use crate::periods::view::View;
use crate::servers::{self, marks};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tally_lanes::{Failure, Gate, Histogram, Kind, Pass, Resolution, Weight, Work};
use tally_ranking::Published;
use tally_rules::instant::Instants;
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, Record, Refusal};
use tally_store::{BatchId, Changes, Durability, ScoreKey, Store, StoreError};

/// Bytes a request holds beside its player's name: a rough sum of the structures, for the queue's bound.
const REQUEST_BYTES: u32 = 256;

/// How long a batch waits for those of other lanes. They take as long only while nobody can say what became of one.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a batch is planned again before it is one of those that met others.
const TRIES: usize = 16;

/// What all lanes of scores share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) instants: Mutex<Instants>,
    pub(crate) keep_micros: i64,
    pub(crate) gate: Gate,
    /// How many there are for each database that the store is spread over.
    pub(crate) lanes: usize,
}

impl Shared {
    /// How many there are.
    pub(super) fn lanes_in_all(&self) -> usize {
        self.lanes * self.store.shards()
    }

    /// The lane of a request, where it concerns one lane alone.
    pub(super) fn lane_of(&self, request: &Request) -> Option<usize> {
        if self.lanes_in_all() == 1 {
            return Some(0);
        }
        let player = request.player()?;
        let mut hasher = DefaultHasher::new();
        player.as_bytes().hash(&mut hasher);
        // Fits: it is less than the number of lanes. A batch of one database stays a transaction of one database.
        Some(self.store.shard_of(player) * self.lanes + (hasher.finish() % self.lanes as u64) as usize)
    }

    /// Goes on beside what lanes do, or once they have done what they are doing, and alone.
    pub(crate) fn pass(&self, alone: bool) -> Result<Pass, Fault> {
        let unknown = || Fault::StoreAway("what became of an earlier batch is not known yet".into());
        self.gate.pass(alone, PATIENCE).ok_or_else(unknown)
    }
}

/// The work of one lane of scores.
pub(super) struct ScoreWork {
    shared: Arc<Shared>,
    /// Which lane this is.
    number: usize,
    times: Arc<StoreTimes>,
    /// The batch that may have been committed, and what it decided.
    open: Option<(BatchId, Decided)>,
}

/// A batch as decided.
pub(super) struct Decided {
    decisions: Vec<Decision>,
    aims: Aims,
    /// Its transaction, and what it stands on.
    stood: Stood,
    /// Until it is published.
    _pass: Pass,
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
        Self { shared, number, times, open: None }
    }

    /// What a batch aims at and when, beside other lanes where it may be. The clock is read inside, so that no period ends
    /// between that and the end of the batch.
    fn aim(&self, batch: &[Request]) -> Result<(Aims, Micros, Pass), Fault> {
        // Instants are given once: those of aims that are not used come again.
        let aim = |alone| {
            let now = (self.shared.clock)();
            let mut instants = self.shared.instants.lock().unwrap_or_else(PoisonError::into_inner);
            let mut next = *instants;
            let aims = Aims::new(batch, &mut next, now);
            let used = alone || aims.opened.is_empty();
            if used {
                *instants = next;
            }
            used.then_some((aims, now))
        };
        let alone = batch.iter().any(|request| self.shared.lane_of(request) != Some(self.number));
        let pass = self.shared.pass(alone)?;
        if let Some((aims, now)) = aim(alone) {
            return Ok((aims, now, pass));
        }
        // Two lanes must not open one part twice.
        drop(pass);
        let pass = self.shared.pass(true)?;
        let (aims, now) = aim(true).expect("alone");
        Ok((aims, now, pass))
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
        let (batch, _) = self.open.as_ref().expect("a commit was lost");
        let done = self.shared.store.became(batch)?;
        let (_, decided) = self.open.take().expect("a commit was lost");
        if let Some(committed) = done {
            let stood = decided.stood.committed(committed, Vec::new());
            return Ok(Resolution::Committed(Decided { stood, ..decided }));
        }
        Ok(Resolution::NotCommitted(Fault::StoreAway("the connection was lost before the commit".into())))
    }

    fn publish(&mut self, mut batch: Vec<Request>, decided: Decided) -> Vec<Result<Done, Refusal>> {
        let Decided { mut decisions, aims, stood, _pass } = decided;
        aims.install();
        stood.check_age(&batch);
        let ranks = publish::publish(&mut batch, &mut decisions, &aims, stood.committed.version);
        let marked = stood.committed.marked.filter(|_| Standing::is_published(&batch));
        stood.end();
        if let Some(marked) = marked {
            self.shared.store.published(marked);
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
        let Shared { store, keep_micros, .. } = &*self.shared;
        let standing = Standing::of(batch);
        let (mut aims, now, pass) = self.aim(batch).map_err(Failure::Away)?;
        aims.judge(batch, &**store, now).map_err(in_lane)?;
        let mut reading = plan::read(batch, &aims);
        reading.add(more);
        spread::hint(&mut reading.plan, batch, &**store);
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
        let mut decided = Ok((Vec::new(), Vec::new()));
        let (times, mut since) = (&self.times, Instant::now());
        let done = store.run(&reading.plan, &mut |loaded| {
            times.read.record(since.elapsed());
            let all = standing
                .moved(&reading.plan, loaded)
                .and_then(|()| decide::decide(batch, &aims, &reading, loaded, (now, *keep_micros)));
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
            Ok(committed) => {
                let stood = stood.committed(committed, changed);
                Ok(Ok(Decided { decisions, aims, stood, _pass: pass }))
            }
            Err(error) => {
                if let StoreError::LostAtCommit { batch, .. } = &error {
                    self.open = Some((*batch, Decided { decisions, aims, stood, _pass: pass }));
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
                std::thread::sleep(Duration::from_millis(1));
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
        let Ok(view) = View::find(board, Some(&done.period), (self.shared.clock)(), |_| None) else {
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

fn before(record: Option<Record>, rank: Option<u64>) -> Option<Previous> {
    record.map(|record| Previous { record, rank })
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
