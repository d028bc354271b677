//! The possible states after requests that were in flight together.
//!
//! A lane decides simple requests in the order of their arrival, so that is one world. A request of several steps did them at
//! some moment between its start and its reply. A request of unknown outcome was done or not: all of a batch, or nothing of it.

use crate::model::{Model, Must};
use crate::operations::{Fate, Operation};
use crate::traffic::Answered;
use tally_rules::idempotency::KEEP_DEFAULT_MICROS;

/// The reply to a request whose key is used by another running one.
pub(crate) const IN_PROGRESS: &str = "idempotency_in_progress";

/// One of the worlds that the answers allow.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) model: Model,
    /// Batches of unknown outcome, by the step that answered them, and whether they were done.
    pub(crate) batches: Vec<(u64, bool)>,
    /// Requests of unknown outcome, by their numbers, and whether they were done.
    pub(crate) done: Vec<(usize, bool)>,
}

/// Wall time before the requests and at their end, and the latest of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) began: i64,
    pub(crate) now: i64,
    pub(crate) latest: i64,
}

/// Every world that explains the answers.
pub(crate) fn worlds(before: &Model, answered: &[Answered], times: Times) -> Vec<World> {
    let of_model = |one: &&Answered| !matches!(one.planned.operation, Operation::Contest(..));
    let (mut simple, steps): (Vec<&Answered>, Vec<&Answered>) =
        answered.iter().filter(of_model).partition(|one| one.planned.operation.is_simple());
    simple.sort_by_key(|one| one.asked);
    assert!(steps.len() < 2, "one such request at a time");
    let Some(steps) = steps.first() else { return follow(before, &simple, times) };
    let scores: Vec<(usize, &&Answered)> =
        simple.iter().enumerate().filter(|(_, one)| one.planned.operation.is_score()).collect();
    // A rejected request may never have been in the lane.
    let was_before = |one: &Answered| one.answered < steps.asked && !matches!(one.fate, Fate::Refused(_));
    let before_it = scores.iter().filter(|(_, one)| was_before(one)).map(|(at, _)| at + 1).max();
    let after_it = scores.iter().find(|(_, one)| one.asked > steps.answered).map(|(at, _)| *at);
    let mut all: Vec<World> = Vec::new();
    for at in before_it.unwrap_or(0)..=after_it.unwrap_or(simple.len()) {
        let mut order = simple.clone();
        order.insert(at, steps);
        for world in follow(before, &order, times) {
            if !all.iter().any(|other| other.model == world.model && other.done == world.done) {
                all.push(world);
            }
        }
    }
    all
}

fn follow(before: &Model, order: &[&Answered], times: Times) -> Vec<World> {
    let mut worlds = vec![World { model: before.clone(), batches: Vec::new(), done: Vec::new() }];
    for one in order {
        worlds = worlds.into_iter().flat_map(|world| world.after(one, times)).collect();
    }
    worlds
}

impl World {
    /// The possible states after one more request: none where its reply is impossible.
    fn after(mut self, one: &Answered, times: Times) -> Vec<Self> {
        let (planned, number) = (&one.planned, one.planned.number);
        if matches!(&one.fate, Fate::Refused(why) if why == IN_PROGRESS) {
            return if one.in_progress { vec![self] } else { Vec::new() };
        }
        // Its leaderboard may be deleted, and nothing else comes before the key. Then it is rejected, or gets its first reply.
        if one.in_progress && !matches!(one.fate, Fate::Refused(_) | Fate::Done { replayed: true, .. }) {
            return Vec::new();
        }
        let known = self.model.keys.get(&number).copied().filter(|_| planned.key);
        let (mut must, mut next) = self.model.after(&planned.operation, number, times.now);
        if known.is_some_and(|at| times.latest - at < KEEP_DEFAULT_MICROS) {
            must = Must::Replay;
        }
        if must == Must::Replay {
            next = self.model.clone();
        } else if planned.key {
            // Time may have passed since: its age counts from its transaction on.
            next.keys.insert(number, times.began);
        }
        match &one.fate {
            Fate::Done { replayed: true, .. } => {
                if must == Must::Replay || known.is_some() {
                    vec![self]
                } else {
                    Vec::new()
                }
            }
            Fate::Done { record, .. } => {
                let may_be = !matches!(must, Must::Refuse | Must::Replay);
                let fits = may_be && record.is_none_or(|record| next.learn(&planned.operation, record));
                self.model = next;
                if fits { vec![self] } else { Vec::new() }
            }
            Fate::Refused(_) => {
                if matches!(must, Must::Do | Must::Replay) {
                    Vec::new()
                } else {
                    vec![self]
                }
            }
            Fate::Failed(_) => vec![self],
            Fate::Unknown(_) => self.in_doubt(one, (must, next), known.is_some()),
        }
    }

    /// `is_known`: its key was stored and may have been forgotten since, so its batch may only find that.
    fn in_doubt(self, one: &Answered, (must, next): (Must, Model), is_known: bool) -> Vec<Self> {
        if must == Must::Replay {
            return vec![self];
        }
        let (turn, number) = (one.turn, one.planned.number);
        let of_batch = self.batches.iter().find(|(batch, _)| *batch == turn).map(|(_, done)| *done);
        let of_batch = of_batch.filter(|_| one.planned.operation.is_simple());
        let mut all = Vec::new();
        // It may still have been rejected because of its own batch.
        if of_batch != Some(true) || is_known || matches!(must, Must::Refuse | Must::Either) {
            let mut not = self.clone();
            not.done.push((number, false));
            if of_batch.is_none() && !is_known && must == Must::Do && one.planned.operation.is_simple() {
                not.batches.push((turn, false));
            }
            all.push(not);
        }
        if of_batch != Some(false) && must != Must::Refuse {
            let mut was = Self { model: next, ..self };
            was.done.push((number, true));
            if of_batch.is_none() && one.planned.operation.is_simple() {
                was.batches.push((turn, true));
            }
            all.push(was);
        }
        all
    }
}
