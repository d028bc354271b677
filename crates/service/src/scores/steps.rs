//! Commands of one connection as one request: writes of several boards, taken in order, with reads in between.
//!
//! A door that gets many commands at once hands them in together, so they cost one place in the queue and one wake-up.
//! Steps are decided like any other request. A read among them is run while the batch is published, at its place: it
//! sees what the steps before it did and nothing of those after it. An atomic request keeps readers out of the orders it
//! changes until its last step is done.

use super::aim::{Aims, RowAim};
use super::command::{Previous, Submit, Submitted};
use super::decide::{Decision, State};
use super::orders::Orders;
use super::select::{Taken, select};
use crate::boards::Board;
use crate::failure::Fault;
use std::sync::Arc;
use tally_rules::sorted_set::Add;
use tally_rules::{Micros, PlayerId, Record, Rejection, record};
use tally_store::{BoardNo, Part, ScoreKey};

/// Players that one step takes out at most where there may be several: a bound of the transaction.
pub const TAKE_MAX: usize = 10_000;

/// The same where it must be one: past it the step is refused.
pub const TAKE_ALL_MAX: usize = 1_000_000;

/// Commands, in order.
#[derive(Debug)]
pub struct Commands {
    /// What to do.
    pub steps: Vec<Step>,
    /// Whether other clients see all of it or nothing.
    pub atomic: bool,
    /// Whether the answer may come before the changes are durable.
    pub relaxed: bool,
    /// Whether they share a batch with nothing else.
    pub alone: bool,
}

/// One command.
#[derive(Debug)]
pub enum Step {
    /// Scores of several players on one board.
    Add {
        /// Where.
        board: Arc<Board>,
        /// Who, and how much.
        items: Vec<(PlayerId, i64)>,
        /// Conditions.
        options: Add,
    },
    /// These players go from the open parts.
    Remove {
        /// Where.
        board: Arc<Board>,
        /// Who.
        players: Vec<PlayerId>,
    },
    /// Players at certain places go from the open parts.
    Take {
        /// Where.
        board: Arc<Board>,
        /// Which, in the part that is shown.
        which: Taken,
        /// Whether it is refused where more than one step may take are meant.
        all: bool,
    },
    /// A submit as over HTTP.
    Submit(Submit),
    /// A question.
    Read(ReadStep),
}

/// What is asked at the place of a [`Step::Read`].
type Question = Box<dyn FnOnce(&Orders<'_>) -> Vec<u8> + Send>;

/// A question that is asked once.
pub struct ReadStep(Option<Question>);

impl ReadStep {
    /// A question; its answer goes back as bytes.
    pub fn new(question: impl FnOnce(&Orders<'_>) -> Vec<u8> + Send + 'static) -> Self {
        Self(Some(Box::new(question)))
    }

    /// Asks it.
    pub fn ask(&mut self, orders: &Orders<'_>) -> Vec<u8> {
        self.0.take().map_or_else(Vec::new, |question| question(orders))
    }
}

impl std::fmt::Debug for ReadStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadStep")
    }
}

/// What came of one command.
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
    /// How many players are gone.
    Removed(u64),
    /// Who is gone, in the order asked for.
    Took(Vec<(PlayerId, i64)>),
    /// A submit.
    Submitted(Submitted),
    /// The answer to a question.
    Read(Vec<u8>),
    /// A rule's answer; nothing changed.
    Refused(Rejection),
    /// The database that it concerns cannot be used now; nothing changed, unless the fault says otherwise.
    Failed(Fault),
    /// No database has done its part yet.
    Pending,
}

/// What a player's record in one part is now.
pub(super) type Move = (Part, PlayerId, Option<Record>);

/// A step that was decided: its answer, and the records it leaves.
#[derive(Debug)]
pub(super) struct StepDone {
    pub(super) reply: StepReply,
    pub(super) moves: Vec<Move>,
    /// When it was decided, if that was in an earlier batch.
    pub(super) replayed: Option<Micros>,
}

impl StepDone {
    /// One that moves nothing.
    pub(super) fn of(reply: StepReply) -> Self {
        Self::new(reply, Vec::new())
    }

    fn new(reply: StepReply, moves: Vec<Move>) -> Self {
        Self { reply, moves, replayed: None }
    }

