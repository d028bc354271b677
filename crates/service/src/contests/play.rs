//! The check of a score or a ban against the contest of its leaderboard.
//!
//! The reserved name of a leaderboard contains its contest. The contest's state is kept with the leaderboard and changes
//! while no score is decided (`ledger/batch.rs`), so no score counts after the end. Members are read by key: a member never
//! changes, so that needs no lock. With several servers the end is a change of the leaderboard, and a batch that was planned
//! before it is planned again.

use crate::boards::Board;
use crate::failure::Failure;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, Ordering};
use tally_rules::contest::{ContestId, ContestRecord, ContestState};
use tally_rules::ledger::Uuid;
use tally_rules::{BoardId, Micros, PlayerId, Rejection};
use tally_store::{EntrantKey, Store, StoreError};

/// A contest as its leaderboard has it.
#[derive(Debug)]
pub(crate) struct Play {
    no: Uuid,
    /// The division of the leaderboard, if the contest has divisions.
    division: Option<u32>,
    state: AtomicU8,
    since: AtomicI64,
    ends_at: AtomicI64,
    is_in_review: AtomicBool,
    /// 0 for any number.
    attempts_max: AtomicU32,
}

impl Play {
    fn of(record: &ContestRecord, division: Option<u32>) -> Self {
        let (state, since, ends_at) = (AtomicU8::new(0), AtomicI64::new(0), AtomicI64::new(0));
        let (is_in_review, attempts_max) = (AtomicBool::new(false), AtomicU32::new(0));
        let play = Self { no: record.no, division, state, since, ends_at, is_in_review, attempts_max };
        play.set(record);
        play
    }

    fn set(&self, record: &ContestRecord) {
        let at = ContestState::ALL.iter().position(|state| *state == record.state).unwrap_or(0);
        self.ends_at.store(record.contest.ends_at.map_or(i64::MAX, |at| at.0), Ordering::SeqCst);
        self.since.store(record.since.0, Ordering::SeqCst);
        self.is_in_review.store(record.is_in_review(), Ordering::SeqCst);
        let attempts_max = record.contest.attempts_max.map_or(0, NonZeroU32::get);
        self.attempts_max.store(attempts_max, Ordering::SeqCst);
        self.state.store(u8::try_from(at).unwrap_or(0), Ordering::SeqCst);
    }

    fn state(&self) -> ContestState {
        ContestState::ALL[usize::from(self.state.load(Ordering::SeqCst))]
    }

    /// Rejects scores when it is not played.
    fn check(&self, now: Micros) -> Result<(), Rejection> {
        match self.state() {
            // It has ended, and that is not stored yet.
            ContestState::Running if now.0 >= self.ends_at.load(Ordering::SeqCst) => {
                Err(Rejection::ContestState(ContestState::Finished))
            }
            ContestState::Running => Ok(()),
            state => Err(Rejection::ContestState(state)),
        }
    }
}

/// Brings a leaderboard to the state of its contest.
pub(crate) fn update(board: &Board, record: &ContestRecord) {
    let division = || ContestId::of_board(&board.id).and_then(|(_, division)| division);
    board.play.get_or_init(|| Play::of(record, division())).set(record);
}

/// The same for a board that is read from the store.
pub(crate) fn load(store: &dyn Store, board: &Board) -> Result<(), Failure> {
    if let Some((id, _)) = ContestId::of_board(&board.id)
        && let Some(record) = store.ledger().contest(&id)?
    {
        update(board, &record);
    }
    Ok(())
}

/// The contest of a leaderboard that takes no more scores, its last observed state, and since when.
pub(crate) fn over(board: &Board) -> Option<(ContestId, ContestState, Micros)> {
    let play = board.play.get().filter(|play| play.state() > ContestState::Running)?;
    let (id, _) = ContestId::of_board(&board.id)?;
    Some((id, play.state(), Micros(play.since.load(Ordering::SeqCst))))
}

/// Whether a leaderboard belongs to a contest.
pub(crate) fn of(board: &Board) -> bool {
    board.play.get().is_some()
}

/// The id of the contest that has this leaderboard.
fn contest_of(board: &BoardId) -> Box<str> {
    ContestId::of_board(board).map_or_else(Box::default, |(contest, _)| contest.as_str().into())
}

/// The rejection of what only a contest may do to its leaderboard.
pub(crate) fn in_use(board: &BoardId) -> Rejection {
    Rejection::BoardInUse(contest_of(board))
}

/// How many scores a member may submit, if its contest limits them.
pub(crate) fn attempts_max(board: &Board) -> Option<u32> {
    board.play.get().map(|play| play.attempts_max.load(Ordering::SeqCst)).filter(|most| *most > 0)
}

/// Rejects a ban in a contest that is neither played nor reviewed: its ranks are final.
pub(crate) fn check_ranks(board: &Board) -> Result<(), Rejection> {
    match board.play.get().map(Play::state) {
        None | Some(ContestState::Running) => Ok(()),
        Some(_) => check_review(board),
    }
}

/// Rejects a correction in a contest that is not reviewed.
pub(crate) fn check_review(board: &Board) -> Result<(), Rejection> {
    let play = board.play.get().ok_or(Rejection::ContestNotFound)?;
    match play.state() {
        ContestState::Finished if play.is_in_review.load(Ordering::SeqCst) => Ok(()),
        // Its prizes are being determined or paid.
        ContestState::Finished => Err(Rejection::ContestState(ContestState::Settled)),
        state => Err(Rejection::ContestState(state)),
    }
}

/// The rejection of each of these scores, if it has one; ordinary leaderboards have none. Blocks on the store.
pub(crate) fn check_scores(
    store: &dyn Store,
    scores: &[(&Arc<Board>, &PlayerId)],
    now: Micros,
) -> Result<Vec<Result<(), Rejection>>, StoreError> {
    let key = |(board, player): &(&Arc<Board>, &PlayerId)| {
        let contest = board.play.get()?.no;
        Some(EntrantKey { contest, player: PlayerId::clone(player) })
    };
    let keys = tally_lanes::keys_to_load(scores.iter().filter_map(key));
    let found = if keys.is_empty() { Vec::new() } else { store.ledger().enrolled(&keys)? };
    let verdict = |score: &(&Arc<Board>, &PlayerId)| {
        let (Some(play), Some(key)) = (score.0.play.get(), key(score)) else { return Ok(()) };
        play.check(now)?;
        let enrolled = keys.binary_search(&key).ok().and_then(|at| found[at]);
        // A member of one division has no rank in the others.
        let mine = enrolled.filter(|enrolled| enrolled.division == play.division);
        mine.map(drop).ok_or_else(|| Rejection::NotAMember {
            player: score.1.clone(),
            contest: contest_of(&score.0.id),
        })
    };
    Ok(scores.iter().map(verdict).collect())
}
