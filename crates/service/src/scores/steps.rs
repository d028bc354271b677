//! The steps of a pipeline: their decisions and their replies.

use super::batch::{
    Access, Players, RecordChange, RowTarget, ScoreBatchState, ScoreRequestKind, Slicing, TargetRow, Targets,
    after_a_window, score_key,
};
use super::rankings::Rankings;
use super::select::{RankSelection, select};
use super::submit::{self, Submit, Submitted};
use crate::boards::Board;
use crate::failure::Fault;
use std::sync::Arc;
use tally_ranking::Published;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::sorted_set::Add;
use tally_rules::{PlayerId, Record, Rejection, record};
use tally_store::{BoardNo, ScoreKey, Window};

/// The most players that one step takes out if it may be done in several: a limit of the transaction.
pub const TAKE_MAX: usize = 10_000;

/// The same if it must be one; a larger step is rejected.
pub const TAKE_ALL_MAX: usize = 1_000_000;

/// One step of a pipeline.
#[derive(Debug)]
pub enum PipelineStep {
    /// Scores of several players on one board.
    Add {
        /// The leaderboard.
        board: Arc<Board>,
        /// Players and scores.
        items: Vec<(PlayerId, i64)>,
        /// Conditions.
        options: Add,
    },
    /// These players leave the open windows.
    Remove {
        /// The leaderboard.
        board: Arc<Board>,
        /// The players.
        players: Vec<PlayerId>,
    },
    /// Players at certain ordinal positions leave the open windows.
    Take {
        /// The leaderboard.
        board: Arc<Board>,
        /// The players, by position in the first target window.
        which: RankSelection,
        /// Whether it is rejected if it selects more players than one step may take.
        all: bool,
    },
    /// The same submit as over HTTP.
    Submit(Submit),
    /// A read.
    Read(ReadStep),
}

/// The function of a [`PipelineStep::Read`]. It appends the reply.
type ReadFunction = Box<dyn FnOnce(&Rankings<'_>, &mut Vec<u8>) + Send>;

/// A read that runs once.
pub struct ReadStep(Option<ReadFunction>);

impl ReadStep {
    /// A read; its reply is returned as bytes.
    pub fn new(read: impl FnOnce(&Rankings<'_>, &mut Vec<u8>) + Send + 'static) -> Self {
        Self(Some(Box::new(read)))
    }

    /// Runs it. Several reads share a buffer, because one that grows anew touches twice the memory of its reply.
    pub fn run(&mut self, rankings: &Rankings<'_>, buffer: &mut Vec<u8>) -> Vec<u8> {
        buffer.clear();
        if let Some(read) = self.0.take() {
            read(rankings, buffer);
        }
        buffer.as_slice().to_vec()
    }
}

impl std::fmt::Debug for ReadStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadStep")
    }
}

/// The reply to one step.
#[derive(Debug)]
pub enum StepReply {
    /// Scores.
    Added {
        /// Players that were not there.
        added: u64,
        /// Players that were there and have another score now.
        updated: u64,
        /// The last player's score, unless a condition was not met.
        score: Option<i64>,
    },
    /// How many players were removed.
    Removed(u64),
    /// The removed players, in the requested order.
    Took(Vec<(PlayerId, i64)>),
    /// A submit.
    Submitted(Submitted),
    /// The reply of a read.
    Read(Vec<u8>),
    /// A rule does not allow it; nothing changed.
    Rejected(Rejection),
    /// Its shard is unavailable; nothing changed, unless the fault says otherwise.
    Failed(Fault),
    /// Not decided by its shard, or not published yet.
    Pending,
}

/// The decision on a step: its reply, and the records that it leaves.
#[derive(Debug)]
pub(super) struct StepDone {
    pub(super) reply: StepReply,
    pub(super) changes: Vec<RecordChange>,
    /// A submit gets its reply when it is published, with the ranks around it.
    pub(super) submit: Option<(submit::SubmitDecision, Published)>,
}

