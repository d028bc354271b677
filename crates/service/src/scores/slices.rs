//! A batch of players of several databases, cut into one batch for each of them, and their decisions put together again.
//!
//! Each slice is a transaction of its own, so one may fail while others are done. Rows of a batch and commands of a pipeline have
//! answers of their own: those of a database that is away say so, and the others are done. What names players of several databases
//! in one command, or in one chunk of an import, says that a part of it is done where only a part is. Not here: transactions
//! (`several`), and which databases there are (`spread`).

use super::aim::{Aims, RowAim};
use super::command::{ImportChunk, Request};
use super::decide::Decision;
use super::select::Taken;
use super::spread::FIRST;
use super::steps::{Commands, Step, StepDone, StepReply};
use crate::failure::{Failure, Fault};
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_rules::{PlayerId, Record, Rejection};
use tally_store::Store;

/// The part of a batch that one database has.
pub(super) struct Slice {
    pub(super) batch: Vec<Request>,
    pub(super) aims: Aims,
    /// The place of each request in the whole batch, and for commands those of its steps there.
    places: Vec<(usize, Vec<usize>)>,
}

/// Cuts out what one database has. Players that a command takes by rank were found before.
pub(super) fn cut(
    (batch, aims): (&[Request], &Aims),
    whole: &Whole,
    shard: usize,
    store: &dyn Store,
) -> Slice {
    let is_here = |player: &PlayerId| store.shard_of(player) == shard;
    let mut slice = Slice { batch: Vec::new(), aims: aims.without_rows(), places: Vec::new() };
    for (at, (request, rows)) in batch.iter().zip(&aims.rows).enumerate() {
        let mut put = |request, rows: Vec<RowAim>, steps| {
            slice.batch.push(request);
            slice.aims.rows.push(rows);
            slice.places.push((at, steps));
        };
        match request {
            Request::Submit(submit) if is_here(&submit.write.player) => {
                put(Request::Submit(submit.clone()), rows.clone(), Vec::new());
            }
            Request::Remove(remove) if is_here(&remove.player) => {
                put(Request::Remove(remove.clone()), rows.clone(), Vec::new());
            }
            Request::Ban(ban) if is_here(&ban.player) => {
                put(Request::Ban(ban.clone()), rows.clone(), Vec::new());
            }
            Request::Erase(erase) if is_here(&erase.player) => {
                put(Request::Erase(erase.clone()), rows.clone(), Vec::new());
            }
            Request::Import(chunk) if whole.goes_on(at, shard) => {
                let here = chunk.rows.iter().zip(rows).filter(|((_, write), _)| is_here(&write.player));
                let (rows, aims): (Vec<_>, Vec<_>) =
                    here.map(|(row, aim)| (row.clone(), aim.clone())).unzip();
                // What says nothing of a player counts on the first.
                let refused = if shard == FIRST { chunk.refused.clone() } else { Vec::new() };
                let board = Arc::clone(&chunk.board);
                let chunk = ImportChunk { board, rows, refused, is_slice: true, ..chunk.clone() };
                put(Request::Import(chunk), aims, Vec::new());
            }
            Request::Commands(commands) => {
                let (mut places, mut steps, mut aims) = (Vec::new(), Vec::new(), Vec::new());
                for (nth, (step, aim)) in commands.steps.iter().zip(rows).enumerate() {
                    if let Some(step) = step_of(step, &whole.taken, &is_here) {
                        places.push(nth);
                        steps.push(step);
                        aims.push(aim.clone());
                    }
                }
                let is_here = !steps.is_empty();
                for (step, aim) in commands.steps.iter().zip(rows).filter(|_| is_here) {
                    // A board that is gone refuses all, wherever its players are.
                    let nobody = |board| Step::Remove { board: Arc::clone(board), players: Vec::new() };
                    steps.extend(step.board().map(nobody));
                    aims.extend(step.board().map(|_| aim.clone()));
                }
                if is_here {
                    let Commands { atomic, relaxed, alone, .. } = *commands;
                    let commands = Commands { steps, atomic, relaxed, alone };
                    put(Request::Commands(commands), aims, places);
                }
            }
            _ => {}
        }
    }
    slice.aims.keep_parts_of(&slice.batch);
    slice
}

