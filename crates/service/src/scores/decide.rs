//! A batch in memory: every request applied in turn to what was loaded, one newest record per key to write.
//!
//! Pure: what was loaded and the instants are arguments, so a batch can be decided again after a conflict.

use super::command::{ImportChunk, Remove, Request, ScoreWrite, Submit};
use crate::keys::seen_before;
use std::collections::BTreeMap;
use tally_lanes::{WorkingSet, keys_to_load};
use tally_rules::definition::Definition;
use tally_rules::idempotency::{Identity, RequestKey, Seen, Stored};
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, PlayerId, Record, Refusal, record};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Changes, ImportKey, ImportRow, Loaded, Plan, ScoreKey};

/// The instants of a batch, given before it is decided: one per submit or removal, one per row of an import.
pub(super) type Given = Vec<Vec<Result<Micros, Refusal>>>;

/// What was decided about one request.
#[derive(Debug)]
pub(super) enum Decision {
    /// A submit's outcome, and whether it was decided in an earlier batch.
    Submit { record: Record, previous: Option<Record>, changed: bool, replayed: bool },
    /// A removal.
    Remove { replayed: bool },
    /// A chunk: the records it left behind, in order.
    Import {
        progress: ImportRow,
        records: Vec<(PlayerId, Record)>,
        refused: Vec<(u64, Refusal)>,
        replayed: bool,
    },
    /// A rule's answer.
    Refused(Refusal),
}

/// Everything a batch reads.
pub(super) fn plan(batch: &[Request]) -> Plan {
    let mut plan = Plan::default();
    let key = |board: BoardNo, player: &PlayerId| ScoreKey { board, part: ALL_TIME, player: player.clone() };
    for request in batch {
        let (board, identity) = match request {
            Request::Submit(submit) => {
                plan.scores.push(key(submit.board.no, &submit.write.player));
                (submit.board.no, submit.identity.as_ref())
            }
            Request::Remove(remove) => {
                plan.scores.push(key(remove.board.no, &remove.player));
                (remove.board.no, remove.identity.as_ref())
            }
            Request::Import(chunk) => {
                plan.scores.extend(chunk.rows.iter().map(|(_, write)| key(chunk.board.no, &write.player)));
                plan.imports.push(chunk.key.clone());
                (chunk.board.no, None)
            }
        };
        plan.boards.push(board);
        plan.requests.extend(identity.map(|one| one.key.clone()));
    }
    plan.boards = keys_to_load(plan.boards);
    plan.scores = keys_to_load(plan.scores);
    plan.requests = keys_to_load(plan.requests);
    plan.imports = keys_to_load(plan.imports);
    plan
}

/// Applies a batch to what its plan loaded.
pub(super) fn decide(
    batch: &[Request],
    instants: &Given,
    plan: &Plan,
    loaded: &Loaded,
    now: Micros,
    keep_micros: i64,
) -> (Changes, Vec<Decision>) {
    let mut state = State::new(plan, loaded, now, keep_micros);
    let decisions = batch
        .iter()
        .zip(instants)
        .map(|(request, instants)| {
            let decided = match request {
                Request::Submit(submit) => state.submit(submit, &instants[0]),
                Request::Remove(remove) => state.remove(remove),
                Request::Import(chunk) => state.import(chunk, instants),
            };
            decided.unwrap_or_else(Decision::Refused)
        })
        .collect();
    (state.into_changes(), decisions)
}

struct State {
    now: Micros,
    keep_micros: i64,
    live: BTreeMap<BoardNo, bool>,
    scores: WorkingSet<ScoreKey, Record>,
    requests: WorkingSet<RequestKey, Stored>,
    imports: WorkingSet<ImportKey, ImportRow>,
}

impl State {
    fn new(plan: &Plan, loaded: &Loaded, now: Micros, keep_micros: i64) -> Self {
        let mut state = Self {
            now,
            keep_micros,
            live: plan.boards.iter().copied().zip(loaded.boards.iter().copied()).collect(),
            scores: WorkingSet::new(),
            requests: WorkingSet::new(),
            imports: WorkingSet::new(),
        };
        for (key, record) in plan.scores.iter().zip(&loaded.scores) {
            state.scores.load(key.clone(), *record);
        }
        for (key, stored) in plan.requests.iter().zip(&loaded.requests) {
            state.requests.load(key.clone(), stored.clone());
        }
        for (key, row) in plan.imports.iter().zip(&loaded.imports) {
            state.imports.load(key.clone(), *row);
        }
        state
    }