    fn of_submit(submit: &Submit, decision: Decision, aim: &RowAim, aims: &Aims) -> Self {
        let Decision::Submit { record, previous, changed, replayed, parts } = decision else {
            unreachable!("a submit is decided as one")
        };
        let period = parts.first().map_or_else(String::new, |(part, _)| aims.name(&submit.board, *part));
        let previous = previous.map(|record| Previous { record, rank: None });
        let closed_periods = aim.closed.clone();
        let repeats = replayed.is_some();
        let reply =
            Submitted { period, closed_periods, record, rank: None, changed, previous, replayed: repeats };
        let player = &submit.write.player;
        let moves = parts.into_iter().map(|(part, record)| (part, player.clone(), Some(record))).collect();
        Self { reply: StepReply::Submitted(reply), moves, replayed }
    }
}

impl Step {
    /// The board it changes.
    pub(super) fn board(&self) -> Option<&Arc<Board>> {
        match self {
            Self::Add { board, .. } | Self::Remove { board, .. } | Self::Take { board, .. } => Some(board),
            Self::Submit(submit) => Some(&submit.board),
            Self::Read(_) => None,
        }
    }

    /// Rows it may write, roughly.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Add { items, .. } => items.len(),
            Self::Remove { players, .. } => players.len(),
            Self::Take { board, which, .. } => {
                which.most().min(usize::try_from(board.order.total()).unwrap_or(usize::MAX))
            }
            Self::Submit(_) | Self::Read(_) => 1,
        }
    }
}

impl Commands {
    /// The only player they concern, where there is just one and nobody else is held up by them.
    pub(super) fn player(&self) -> Option<&PlayerId> {
        if self.atomic {
            return None;
        }
        let mut player = None;
        for step in &self.steps {
            let one = match step {
                Step::Add { items, .. } => match items.as_slice() {
                    [(one, _)] => one,
                    _ => return None,
                },
                Step::Remove { players, .. } => match players.as_slice() {
                    [one] => one,
                    _ => return None,
                },
                Step::Submit(submit) => &submit.write.player,
                Step::Take { .. } | Step::Read(_) => return None,
            };
            if *player.get_or_insert(one) != one {
                return None;
            }
        }
        player
    }

    /// Whether its steps must be published one by one: some answer depends on the order just then.
    pub(super) fn in_turn(&self) -> bool {
        self.atomic || self.steps.iter().any(|step| matches!(step, Step::Submit(_) | Step::Read(_)))
    }
}

impl State {
    /// Takes the steps in order. A board that is gone refuses all of them, before anything was done.
    pub(super) fn commands(
        &mut self,
        commands: &Commands,
        rows: &[RowAim],
        aims: &Aims,
    ) -> Result<Vec<StepDone>, Rejection> {
        for board in commands.steps.iter().filter_map(Step::board) {
            self.check_live(board.no)?;
        }
        let refused = |rejection| StepDone::of(StepReply::Refused(rejection));
        let step = |(step, aim)| self.step(step, aim, aims).unwrap_or_else(refused);
        Ok(commands.steps.iter().zip(rows).map(step).collect())
    }

    fn step(&mut self, step: &Step, aim: &RowAim, aims: &Aims) -> Result<StepDone, Rejection> {
        match step {
            Step::Add { board, items, options } => self.add(board, items, options, aim),
            Step::Remove { .. } | Step::Take { .. } if aim.at.is_err() => Err(Rejection::BoardInUse),
            Step::Remove { board, players } => {
                let mut moves = Vec::with_capacity(players.len() * aim.parts.len());
                let mut removed = 0;
                for player in players {
                    removed += u64::from(self.drop_player(board.no, player, aim, &mut moves));
                }
                Ok(StepDone::new(StepReply::Removed(removed), moves))
            }
            Step::Take { board, which, all } => {
                let Some(shown) = aim.parts.first().and_then(|part| aims.order_of(board, *part)) else {
                    return Ok(StepDone::new(StepReply::Took(Vec::new()), Vec::new()));
                };
                let changed = self.changed_in(board, aim.parts[0]);
                let took = shown.order().read(|order| select(&board.definition, order, &changed, which));
                let took = match took {
                    Ok(took) => took,
                    Err(error) => {
                        self.fault.get_or_insert(error);
                        Vec::new()
                    }
                };
                if *all && took.len() > TAKE_ALL_MAX {
                    return Err(Rejection::TooManyAtOnce);
                }
                let mut moves = Vec::with_capacity(took.len() * aim.parts.len());
                for (player, record) in &took {
                    self.know(board, player, &aim.parts, aims);
                    self.agree(board.no, aim.parts[0], player, record);
                    self.drop_player(board.no, player, aim, &mut moves);
                }
                let reply = took.into_iter().map(|(player, record)| (player, record.score)).collect();
                Ok(StepDone::new(StepReply::Took(reply), moves))
            }
            Step::Submit(submit) => {
                let decision = self.submit(submit, aim)?;
                Ok(StepDone::of_submit(submit, decision, aim, aims))
            }
            Step::Read(_) => Ok(StepDone::new(StepReply::Read(Vec::new()), Vec::new())),
        }
    }

