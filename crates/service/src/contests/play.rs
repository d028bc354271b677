//! What a score asks of the contest that its board belongs to.
//!
//! Which contest that is follows from the board's reserved name; whether it is played is kept with the board and changed while
//! no score is decided (`finish`), so no score comes in after the end. Who takes part is read by key: a member is
//! never changed, so that needs no lock. Where several servers write, the end is a change of the board, and a batch that was
//! planned before it is planned again. Where an end may be stored and could not be read, the board is in doubt: the next batch
//! reads the contest, and is done only then.

use crate::boards::Board;
use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use tally_rules::contest::{ContestId, Record, State};
use tally_rules::ledger::Uuid;
use tally_rules::{Micros, PlayerId, Refusal};
use tally_store::{EntrantKey, Store, StoreError};

/// A contest as its board knows it.
#[derive(Debug)]
pub(crate) struct Play {
    no: Uuid,
    /// Whose board it is, where there are divisions.
    division: Option<u32>,
    state: AtomicU8,
    since: AtomicI64,
    ends_at: AtomicI64,
    /// What is stored of the contest may be another state.
    in_doubt: AtomicBool,
}

impl Play {
    fn of(record: &Record, division: Option<u32>) -> Self {
        let (state, since, ends_at) = (AtomicU8::new(0), AtomicI64::new(0), AtomicI64::new(0));
        let play = Self { no: record.no, division, state, since, ends_at, in_doubt: AtomicBool::new(false) };
        play.set(record);
        play
    }

    fn set(&self, record: &Record) {
        let at = State::ALL.iter().position(|state| *state == record.state).unwrap_or(0);
        self.ends_at.store(record.contest.ends_at.map_or(i64::MAX, |at| at.0), Ordering::SeqCst);
        self.since.store(record.since.0, Ordering::SeqCst);
        self.state.store(u8::try_from(at).unwrap_or(0), Ordering::SeqCst);
        self.in_doubt.store(false, Ordering::SeqCst);
    }

    fn state(&self) -> State {
        State::ALL[usize::from(self.state.load(Ordering::SeqCst))]
    }

    /// Refuses scores when it is not played.
    fn judge(&self, now: Micros) -> Result<(), Refusal> {
        match self.state() {
            // It has ended; whoever writes that down is on the way.
            State::Running if now.0 >= self.ends_at.load(Ordering::SeqCst) => {
                Err(Refusal::ContestState(State::Finished))
            }
            State::Running => Ok(()),
            state => Err(Refusal::ContestState(state)),
        }
    }
}

/// Notes what its board has to know of a contest.
pub(crate) fn tell(board: &Board, record: &Record) {
    let division = || ContestId::of_board(&board.id).and_then(|(_, division)| division);
    board.play.get_or_init(|| Play::of(record, division())).set(record);
}

/// The same for a board that is read from the store.
pub(crate) fn learn(store: &dyn Store, board: &Board) -> Result<(), Failure> {
    if let Some((id, _)) = ContestId::of_board(&board.id)
        && let Some(record) = store.ledger().contest(&id)?
    {
        tell(board, &record);
    }
    Ok(())
}

/// Something became of the contest of a board, and could not be read.
pub(crate) fn doubt(board: &Board) {
    if let Some(play) = board.play.get() {
        play.in_doubt.store(true, Ordering::SeqCst);
    }
}

/// Reads the contest of a board that is in doubt.
fn end_doubt(store: &dyn Store, board: &Board) -> Result<(), StoreError> {
    let in_doubt = board.play.get().filter(|play| play.in_doubt.load(Ordering::SeqCst));
    if let Some((id, _)) = in_doubt.and_then(|_| ContestId::of_board(&board.id))
        && let Some(record) = store.ledger().contest(&id)?
    {
        tell(board, &record);
    }
    Ok(())
}