    fn submit(&mut self, submit: &Submit, at: &Result<Micros, Refusal>) -> Result<Decision, Refusal> {
        if let Some(Outcome::Submitted { record, previous, changed }) =
            self.replay(submit.identity.as_ref())?
        {
            return Ok(Decision::Submit { record, previous, changed, replayed: true });
        }
        self.check_live(submit.board.no)?;
        let at = at.clone()?;
        let (previous, updated) = self.apply(submit.board.no, &submit.board.definition, &submit.write, at)?;
        let record::Updated { record, changed } = updated;
        self.remember(submit.identity.as_ref(), Outcome::Submitted { record, previous, changed });
        Ok(Decision::Submit { record, previous, changed, replayed: false })
    }

    fn remove(&mut self, remove: &Remove) -> Result<Decision, Refusal> {
        if self.replay(remove.identity.as_ref())?.is_some() {
            return Ok(Decision::Remove { replayed: true });
        }
        self.check_live(remove.board.no)?;
        let key = ScoreKey { board: remove.board.no, part: ALL_TIME, player: remove.player.clone() };
        if self.scores.get(&key).is_none() {
            return Err(Refusal::PlayerNotRanked);
        }
        self.scores.set(&key, None);
        self.remember(remove.identity.as_ref(), Outcome::Removed);
        Ok(Decision::Remove { replayed: false })
    }

    fn import(
        &mut self,
        chunk: &ImportChunk,
        instants: &[Result<Micros, Refusal>],
    ) -> Result<Decision, Refusal> {
        self.check_live(chunk.board.no)?;
        let mut progress = self.imports.get(&chunk.key).copied().unwrap_or_default();
        if chunk.lines_after <= progress.lines && !(chunk.last && !progress.finished) {
            return Ok(Decision::Import {
                progress,
                records: Vec::new(),
                refused: Vec::new(),
                replayed: true,
            });
        }
        if progress.finished {
            return Err(Refusal::ImportRepeated);
        }
        if chunk.lines_before != progress.lines {
            return Err(Refusal::ImportOutOfOrder(progress.lines));
        }
        let (mut records, mut refused) = (Vec::with_capacity(chunk.rows.len()), Vec::new());
        for ((line, write), at) in chunk.rows.iter().zip(instants) {
            let applied =
                at.clone().and_then(|at| self.apply(chunk.board.no, &chunk.board.definition, write, at));
            match applied {
                Ok((_, updated)) => records.push((write.player.clone(), updated.record)),
                Err(refusal) => refused.push((*line, refusal)),
            }
        }
        progress.lines = chunk.lines_after;
        progress.taken += records.len() as u64;
        progress.refused += refused.len() as u64;
        progress.finished = chunk.last;
        self.imports.set(&chunk.key, Some(progress));
        Ok(Decision::Import { progress, records, refused, replayed: false })
    }

    /// The one place where a record changes.
    fn apply(
        &mut self,
        board: BoardNo,
        definition: &Definition,
        write: &ScoreWrite,
        at: Micros,
    ) -> Result<(Option<Record>, record::Updated), Refusal> {
        let key = ScoreKey { board, part: ALL_TIME, player: write.player.clone() };
        let previous = self.scores.get(&key).copied();
        let submit = Record { score: write.score, subscore: write.subscore, at };
        let updated = record::apply(definition, previous, submit)?;
        if updated.changed {
            self.scores.set(&key, Some(updated.record));
        }
        Ok((previous, updated))
    }

    fn check_live(&self, board: BoardNo) -> Result<(), Refusal> {
        if self.live.get(&board).copied().expect("every board of the batch is in its plan") {
            Ok(())
        } else {
            Err(Refusal::LeaderboardNotFound(None))
        }
    }

    fn replay(&self, identity: Option<&Identity>) -> Result<Option<Outcome>, Refusal> {
        let stored = identity.and_then(|one| self.requests.get(&one.key));
        match seen_before(identity, stored, self.now, self.keep_micros)? {
            Seen::Replay(outcome) => Ok(Some(*outcome)),
            Seen::New => Ok(None),
        }
    }

    fn remember(&mut self, identity: Option<&Identity>, outcome: Outcome) {
        if let Some(one) = identity {
            let stored = Stored { fingerprint: one.fingerprint, at: self.now, outcome };
            self.requests.set(&one.key, Some(stored));
        }
    }

    fn into_changes(self) -> Changes {
        let kept = |stored: Option<Stored>| stored.expect("requests are never forgotten here");
        let done = |row: Option<ImportRow>| row.expect("imports are never forgotten here");
        Changes {
            scores: self.scores.into_writes(),
            requests: self.requests.into_writes().into_iter().map(|(key, one)| (key, kept(one))).collect(),
            imports: self.imports.into_writes().into_iter().map(|(key, row)| (key, done(row))).collect(),
            ..Changes::default()
        }
    }
}
