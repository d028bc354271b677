//! A batch in memory: every request applied in turn to what was loaded, one newest record per key to write.
//!
//! Pure: what was loaded and the instants are arguments, so a batch can be decided again after a conflict.

use super::command::{Ban, Erase, ImportChunk, Remove, Request, ScoreWrite, Submit};
use crate::keys::seen_before;
use std::collections::BTreeMap;
use tally_lanes::{WorkingSet, keys_to_load};
use tally_rules::definition::Definition;
use tally_rules::idempotency::{Identity, RequestKey, Seen, Stored};
use tally_rules::outcome::Outcome;
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record, Refusal, record};
use tally_store::plan::ALL_TIME;
use tally_store::{BanKey, BoardNo, Changes, ImportKey, ImportRow, Loaded, Plan, ScoreKey};

/// The instants of a batch, given before it is decided: one per submit or removal, one per row of an import.
pub(super) type Given = Vec<Vec<Result<Micros, Refusal>>>;

/// What was decided about one request.
#[derive(Debug)]
pub(super) enum Decision {
    /// A submit's outcome, and whether it was decided in an earlier batch.
    Submit { record: Record, previous: Option<Record>, changed: bool, replayed: bool },
    /// A removal.
    Remove { replayed: bool },
    /// Hiding or showing, and the record that is hidden or shown.
    Ban { record: Option<Record>, replayed: bool },
    /// Erasing.
    Erase { replayed: bool },
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
    for request in batch {
        let identity = match request {
            Request::Submit(Submit { board, write: ScoreWrite { player, .. }, identity })
            | Request::Remove(Remove { board, player, identity })
            | Request::Ban(Ban { board, player, identity, .. }) => {
                plan.boards.push(board.no);
                plan.scores.push(score_key(board.no, player));
                identity.as_ref()
            }
            Request::Erase(Erase { player, boards, identity }) => {
                plan.scores.extend(boards.iter().map(|board| score_key(board.no, player)));
                plan.profiles.push(player.clone());
                identity.as_ref()
            }
            Request::Import(chunk) => {
                plan.boards.push(chunk.board.no);
                plan.scores
                    .extend(chunk.rows.iter().map(|(_, write)| score_key(chunk.board.no, &write.player)));
                plan.imports.push(chunk.key.clone());
                None
            }
        };
        plan.requests.extend(identity.map(|one| one.key.clone()));
    }
    plan.boards = keys_to_load(plan.boards);
    plan.scores = keys_to_load(plan.scores);
    plan.requests = keys_to_load(plan.requests);
    plan.imports = keys_to_load(plan.imports);
    plan.profiles = keys_to_load(plan.profiles);
    plan
}

fn score_key(board: BoardNo, player: &PlayerId) -> ScoreKey {
    ScoreKey { board, part: ALL_TIME, player: player.clone() }
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
                Request::Ban(ban) => state.ban(ban),
                Request::Erase(erase) => state.erase(erase),
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
    profiles: WorkingSet<PlayerId, Profile>,
    bans: BTreeMap<BanKey, bool>,
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
            profiles: WorkingSet::new(),
            bans: BTreeMap::new(),
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
        for (player, profile) in plan.profiles.iter().zip(&loaded.profiles) {
            state.profiles.load(player.clone(), profile.clone());
        }
        state
    }

    fn submit(&mut self, submit: &Submit, at: &Result<Micros, Refusal>) -> Result<Decision, Refusal> {
        if let Some(Outcome::Submitted { record, previous, changed, .. }) =
            self.replay(submit.identity.as_ref())?
        {
            return Ok(Decision::Submit { record, previous, changed, replayed: true });
        }
        self.check_live(submit.board.no)?;
        let at = at.clone()?;
        let definition = &submit.board.definition;
        let (previous, updated) = self.apply(submit.board.no, definition, &submit.write, at)?;
        let record::Updated { record, changed } = updated;
        self.remember(
            submit.identity.as_ref(),
            Outcome::Submitted {
                record,
                previous,
                changed,
                score: definition.score,
                subscore: definition.has_subscore(),
            },
        );
        Ok(Decision::Submit { record, previous, changed, replayed: false })
    }

    fn remove(&mut self, remove: &Remove) -> Result<Decision, Refusal> {
        if self.replay(remove.identity.as_ref())?.is_some() {
            return Ok(Decision::Remove { replayed: true });
        }
        self.check_live(remove.board.no)?;
        let key = score_key(remove.board.no, &remove.player);
        if self.scores.get(&key).is_none() {
            return Err(Refusal::PlayerNotRanked);
        }
        self.scores.set(&key, None);
        self.remember(remove.identity.as_ref(), Outcome::Removed);
        Ok(Decision::Remove { replayed: false })
    }

    fn ban(&mut self, ban: &Ban) -> Result<Decision, Refusal> {
        let replayed = self.replay(ban.identity.as_ref())?.is_some();
        let record = self.scores.get(&score_key(ban.board.no, &ban.player)).copied();
        if !replayed {
            self.check_live(ban.board.no)?;
            self.bans.insert(BanKey { board: ban.board.no, player: ban.player.clone() }, ban.hidden);
            self.remember(ban.identity.as_ref(), Outcome::Removed);
        }
        Ok(Decision::Ban { record, replayed })
    }

    fn erase(&mut self, erase: &Erase) -> Result<Decision, Refusal> {
        if self.replay(erase.identity.as_ref())?.is_some() {
            return Ok(Decision::Erase { replayed: true });
        }
        let mut known = self.profiles.get(&erase.player).is_some();
        for board in &erase.boards {
            let key = score_key(board.no, &erase.player);
            known |= self.scores.get(&key).is_some() || board.hides(&erase.player);
            self.scores.set(&key, None);
            self.bans.insert(BanKey { board: board.no, player: erase.player.clone() }, false);
        }
        if !known {
            return Err(Refusal::PlayerNotFound);
        }
        self.profiles.set(&erase.player, None);
        self.remember(erase.identity.as_ref(), Outcome::Removed);
        Ok(Decision::Erase { replayed: false })
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
        progress.refused += refused.len() as u64 + chunk.refused;
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
        let key = score_key(board, &write.player);
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
            profiles: self.profiles.into_writes(),
            bans: self.bans.into_iter().collect(),
            ..Changes::default()
        }
    }
}