/// The contest of a board that takes no more scores, in which state it was when it was last looked at, and since when.
pub(crate) fn over(board: &Board) -> Option<(ContestId, State, Micros)> {
    let play = board.play.get().filter(|play| play.state() > State::Running)?;
    let (id, _) = ContestId::of_board(&board.id)?;
    Some((id, play.state(), Micros(play.since.load(Ordering::SeqCst))))
}

/// Whether a board is a contest's.
pub(crate) fn of(board: &Board) -> bool {
    board.play.get().is_some()
}

/// Refuses to change the ranks of a contest that is not played: they are final. Blocks on the store.
pub(crate) fn judge_ranks(
    store: &dyn Store,
    board: &Board,
    now: Micros,
) -> Result<Result<(), Refusal>, StoreError> {
    end_doubt(store, board)?;
    Ok(board.play.get().map_or(Ok(()), |play| play.judge(now)))
}

/// What is wrong with each of these scores, where something is: none of ordinary boards. Blocks on the store.
pub(crate) fn judge(
    store: &dyn Store,
    scores: &[(&Arc<Board>, &PlayerId)],
    now: Micros,
) -> Result<Vec<Result<(), Refusal>>, StoreError> {
    scores.iter().try_for_each(|(board, _)| end_doubt(store, board))?;
    let key = |(board, player): &(&Arc<Board>, &PlayerId)| {
        let contest = board.play.get()?.no;
        Some(EntrantKey { contest, player: PlayerId::clone(player) })
    };
    let keys = tally_lanes::keys_to_load(scores.iter().filter_map(key));
    let found = if keys.is_empty() { Vec::new() } else { store.ledger().enrolled(&keys)? };
    let verdict = |score: &(&Arc<Board>, &PlayerId)| {
        let (Some(play), Some(key)) = (score.0.play.get(), key(score)) else { return Ok(()) };
        play.judge(now)?;
        let enrolled = keys.binary_search(&key).ok().and_then(|at| found[at]);
        // A member of one division is nobody in the others.
        let mine = enrolled.filter(|enrolled| enrolled.division == play.division);
        mine.map(drop).ok_or(Refusal::NotAMember)
    };
    Ok(scores.iter().map(verdict).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_ranking::Ranking;
    use tally_rules::Definition;
    use tally_rules::contest::Contest;
    use tally_store::sqlite::{Options, SqliteStore};
    use tally_store::{BoardNo, BoardRow, Changes, ContestChanges, LedgerChanges, Plan};

    /// The end of a contest is stored, and its board could not read it.
    #[test]
    fn a_board_in_doubt_reads_its_contest_before_it_takes_a_score() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
        let (id, now) = (ContestId::new("cup").unwrap(), Micros(9));
        let mut record = Record::new(Uuid([1; 16]), Contest::default(), None, Micros(1));
        record.enter(State::Running, Micros(2), Micros(2));
        let (no, definition) = (BoardNo(1), Definition::default());
        let row = BoardRow { no, id: id.board(None), definition, created_at: Micros(2) };
        let board = Board::new(row, Vec::new(), &Ranking::Memory).unwrap();
        tell(&board, &record);
        record.enter(State::Finished, Micros(3), Micros(3));
        let contests = ContestChanges { contests: vec![(id.clone(), record)], ..ContestChanges::default() };
        let ledger = LedgerChanges { contests, ..LedgerChanges::default() };
        let changes = Changes { ledger, ..Changes::default() };
        store.run(&Plan::default(), &mut |_| changes.clone()).unwrap();
        assert_eq!(judge_ranks(&store, &board, now).unwrap(), Ok(()));
        doubt(&board);
        let (board, player) = (Arc::new(board), PlayerId::new("ann").unwrap());
        let ended = [Err(Refusal::ContestState(State::Finished))];
        assert_eq!(judge(&store, &[(&board, &player)], now).unwrap(), ended);
        assert_eq!([judge_ranks(&store, &board, now).unwrap()], ended);
        assert_eq!(over(&board), Some((id, State::Finished, Micros(3))));
    }
}
