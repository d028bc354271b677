//! The working set of a batch: every request is applied in turn to the loaded rows, and each key is written once.
//!
//! Pure: loaded rows and the instants are arguments, so a batch can be decided again after a conflict.

use super::kind::{Decision, ScoreRequest};
use super::read::{Reading, score_key};
use super::revision_guard::Replan;
use super::targets::Targets;
use crate::boards::Board;
use crate::contests::play;
use crate::outcomes::{Outcomes, Retention};
use crate::scores::submit::ScoreWrite;
use std::collections::BTreeMap;
use tally_lanes::WorkingSet;
use tally_ranking::RankingError;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::definition::Definition;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::outcome::Outcome;
use tally_rules::profile::Profile;
use tally_rules::record::{self, Updated};
use tally_rules::{Micros, PlayerId, Record, Rejection};
use tally_store::plan::ATTEMPTS;
use tally_store::{
    BanKey, BoardChange, BoardNo, Garbage, ImportKey, ImportRow, Loaded, ScoreKey, Window, WindowKey,
    WindowRow, WriteSet,
};

/// Applies a batch to what its transaction loaded.
pub(super) fn decide(
    batch: &[ScoreRequest],
    targets: &Targets,
    reading: &Reading,
    loaded: &Loaded,
    when: (Micros, Retention),
) -> Result<(WriteSet, Vec<Decision>), Replan> {
    let mut state = ScoreBatchState::new(reading, loaded, when);
    let decide = |(at, request): (usize, &ScoreRequest)| request.decide(&mut state, targets.of(at), targets);
    let decisions = batch.iter().enumerate().map(decide).collect();
    if let Some(fault) = state.fault.take() {
        return Err(fault.into());
    }
    if !state.missing.is_empty() {
        return Err(Replan::Missing(state.missing));
    }
    if !state.lagging.is_empty() {
        return Err(Replan::Lagging(state.lagging));
    }
    // A leaderboard that is deleted by now gets no window: its rows may have been purged already.
    let rows = targets.window_rows().into_iter().filter(|(key, _)| state.check_live(key.board).is_ok());
    let mut windows: BTreeMap<_, _> = rows.collect();
    let mut changes = state.into_changes();
    // A window may have been removed by this very batch: it stays removed then.
    windows.extend(std::mem::take(&mut changes.windows));
    changes.windows = windows.into_iter().collect();
    Ok((changes, decisions))
}

/// What a score did.
pub(crate) struct Applied {
    /// The record before and after, in the window that is named first.
    pub(crate) previous: Option<Record>,
    pub(crate) updated: Updated,
    /// The records that it left in every window.
    pub(crate) records: Vec<(Window, Record)>,
}

/// A changed record: what it is now, `None` if it was removed.
pub(crate) type RecordChange = (Window, PlayerId, Option<Record>);

/// What a batch knows and has done so far.
pub(crate) struct ScoreBatchState {
    pub(crate) now: Micros,
    live: BTreeMap<BoardNo, bool>,
    pub(crate) scores: WorkingSet<ScoreKey, Record>,
    outcomes: Outcomes,
    pub(crate) imports: WorkingSet<ImportKey, ImportRow>,
    pub(crate) profiles: WorkingSet<PlayerId, Profile>,
    pub(crate) bans: BTreeMap<BanKey, bool>,
    /// Present definitions of the leaderboards that are redefined.
    pub(crate) definitions: BTreeMap<BoardNo, Definition>,
    pub(crate) redefined: BTreeMap<BoardNo, Definition>,
    pub(crate) windows: BTreeMap<WindowKey, Option<WindowRow>>,
    pub(crate) garbage: Vec<Garbage>,
    pub(crate) deleted_unused: Vec<BoardNo>,
    /// New rows of the audit log.
    pub(crate) audit: Vec<(AuditId, AuditEntry)>,
    /// Why a ranking could not be read: nothing of the batch is done then.
    pub(crate) fault: Option<RankingError>,
    /// Records that turned out to matter and were not read.
    pub(crate) missing: Vec<ScoreKey>,
    /// Records that a ranking elsewhere knows differently.
    pub(crate) lagging: Vec<ScoreKey>,
}

impl ScoreBatchState {
    fn new(reading: &Reading, loaded: &Loaded, (now, retention): (Micros, Retention)) -> Self {
        let plan = &reading.plan;
        let mut state = Self {
            now,
            live: plan.boards.iter().copied().zip(loaded.boards.iter().map(Option::is_some)).collect(),
            scores: WorkingSet::new(),
            outcomes: Outcomes::new(&plan.requests, &loaded.requests, retention),
            imports: WorkingSet::new(),
            profiles: WorkingSet::new(),
            bans: BTreeMap::new(),
            definitions: BTreeMap::new(),
            redefined: BTreeMap::new(),
            windows: BTreeMap::new(),
            garbage: Vec::new(),
            deleted_unused: Vec::new(),
            audit: Vec::new(),
            fault: None,
            missing: Vec::new(),
            lagging: Vec::new(),
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
        for (key, row) in plan.imports.iter().zip(&loaded.imports) {
            state.imports.load(key.clone(), *row);
        }
        for (player, profile) in plan.profiles.iter().zip(&loaded.profiles) {
            state.profiles.load(player.clone(), profile.clone());
        }
        state
    }

    /// Applies a score that a member may have submitted too often.
    pub(crate) fn apply_attempt(
        &mut self,
        board: &Board,
        write: &ScoreWrite,
        at: Micros,
        windows: &[Window],
    ) -> Result<Applied, Rejection> {
        self.check_attempts(board, [&write.player])?;
        let applied = self.apply(board, write, at, windows)?;
        self.count_attempt(board, &write.player, at);
        Ok(applied)
    }

    /// Rejects scores beyond those that the contest of a leaderboard allows each of its members.
    pub(crate) fn check_attempts<'p>(
        &self,
        board: &Board,
        players: impl IntoIterator<Item = &'p PlayerId>,
    ) -> Result<(), Rejection> {
        let Some(most) = play::attempts_max(board) else { return Ok(()) };
        let mut attempts: BTreeMap<&PlayerId, i64> = BTreeMap::new();
        for player in players {
            let stored =
                || self.scores.get(&score_key(board.no, ATTEMPTS, player)).map_or(0, |row| row.score);
            let attempts = attempts.entry(player).or_insert_with(stored);
            *attempts += 1;
            if *attempts > most.into() {
                return Err(Rejection::NoAttemptsLeft { player: player.clone(), most });
            }
        }
        Ok(())
    }