    fn add(
        &mut self,
        board: &Board,
        items: &[(PlayerId, i64)],
        options: &Add,
        aim: &RowAim,
    ) -> Result<StepDone, Rejection> {
        let at = aim.at.clone()?;
        let Some((shown, others)) = aim.parts.split_first() else { return Err(Rejection::PeriodClosed) };
        let mut moves = Vec::with_capacity(items.len() * aim.parts.len());
        let (mut added, mut updated, mut last) = (0, 0, None);
        for (player, given) in items {
            let key = |part: &Part| ScoreKey { board: board.no, part: *part, player: player.clone() };
            let present = self.scores.get(&key(shown)).copied();
            let done = options.apply(&board.definition, present, *given, at)?;
            last = done.map(|done| done.record.score);
            let Some(done) = done else { continue };
            let mut changes = vec![(*shown, done)];
            for part in others {
                let present = self.scores.get(&key(part)).copied();
                let given = options.elsewhere(&board.definition, *given, &done.record);
                changes.push((*part, record::apply(&board.definition, present, given)?));
            }
            added += u64::from(done.changed && present.is_none());
            updated += u64::from(done.changed && present.is_some());
            for (part, done) in changes.into_iter().filter(|(_, done)| done.changed) {
                self.scores.set(&key(&part), Some(done.record));
                moves.push((part, player.clone(), Some(done.record)));
            }
        }
        Ok(StepDone::new(StepReply::Added { added, updated, score: last }, moves))
    }

    /// Takes a player out of the open parts; whether the part that is shown had it.
    fn drop_player(
        &mut self,
        board: BoardNo,
        player: &PlayerId,
        aim: &RowAim,
        moves: &mut Vec<Move>,
    ) -> bool {
        let mut shown = false;
        for (nth, part) in aim.parts.iter().enumerate() {
            let key = ScoreKey { board, part: *part, player: player.clone() };
            if self.scores.get(&key).is_some() {
                shown |= nth == 0;
                self.scores.set(&key, None);
                moves.push((*part, player.clone(), None));
            }
        }
        shown
    }

    /// Notes where an order elsewhere has found a player whom another server has changed meanwhile.
    fn agree(&mut self, board: BoardNo, part: Part, player: &PlayerId, found: &Record) {
        let key = ScoreKey { board, part, player: player.clone() };
        let stored = self.scores.get(&key).map(|record| (record.score, record.subscore));
        if stored != Some((found.score, found.subscore)) {
            self.behind.push(key);
        }
    }

    /// Notes what the orders in memory hold of a player that was found there. What others may write is read by the
    /// transaction instead, or by the next one.
    fn know(&mut self, board: &Arc<Board>, player: &PlayerId, parts: &[Part], aims: &Aims) {
        for part in parts {
            let key = ScoreKey { board: board.no, part: *part, player: player.clone() };
            if board.is_shared() && !self.scores.is_loaded(&key) {
                self.missing.push(key.clone());
            }
            self.scores.load_known(key, || {
                let found = aims.order_of(board, *part)?;
                found.order().read(|order| order.record(player.as_bytes())).ok()?
            });
        }
    }

    /// What this batch has changed of a part so far, but for hidden players: they have no place.
    fn changed_in(&self, board: &Board, part: Part) -> Vec<(PlayerId, Option<Record>)> {
        let within = |key: &ScoreKey| key.board == board.no && key.part == part;
        let changed = self.scores.all_set().filter(|(key, _)| within(key));
        changed
            .filter(|(key, _)| !board.hides(&key.player))
            .map(|(key, record)| (key.player.clone(), record.copied()))
            .collect()
    }
}