/// What one database has of a command, if anything.
fn step_of(step: &Step, taken: &[(PlayerId, Record)], is_here: &impl Fn(&PlayerId) -> bool) -> Option<Step> {
    Some(match step {
        Step::Add { board, items, options } => {
            let items: Vec<_> = items.iter().filter(|(player, _)| is_here(player)).cloned().collect();
            (!items.is_empty()).then(|| Step::Add { board: Arc::clone(board), items, options: *options })?
        }
        Step::Remove { board, players } => {
            let players: Vec<_> = players.iter().filter(|player| is_here(player)).cloned().collect();
            (!players.is_empty()).then(|| Step::Remove { board: Arc::clone(board), players })?
        }
        Step::Take { board, all, .. } => {
            let these: Vec<_> = taken.iter().filter(|(player, _)| is_here(player)).cloned().collect();
            let (board, all) = (Arc::clone(board), *all);
            (!these.is_empty()).then(|| Step::Take { board, which: Taken::These(these), all })?
        }
        Step::Submit(submit) => is_here(&submit.write.player).then(|| Step::Submit(submit.clone()))?,
        Step::Read(_) => return None,
    })
}

/// What became of a batch, as its databases say one after the other.
pub(super) struct Whole {
    decisions: Vec<Decision>,
    failed: BTreeMap<usize, Fault>,
    /// Players that a command takes by rank, in the order asked for.
    taken: Vec<(PlayerId, Record)>,
    /// Requests of which a part is done.
    begun: Vec<bool>,
    /// Why a database refuses all commands of a request.
    refused: BTreeMap<usize, Rejection>,
}

impl Whole {
    pub(super) fn of(batch: &[Request], taken: Vec<(PlayerId, Record)>) -> Self {
        let decision = |request: &Request| match request {
            Request::Commands(commands) => Decision::Commands(commands.steps.iter().map(nothing).collect()),
            _ => Decision::Undone,
        };
        let decisions = batch.iter().map(decision).collect();
        let (failed, refused, begun) = (BTreeMap::new(), BTreeMap::new(), vec![false; batch.len()]);
        Self { decisions, failed, taken, begun, refused }
    }

    /// Whether a database has a part of the chunk of an import. The first one's position is that of the file, so it comes last and
    /// only where all others have theirs.
    fn goes_on(&self, at: usize, shard: usize) -> bool {
        shard != FIRST
            || !self.failed.contains_key(&at) && !matches!(self.decisions[at], Decision::Refused(_))
    }

    /// One database has done its part.
    pub(super) fn join(&mut self, slice: &Slice, decisions: Vec<Decision>) {
        for ((at, steps), decision) in slice.places.iter().zip(decisions) {
            self.begun[*at] |= !matches!(decision, Decision::Refused(_));
            let known = std::mem::replace(&mut self.decisions[*at], Decision::Undone);
            self.decisions[*at] = match (known, decision) {
                (Decision::Commands(mut dones), Decision::Commands(some)) => {
                    for (nth, done) in steps.iter().zip(some) {
                        dones[*nth].and(done);
                    }
                    Decision::Commands(dones)
                }
                (Decision::Commands(mut dones), Decision::Refused(rejection)) => {
                    for nth in steps {
                        dones[*nth].and(StepDone::of(StepReply::Refused(rejection.clone())));
                    }
                    self.refused.insert(*at, rejection);
                    Decision::Commands(dones)
                }
                (Decision::Import { progress: known, mut records, mut refused, replayed: before }, new) => {
                    let Decision::Import { mut progress, records: more, refused: others, replayed } = new
                    else {
                        // A part of it is done already: the others say why they do not go on.
                        self.failed.insert(*at, Fault::OutcomeUnknown("a part of the chunk is done".into()));
                        let (progress, replayed) = (known, before);
                        self.decisions[*at] = Decision::Import { progress, records, refused, replayed };
                        continue;
                    };
                    progress.taken += known.taken;
                    progress.refused += known.refused;
                    records.extend(more);
                    refused.extend(others);
                    Decision::Import { progress, records, refused, replayed: replayed && before }
                }
                (Decision::Refused(rejection), decision @ Decision::Import { .. }) => {
                    self.failed.insert(*at, Fault::OutcomeUnknown(rejection.detail()));
                    decision
                }
                (_, decision) => decision,
            };
        }
    }

    /// One database has not done its part.
    pub(super) fn fail(&mut self, slice: &Slice, fault: &Fault) {
        for (at, steps) in &slice.places {
            match &mut self.decisions[*at] {
                Decision::Commands(dones) => {
                    for nth in steps {
                        dones[*nth].and(StepDone::of(StepReply::Failed(fault.clone())));
                    }
                }
                _ => drop(self.failed.entry(*at).or_insert_with(|| fault.clone())),
            }
        }
    }