impl PipelineStep {
    pub(super) fn row(&self) -> TargetRow<'_> {
        let (board, players, access) = match self {
            Self::Add { board, items, .. } => (board, Players::Scored(items), Access::Score(None)),
            Self::Remove { board, players } => (board, Players::Named(players), Access::Remove),
            Self::Take { board, .. } => (board, Players::NONE, Access::Take),
            Self::Submit(submit) => return submit.row(),
            Self::Read(_) => return TargetRow { board: None, players: Players::NONE, access: Access::Read },
        };
        TargetRow { board: Some(board), players, access }
    }

    pub(super) fn idempotency(&self) -> Option<&IdempotencyKey> {
        match self {
            Self::Submit(submit) => submit.idempotency(),
            _ => None,
        }
    }

    /// Rows that it may write, roughly.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Add { items, .. } => items.len(),
            Self::Remove { players, .. } => players.len(),
            Self::Take { board, which, .. } => {
                which.most().min(usize::try_from(board.ranking.total()).unwrap_or(usize::MAX))
            }
            Self::Submit(_) | Self::Read(_) => 1,
        }
    }

    pub(super) fn decide(
        &self,
        state: &mut ScoreBatchState,
        target: &RowTarget,
        targets: &Targets,
    ) -> Result<StepDone, Rejection> {
        match self {
            Self::Add { board, items, options } => state.add(board, items, options, target),
            Self::Remove { board, players } => {
                target.at.clone()?;
                let (mut removed, mut changes) = (0, Vec::with_capacity(players.len()));
                for player in players {
                    let is_first = state.remove(board.no, player, &target.windows, &mut changes);
                    removed += u64::from(is_first && target.is_first_shown);
                }
                Ok(StepDone::new(StepReply::Removed(removed), changes))
            }
            Self::Take { board, which, all } => {
                target.at.clone()?;
                state.take(board, (which, *all), &target.windows, targets)
            }
            Self::Submit(submit) => {
                let decided = submit.decide(state, std::slice::from_ref(target), targets)?;
                let moved = |(window, record): &(Window, Record)| {
                    (*window, submit.write.player.clone(), Some(*record))
                };
                let changes = decided.records.iter().map(moved).collect();
                let submit = Some((decided, Published::default()));
                Ok(StepDone { reply: StepReply::Pending, changes, submit })
            }
            Self::Read(_) => Ok(StepDone::of(StepReply::Read(Vec::new()))),
        }
    }

    /// What one shard of several has of it.
    pub(super) fn cut(&self, slicing: &Slicing<'_>, taken: &[(PlayerId, Record)]) -> Option<Self> {
        let is_here = |player: &&PlayerId| slicing.is_here(player);
        Some(match self {
            Self::Add { board, items, options } => {
                let items: Vec<_> = items.iter().filter(|(player, _)| is_here(&player)).cloned().collect();
                let (board, options) = (Arc::clone(board), *options);
                (!items.is_empty()).then_some(Self::Add { board, items, options })?
            }
            Self::Remove { board, players } => {
                let (board, players) =
                    (Arc::clone(board), players.iter().filter(is_here).cloned().collect::<Vec<_>>());
                (!players.is_empty()).then_some(Self::Remove { board, players })?
            }
            Self::Take { board, all, .. } => {
                let here = taken.iter().filter(|(player, _)| is_here(&player));
                let (board, all, here) = (Arc::clone(board), *all, here.cloned().collect::<Vec<_>>());
                (!here.is_empty()).then_some(Self::Take { board, which: RankSelection::These(here), all })?
            }
            Self::Submit(submit) => {
                slicing.is_here(&submit.write.player).then(|| Self::Submit(submit.clone()))?
            }
            Self::Read(_) => return None,
        })
    }

    /// Its result before any shard has done anything.
    pub(super) fn pending(&self) -> StepDone {
        StepDone::of(match self {
            Self::Take { .. } => StepReply::Took(Vec::new()),
            Self::Read(_) => StepReply::Read(Vec::new()),
            Self::Add { .. } | Self::Remove { .. } | Self::Submit(_) => StepReply::Pending,
        })
    }
}

impl StepDone {
    /// A step that changes nothing.
    pub(super) fn of(reply: StepReply) -> Self {
        Self::new(reply, Vec::new())
    }

    fn new(reply: StepReply, changes: Vec<RecordChange>) -> Self {
        Self { reply, changes, submit: None }
    }

    /// Adds what another shard has done of the same step.
    pub(super) fn join(&mut self, other: Self) {
        use StepReply::{Added, Failed, Pending, Rejected, Removed, Took};
        let is_begun = !self.changes.is_empty() || !other.changes.is_empty();
        let known = std::mem::replace(&mut self.reply, Pending);
        self.reply = match (known, other.reply) {
            (Pending, reply) => reply,
            (Failed(fault), _) | (_, Failed(fault)) if is_begun => Failed(after_a_window(fault)),
            (Failed(fault), _) | (_, Failed(fault)) => Failed(fault),
            (Rejected(rejection), _) | (_, Rejected(rejection)) if is_begun => {
                Failed(Fault::OutcomeUnknown(format!("a part of it is done; then: {}", rejection.detail())))
            }
            (Rejected(rejection), _) | (_, Rejected(rejection)) => Rejected(rejection),
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
        self.changes.extend(other.changes);
        self.submit = self.submit.take().or(other.submit);
    }
}

impl ScoreBatchState {
    fn add(
        &mut self,
        board: &Board,
        items: &[(PlayerId, i64)],
        options: &Add,
        target: &RowTarget,
    ) -> Result<StepDone, Rejection> {
        let at = target.at.clone()?;
        let Some((shown, others)) = target.windows.split_first() else {
            return Err(Rejection::PeriodClosed(Some(at)));
        };
        self.check_attempts(board, items.iter().map(|(player, _)| player))?;
        let mut changes = Vec::with_capacity(items.len() * target.windows.len());
        let (mut added, mut updated, mut last) = (0, 0, None);
        for (player, given) in items {
            let key = |window: &Window| score_key(board.no, *window, player);
            let present = self.scores.get(&key(shown)).copied();
            let done = options.apply(&board.definition, present, *given, at)?;
            last = done.map(|done| done.record.score);
            let Some(done) = done else { continue };
            self.count_attempt(board, player, at);
            let mut updates = vec![(*shown, done)];
            for window in others {
                let present = self.scores.get(&key(window)).copied();
                let given = options.elsewhere(&board.definition, *given, &done.record);
                updates.push((*window, record::apply(&board.definition, present, given)?));
            }
            added += u64::from(done.changed && present.is_none());
            updated += u64::from(done.changed && present.is_some());
            for (window, done) in updates.into_iter().filter(|(_, done)| done.changed) {
                self.scores.set(&key(&window), Some(done.record));
                changes.push((window, player.clone(), Some(done.record)));
            }
        }
        Ok(StepDone::new(StepReply::Added { added, updated, score: last }, changes))
    }