    /// Counts the attempt of a member, if its contest limits them.
    pub(crate) fn count_attempt(&mut self, board: &Board, player: &PlayerId, at: Micros) {
        if play::attempts_max(board).is_some() {
            let key = score_key(board.no, ATTEMPTS, player);
            let score = self.scores.get(&key).map_or(0, |row| row.score) + 1;
            self.scores.set(&key, Some(Record { score, subscore: 0, at }));
        }
    }

    /// Applies a score to all windows that it counts for, or to none.
    pub(crate) fn apply(
        &mut self,
        board: &Board,
        write: &ScoreWrite,
        at: Micros,
        windows: &[Window],
    ) -> Result<Applied, Rejection> {
        let submit = Record { score: write.score, subscore: write.subscore, at };
        let (mut first, mut updates) = (None, Vec::with_capacity(windows.len()));
        for window in windows {
            let key = score_key(board.no, *window, &write.player);
            let previous = self.scores.get(&key).copied();
            let updated = record::apply(&board.definition, previous, submit)?;
            first = first.or(Some((previous, updated)));
            updates.push((key, updated));
        }
        let (previous, updated) = first.ok_or(Rejection::PeriodClosed(Some(at)))?;
        let mut records = Vec::with_capacity(updates.len());
        for (key, updated) in updates {
            records.push((key.window, updated.record));
            if updated.changed {
                self.scores.set(&key, Some(updated.record));
            }
        }
        Ok(Applied { previous, updated, records })
    }

    /// Removes a player's records from these windows. Returns whether the first one had a record.
    pub(crate) fn remove(
        &mut self,
        board: BoardNo,
        player: &PlayerId,
        windows: &[Window],
        changes: &mut Vec<RecordChange>,
    ) -> bool {
        let mut is_shown = false;
        for (nth, window) in windows.iter().enumerate() {
            let key = score_key(board, *window, player);
            if self.scores.get(&key).is_some() {
                is_shown |= nth == 0;
                self.scores.set(&key, None);
                changes.push((*window, player.clone(), None));
            }
        }
        is_shown
    }

    /// Marks, with the change itself, the archives of a player's closed periods as outdated. The caller writes them again
    /// before the reply; if that is interrupted, the next start does.
    pub(crate) fn mark_stale(&mut self, board: &Board, player: &PlayerId) {
        for row in board.periods().packed_anywhere(board.is_shared()) {
            let key = score_key(board.no, row.window, player);
            if self.scores.is_loaded(&key) && self.scores.get(&key).is_some() {
                let window = WindowKey { board: board.no, window: row.window };
                self.windows.insert(window, Some(WindowRow { stale: true, ..row }));
            }
        }
    }

    pub(crate) fn check_live(&self, board: BoardNo) -> Result<(), Rejection> {
        if self.live.get(&board).copied().expect("every board of the batch is in its plan") {
            Ok(())
        } else {
            Err(Rejection::LeaderboardNotFound(None))
        }
    }

    /// The outcome of an earlier request with this idempotency key, and when it was stored.
    pub(crate) fn replay(
        &self,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<Option<(Outcome, Micros)>, Rejection> {
        let outcome = self.outcomes.replay(idempotency)?;
        let at = |outcome| Some((outcome, self.outcomes.stored(&idempotency?.key)?.at));
        Ok(outcome.and_then(at))
    }

    /// Stores an outcome for retries.
    pub(crate) fn remember(&mut self, idempotency: Option<&IdempotencyKey>, outcome: Outcome) {
        self.outcomes.remember(idempotency, outcome);
    }

    fn into_changes(mut self) -> WriteSet {
        self.audit.sort_unstable_by_key(|(id, _)| *id);
        let done = |row: Option<ImportRow>| row.expect("imports are never forgotten here");
        WriteSet {
            scores: self.scores.into_writes(),
            requests: self.outcomes.into_writes(),
            imports: self.imports.into_writes().into_iter().map(|(key, row)| (key, done(row))).collect(),
            profiles: self.profiles.into_writes(),
            bans: self.bans.into_iter().collect(),
            boards: {
                let deleted = self.deleted_unused.into_iter().map(BoardChange::Delete);
                let changed = self.redefined.into_iter().map(|(no, one)| BoardChange::Redefine(no, one));
                changed.chain(deleted).collect()
            },
            windows: self.windows.into_iter().collect(),
            garbage: self.garbage,
            audit: self.audit,
            ..WriteSet::default()
        }
    }
}
