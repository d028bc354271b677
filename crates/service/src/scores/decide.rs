//! A batch in memory: every request applied in turn to what was loaded, one newest record per key to write.
//!
//! Pure: what was loaded and the instants are arguments, so a batch can be decided again after a conflict.

use super::aim::{Aims, RowAim};
use super::command::{ImportChunk, Redefine, Remove, Request, ScoreWrite, Submit};
use super::plan::{Reading, score_key};
use super::redefine::{self, Change, Redefinition};
use super::standing::Unready;
use super::steps::StepDone;
use crate::boards::Board;
use crate::keys::seen_before;
use std::collections::BTreeMap;
use tally_lanes::WorkingSet;
use tally_ranking::RankingError;
use tally_rules::definition::Definition;
use tally_rules::idempotency::{IdempotencyKey, KeyCheck, RequestKey, Stored};
use tally_rules::outcome::Outcome;
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record, Rejection, record};
use tally_store::{
    BanKey, BoardChange, BoardNo, Changes, Gone, ImportKey, ImportRow, Loaded, Part, PartKey, PartRow,
    ScoreKey,
};

/// What was decided about one request.
#[derive(Debug)]
pub(super) enum Decision {
    /// A submit's outcome in the part that is named first, and the records it left in every part.
    Submit {
        record: Record,
        previous: Option<Record>,
        changed: bool,
        /// When it was decided, if that was in an earlier batch.
        replayed: Option<Micros>,
        parts: Vec<(Part, Record)>,
    },
    /// A removal from these parts.
    Remove { replayed: bool },
    /// Hiding or showing, and the records that are hidden or shown.
    Ban { records: Vec<(Part, Record)>, replayed: bool },
    /// Erasing, and where there was a record.
    Erase { replayed: bool },
    /// A chunk: the records it left behind, in order.
    Import {
        progress: ImportRow,
        records: Vec<(PlayerId, Vec<(Part, Record)>)>,
        refused: Vec<(u64, Rejection)>,
        replayed: bool,
    },
    /// What changed of a definition.
    Redefine { change: Change, replayed: Option<Outcome> },
    /// Commands, step by step.
    Commands(Vec<StepDone>),
    /// Whether an empty board goes.
    Vanish(bool),
    /// A rule's answer.
    Refused(Rejection),
    /// None: its database has not done it.
    Undone,
}

/// Applies a batch to what its plan loaded.
pub(super) fn decide(
    batch: &[Request],
    aims: &Aims,
    reading: &Reading,
    loaded: &Loaded,
    (now, keep_micros): (Micros, i64),
) -> Result<(Changes, Vec<Decision>), Unready> {
    let mut state = State::new(reading, loaded, now, keep_micros);
    let decisions = batch
        .iter()
        .zip(&aims.rows)
        .map(|(request, rows)| {
            let decided = match request {
                Request::Submit(submit) => state.submit(submit, &rows[0]),
                Request::Remove(remove) => state.remove(remove, &rows[0]),
                Request::Ban(ban) => state.ban(ban, &rows[0]),
                Request::Erase(erase) => state.erase(erase, aims),
                Request::Import(chunk) => state.import(chunk, rows),
                Request::Redefine(redefine) => state.redefine(redefine),
                Request::Commands(commands) => state.commands(commands, rows, aims).map(Decision::Commands),
                Request::Vanish(board) => Ok(Decision::Vanish(state.vanish(board))),
            };
            decided.unwrap_or_else(Decision::Refused)
        })
        .collect();
    if let Some(fault) = state.fault.take() {
        return Err(fault.into());
    }
    if !state.missing.is_empty() {
        return Err(Unready::Missing(state.missing));
    }
    if !state.behind.is_empty() {
        return Err(Unready::Behind(state.behind));
    }
    // A board that is gone by now gets no part: its rows may have been purged already.
    let rows = aims.part_rows().into_iter().filter(|(key, _)| state.check_live(key.board).is_ok());
    let mut parts: BTreeMap<_, _> = rows.collect();
    let mut changes = state.into_changes();
    // A part may have been removed by this very batch: what is removed stays removed.
    parts.extend(std::mem::take(&mut changes.parts));
    changes.parts = parts.into_iter().collect();
    Ok((changes, decisions))
}

/// What a score did: in the part named first, and the records it left in each.
struct Applied {
    first: (Option<Record>, record::Updated),
    records: Vec<(Part, Record)>,
}