    fn take(
        &mut self,
        board: &Arc<Board>,
        (which, all): (&RankSelection, bool),
        windows: &[Window],
        targets: &Targets,
    ) -> Result<StepDone, Rejection> {
        let shown = windows.first().and_then(|window| Some((*window, targets.ranking_of(board, *window)?)));
        let Some((window, shown)) = shown else { return Ok(StepDone::of(StepReply::Took(Vec::new()))) };
        let changed = self.changed_in(board, window);
        let took = shown.ranking().read(|ranking| select(&board.definition, ranking, &changed, which));
        let took = took.unwrap_or_else(|error| {
            self.fault.get_or_insert(error);
            Vec::new()
        });
        if all && took.len() > TAKE_ALL_MAX {
            return Err(Rejection::TooManyAtOnce(TAKE_ALL_MAX));
        }
        let mut changes = Vec::with_capacity(took.len() * windows.len());
        for (player, record) in &took {
            self.know(board, player, windows, targets);
            self.agree(board.no, window, player, record);
            self.remove(board.no, player, windows, &mut changes);
        }
        let reply = took.into_iter().map(|(player, record)| (player, record.score)).collect();
        Ok(StepDone::new(StepReply::Took(reply), changes))
    }

    /// Notes a player that a ranking elsewhere has found and another server has changed meanwhile.
    fn agree(&mut self, board: BoardNo, window: Window, player: &PlayerId, found: &Record) {
        let key = score_key(board, window, player);
        let stored = self.scores.get(&key).map(|record| (record.score, record.subscore));
        if stored != Some((found.score, found.subscore)) {
            self.lagging.push(key);
        }
    }

    /// Loads the records of a player that was found in the rankings in memory. Records that other servers may write
    /// are read by this transaction, or by the next one.
    fn know(&mut self, board: &Arc<Board>, player: &PlayerId, windows: &[Window], targets: &Targets) {
        for window in windows {
            let key = score_key(board.no, *window, player);
            if board.is_shared() && !self.scores.is_loaded(&key) {
                self.missing.push(key.clone());
            }
            self.scores.load_known(key, || {
                let found = targets.ranking_of(board, *window)?;
                found.ranking().read(|ranking| ranking.record(player.as_bytes())).ok()?
            });
        }
    }

    /// The changes of a window by this batch so far, without banned players: they have no position.
    fn changed_in(&self, board: &Board, window: Window) -> Vec<(PlayerId, Option<Record>)> {
        let within = |key: &ScoreKey| key.board == board.no && key.window == window;
        let changed = self.scores.all_set().filter(|(key, _)| within(key));
        changed
            .filter(|(key, _)| !board.is_banned(&key.player))
            .map(|(key, record)| (key.player.clone(), record.copied()))
            .collect()
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
        done.changes.push((ALL_TIME, PlayerId::new("p").unwrap(), None));
        done
    }

    fn join(mut one: StepDone, other: StepDone) -> StepReply {
        one.join(other);
        one.reply
    }

    #[test]
    fn a_command_that_is_half_done_says_so() {
        let unavailable = || StepDone::of(StepReply::Failed(Fault::StoreUnavailable("x".into())));
        let rejected = || StepDone::of(StepReply::Rejected(Rejection::ScoreOverflow(None)));
        assert!(matches!(join(added(1), added(2)), StepReply::Added { added: 3, .. }));
        assert!(matches!(join(added(0), unavailable()), StepReply::Failed(Fault::StoreUnavailable(_))));
        for (one, other) in [
            (moved(added(1)), unavailable()),
            (unavailable(), moved(added(1))),
            (moved(added(1)), rejected()),
        ] {
            assert!(matches!(join(one, other), StepReply::Failed(Fault::OutcomeUnknown(_))));
        }
        assert!(matches!(join(rejected(), added(0)), StepReply::Rejected(Rejection::ScoreOverflow(_))));
        let pending = || StepDone::of(StepReply::Pending);
        assert!(matches!(join(pending(), unavailable()), StepReply::Failed(Fault::StoreUnavailable(_))));
    }
}