    /// Decisions in order, and the requests that hear of a fault instead.
    pub(super) fn end(self) -> (Vec<Decision>, BTreeMap<usize, Fault>) {
        let Self { mut decisions, mut failed, taken, begun, refused } = self;
        for (at, rejection) in refused.into_iter().filter(|(at, _)| !begun[*at]) {
            decisions[at] = Decision::Refused(rejection);
        }
        for (at, fault) in &mut failed {
            if begun[*at] {
                *fault = after_a_part(fault.clone());
            }
        }
        for decision in &mut decisions {
            let Decision::Commands(dones) = decision else { continue };
            for done in dones {
                if let StepReply::Took(list) = &mut done.reply {
                    // In the order asked for, whichever database they are in.
                    let mut places: BTreeMap<&PlayerId, usize> = BTreeMap::new();
                    places.extend(taken.iter().enumerate().map(|(place, (player, _))| (player, place)));
                    list.sort_by_key(|(player, _)| places.get(player).copied());
                }
            }
        }
        (decisions, failed)
    }
}

/// What a command has done as long as no database has done anything.
fn nothing(step: &Step) -> StepDone {
    StepDone::of(match step {
        Step::Take { .. } => StepReply::Took(Vec::new()),
        Step::Read(_) => StepReply::Read(Vec::new()),
        Step::Add { .. } | Step::Remove { .. } | Step::Submit(_) => StepReply::Pending,
    })
}

fn after_a_part(fault: Fault) -> Fault {
    match Failure::Fault(fault).after_a_part() {
        Failure::Fault(fault) => fault,
        Failure::Refused(rejection) => Fault::Broken(rejection.detail()),
    }
}

impl StepDone {
    /// What another database has done of the same command.
    fn and(&mut self, other: Self) {
        use StepReply::{Added, Failed, Pending, Refused, Removed, Took};
        let is_begun = !self.moves.is_empty() || !other.moves.is_empty();
        let known = std::mem::replace(&mut self.reply, Pending);
        self.reply = match (known, other.reply) {
            (Pending, reply) => reply,
            (Failed(fault), _) | (_, Failed(fault)) if is_begun => Failed(after_a_part(fault)),
            (Failed(fault), _) | (_, Failed(fault)) => Failed(fault),
            (Refused(rejection), _) | (_, Refused(rejection)) if is_begun => {
                Failed(Fault::OutcomeUnknown(format!("a part of it is done; then: {}", rejection.detail())))
            }
            (Refused(rejection), _) | (_, Refused(rejection)) => Refused(rejection),
            (Added { added, updated, .. }, Added { added: more, updated: others, score }) => {
                Added { added: added + more, updated: updated + others, score }
            }
            (Removed(count), Removed(more)) => Removed(count + more),
            (Took(mut list), Took(more)) => {
                list.extend(more);
                Took(list)
            }
            (_, reply) => reply,
        };
        self.moves.extend(other.moves);
        self.replayed = self.replayed.or(other.replayed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_store::plan::ALL_TIME;

    fn added(added: u64) -> StepDone {
        StepDone::of(StepReply::Added { added, updated: 0, score: None })
    }

    fn moved(mut done: StepDone) -> StepDone {
        done.moves.push((ALL_TIME, PlayerId::new("p").unwrap(), None));
        done
    }

    fn and(mut one: StepDone, other: StepDone) -> StepReply {
        one.and(other);
        one.reply
    }

    #[test]
    fn a_command_that_is_half_done_says_so() {
        let away = || StepDone::of(StepReply::Failed(Fault::StoreAway("x".into())));
        let refused = || StepDone::of(StepReply::Refused(Rejection::ScoreOverflow));
        assert!(matches!(and(added(1), added(2)), StepReply::Added { added: 3, .. }));
        assert!(matches!(and(added(0), away()), StepReply::Failed(Fault::StoreAway(_))));
        for (one, other) in
            [(moved(added(1)), away()), (away(), moved(added(1))), (moved(added(1)), refused())]
        {
            assert!(matches!(and(one, other), StepReply::Failed(Fault::OutcomeUnknown(_))));
        }
        assert!(matches!(and(refused(), added(0)), StepReply::Refused(Rejection::ScoreOverflow)));
        let pending = || StepDone::of(StepReply::Pending);
        assert!(matches!(and(pending(), away()), StepReply::Failed(Fault::StoreAway(_))));
    }
}