/// What a batch knows and has done so far.
pub(super) struct State {
    now: Micros,
    keep_micros: i64,
    live: BTreeMap<BoardNo, bool>,
    pub(super) scores: WorkingSet<ScoreKey, Record>,
    requests: WorkingSet<RequestKey, Stored>,
    imports: WorkingSet<ImportKey, ImportRow>,
    pub(super) profiles: WorkingSet<PlayerId, Profile>,
    pub(super) bans: BTreeMap<BanKey, bool>,
    /// Present definitions of the boards that are redefined.
    definitions: BTreeMap<BoardNo, Definition>,
    redefined: BTreeMap<BoardNo, Definition>,
    pub(super) parts: BTreeMap<PartKey, Option<PartRow>>,
    gone: Vec<Gone>,
    vanished: Vec<BoardNo>,
    /// Why an order could not be asked: then nothing of the batch is done.
    pub(super) fault: Option<RankingError>,
    /// Records that turned out to matter and were not read.
    pub(super) missing: Vec<ScoreKey>,
    /// Records of which an order elsewhere does not know the present.
    pub(super) behind: Vec<ScoreKey>,
}

impl State {
    fn new(reading: &Reading, loaded: &Loaded, now: Micros, keep_micros: i64) -> Self {
        let plan = &reading.plan;
        let mut state = Self {
            now,
            keep_micros,
            live: plan.boards.iter().copied().zip(loaded.boards.iter().map(Option::is_some)).collect(),
            scores: WorkingSet::new(),
            requests: WorkingSet::new(),
            imports: WorkingSet::new(),
            profiles: WorkingSet::new(),
            bans: BTreeMap::new(),
            definitions: BTreeMap::new(),
            redefined: BTreeMap::new(),
            parts: BTreeMap::new(),
            gone: Vec::new(),
            vanished: Vec::new(),
            fault: None,
            missing: Vec::new(),
            behind: Vec::new(),
        };
        state.scores.reserve(plan.scores.len() + reading.known.len());
        let present = loaded.board_names.iter().flatten();
        state.definitions.extend(present.map(|row| (row.no, row.definition.clone())));
        for (key, record) in plan.scores.iter().zip(&loaded.scores) {
            state.scores.load(key.clone(), *record);
        }
        for (key, record) in &reading.known {
            state.scores.load_known(key.clone(), || *record);
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

    pub(super) fn submit(&mut self, submit: &Submit, aim: &RowAim) -> Result<Decision, Rejection> {
        if let Some(Outcome::Submitted { record, previous, changed, .. }) =
            self.replay(submit.identity.as_ref())?
        {
            let stored = submit.identity.as_ref().and_then(|one| self.requests.get(&one.key));
            let replayed = stored.map(|stored| stored.at);
            return Ok(Decision::Submit { record, previous, changed, replayed, parts: Vec::new() });
        }
        self.check_live(submit.board.no)?;
        let definition = &submit.board.definition;
        let at = aim.at.clone()?;
        let applied = self.apply(submit.board.no, definition, &submit.write, at, &aim.parts)?;
        let (previous, record::Updated { record, changed }) = applied.first;
        let (score, subscore) = (definition.score, definition.has_subscore());
        self.remember(
            submit.identity.as_ref(),
            Outcome::Submitted { record, previous, changed, score, subscore },
        );
        Ok(Decision::Submit { record, previous, changed, replayed: None, parts: applied.records })
    }

    fn remove(&mut self, remove: &Remove, aim: &RowAim) -> Result<Decision, Rejection> {
        if self.replay(remove.identity.as_ref())?.is_some() {
            return Ok(Decision::Remove { replayed: true });
        }
        self.check_live(remove.board.no)?;
        aim.at.clone()?;
        let mut ranked = false;
        for part in &aim.parts {
            let key = score_key(remove.board.no, *part, &remove.player);
            ranked |= self.scores.get(&key).is_some();
            self.scores.set(&key, None);
        }
        if !ranked {
            return Err(Rejection::PlayerNotRanked);
        }
        self.remember(remove.identity.as_ref(), Outcome::Removed);
        Ok(Decision::Remove { replayed: false })
    }

    fn import(&mut self, chunk: &ImportChunk, rows: &[RowAim]) -> Result<Decision, Rejection> {
        self.check_live(chunk.board.no)?;
        let mut progress = self.imports.get(&chunk.key).copied().unwrap_or_default();
        let ends = chunk.last && !progress.finished;
        if chunk.lines_after <= progress.lines && !ends {
            return Ok(Decision::Import {
                progress,
                records: Vec::new(),
                refused: Vec::new(),
                replayed: true,
            });
        }
        if progress.finished {
            return Err(Rejection::ImportRepeated);
        }
        // One of several databases may be ahead of the others, where one of them failed.
        let is_ahead = chunk.is_slice && chunk.lines_before < progress.lines;
        if chunk.lines_before != progress.lines && !is_ahead {
            return Err(Rejection::ImportOutOfOrder(progress.lines));
        }
        let is_new = |line: &u64| *line > progress.lines;
        let (mut records, mut refused) = (Vec::with_capacity(chunk.rows.len()), Vec::new());
        for ((line, write), aim) in chunk.rows.iter().zip(rows).filter(|((line, _), _)| is_new(line)) {
            let applied = aim
                .at
                .clone()
                .and_then(|at| self.apply(chunk.board.no, &chunk.board.definition, write, at, &aim.parts));
            match applied {
                Ok(applied) => records.push((write.player.clone(), applied.records)),
                Err(rejection) => refused.push((*line, rejection)),
            }
        }
        let before = chunk.refused.iter().filter(|line| is_new(line)).count();
        progress = ImportRow {
            lines: chunk.lines_after.max(progress.lines),
            taken: progress.taken + records.len() as u64,
            refused: progress.refused + (refused.len() + before) as u64,
            finished: chunk.last,
        };
        self.imports.set(&chunk.key, Some(progress));
        Ok(Decision::Import { progress, records, refused, replayed: false })
    }

    fn redefine(&mut self, redefine: &Redefine) -> Result<Decision, Rejection> {
        let no = redefine.board.no;
        if let Some(first) = self.replay(redefine.identity.as_ref())? {
            return Ok(Decision::Redefine { change: Change::None, replayed: Some(first) });
        }
        let present = self.definitions.get(&no).ok_or(Rejection::LeaderboardNotFound(None))?;
        let change = redefine::redefine(redefine, present, self.now)?;
        if let Change::Owes = change {
            return Ok(Decision::Redefine { change, replayed: None });
        }
        self.remember(redefine.identity.as_ref(), Outcome::BoardPut { created: false });
        if let Change::To(Redefinition { definition, ends, gone }) = &change {
            let key = |part: &Part| PartKey { board: no, part: *part };
            self.parts.extend(ends.iter().map(|row| (key(&row.part), Some(*row))));
            self.parts.extend(gone.iter().map(|part| (key(part), None)));
            self.gone.extend(gone.iter().map(|part| Gone::Part(key(part))));
            self.definitions.insert(no, definition.clone());
            self.redefined.insert(no, definition.clone());
        }
        Ok(Decision::Redefine { change, replayed: None })
    }

    /// It stands alone in its batch, so the order in memory is all there is.
    fn vanish(&mut self, board: &Board) -> bool {
        let goes = self.check_live(board.no).is_ok() && !board.is_there();
        if goes {
            self.vanished.push(board.no);
        }
        goes
    }

    /// The one place where records change: all parts that a score counts for, or none.
    fn apply(
        &mut self,
        board: BoardNo,
        definition: &Definition,
        write: &ScoreWrite,
        at: Micros,
        parts: &[Part],
    ) -> Result<Applied, Rejection> {
        let submit = Record { score: write.score, subscore: write.subscore, at };
        let mut first = None;
        let mut updates = Vec::with_capacity(parts.len());
        for part in parts {
            let key = score_key(board, *part, &write.player);
            let previous = self.scores.get(&key).copied();
            let updated = record::apply(definition, previous, submit)?;
            first = first.or(Some((previous, updated)));
            updates.push((key, updated));
        }
        let first = first.ok_or(Rejection::PeriodClosed)?;
        let mut records = Vec::with_capacity(updates.len());
        for (key, updated) in updates {
            records.push((key.part, updated.record));
            if updated.changed {
                self.scores.set(&key, Some(updated.record));
            }
        }
        Ok(Applied { first, records })
    }

    pub(super) fn check_live(&self, board: BoardNo) -> Result<(), Rejection> {
        if self.live.get(&board).copied().expect("every board of the batch is in its plan") {
            Ok(())
        } else {
            Err(Rejection::LeaderboardNotFound(None))
        }
    }

    pub(super) fn replay(&self, identity: Option<&IdempotencyKey>) -> Result<Option<Outcome>, Rejection> {
        let stored = identity.and_then(|one| self.requests.get(&one.key));
        match seen_before(identity, stored, self.now, self.keep_micros)? {
            KeyCheck::Replay(outcome) => Ok(Some(*outcome)),
            KeyCheck::New => Ok(None),
        }
    }

    pub(super) fn remember(&mut self, identity: Option<&IdempotencyKey>, outcome: Outcome) {
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
            boards: {
                let gone = self.vanished.into_iter().map(BoardChange::Delete);
                let changed = self.redefined.into_iter().map(|(no, one)| BoardChange::Redefine(no, one));
                changed.chain(gone).collect()
            },
            parts: self.parts.into_iter().collect(),
            gone: self.gone,
            ..Changes::default()
        }
    }
}
