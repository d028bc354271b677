//! Which revision of its boards a batch stands on, where other servers change them too.
//!
//! A batch is aimed and planned with what is known here of schedules, periods and hidden players. Its transaction locks its
//! boards and reads their revisions: where one is another by now, nothing is written, the board is read again and the batch
//! planned anew. So no score lands by an old schedule or in a closed period, and nobody is published who is hidden. While a
//! batch that changes a board is between its plan and its publication, nobody renews that board here: what it was decided
//! on is what it is published on.

use super::aim::Aims;
use super::command::Request;
use super::unpublished;
use crate::boards::{Board, Changing};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;
use tally_ranking::{PUBLISHED_WITHIN, RankingError, RemoteRanking};
use tally_store::{BoardChange, BoardNo, Changes, Committed, Loaded, Plan, Revisions, ScoreKey};

/// Why a batch has to be planned again, or cannot be decided now.
#[derive(Debug)]
pub(super) enum Unready {
    /// These boards have changed since it was planned.
    Moved(Vec<Arc<Board>>),
    /// It turns out to depend on records that were not read.
    Missing(Vec<ScoreKey>),
    /// The order elsewhere says something else of these than the store: a change is on its way there.
    Behind(Vec<ScoreKey>),
    /// An order cannot be asked.
    Ranking(RankingError),
}

impl From<RankingError> for Unready {
    fn from(error: RankingError) -> Self {
        Self::Ranking(error)
    }
}

/// The boards of a batch that others may change, each with the revisions that were known before anything else was asked.
pub(super) struct Standing {
    boards: BTreeMap<BoardNo, (Arc<Board>, Revisions)>,
}

/// What a batch has done on one database.
#[derive(Debug)]
pub(super) struct OnDatabase {
    pub(super) shard: usize,
    pub(super) committed: Committed,
    /// Boards that it changed.
    pub(super) changed: Vec<Arc<Board>>,
}

/// What a batch stands on until it is published.
#[derive(Debug)]
pub(super) struct Stood {
    /// Whether what it writes is published outside.
    pub(super) marks: bool,
    /// Whether it may change what its boards are.
    pub(super) alone: bool,
    /// When it was planned.
    began: Instant,
    changing: Vec<Changing>,
}

impl Standing {
    pub(super) fn of(batch: &[Request]) -> Self {
        let mut boards = BTreeMap::new();
        let mut add = |board: &Arc<Board>| {
            if board.is_shared() {
                boards.entry(board.no).or_insert_with(|| (Arc::clone(board), board.revisions()));
            }
        };
        batch.iter().for_each(|request| request.each_board(&mut add));
        Self { boards }
    }

    /// What it takes to share boards, which stay as they are where the batch may change them. Nothing where one is not as it
    /// was any more.
    pub(super) fn plan(&self, batch: &[Request], aims: &Aims) -> Option<Stood> {
        let marks = !self.boards.is_empty();
        let changes = |request: &Request| {
            matches!(request, Request::Ban(_) | Request::Erase(_) | Request::Redefine(_) | Request::Vanish(_))
        };
        let alone = !aims.opened.is_empty() || !aims.stale.is_empty() || batch.iter().any(changes);
        let mut stood = Stood { marks, alone, began: Instant::now(), changing: Vec::new() };
        if alone {
            for (board, revisions) in self.boards.values() {
                stood.changing.push(board.change(revisions)?);
            }
        }
        Some(stood)
    }

    /// Boards that are not what the batch was planned on, for its transaction on one database.
    pub(super) fn moved(&self, plan: &Plan, loaded: &Loaded, shard: usize) -> Result<(), Unready> {
        let moved_on = |shard: usize, boards: &[Option<u64>]| {
            let moved = |(no, now): (&BoardNo, &Option<u64>)| {
                let (board, stood) = self.boards.get(no)?;
                now.is_some_and(|now| !stood.stands(shard, now)).then(|| Arc::clone(board))
            };
            plan.boards.iter().zip(boards).filter_map(moved).collect::<Vec<_>>()
        };
        let mut moved = moved_on(shard, &loaded.boards);
        moved.extend(loaded.boards_elsewhere.iter().flat_map(|(shard, boards)| moved_on(*shard, boards)));
        if moved.is_empty() { Ok(()) } else { Err(Unready::Moved(moved)) }
    }

    /// The boards that changes change, as a transaction gives them a revision.
    pub(super) fn changed(&self, changes: &Changes) -> Vec<Arc<Board>> {
        let mut touched: BTreeSet<BoardNo> = changes.bans.iter().map(|(key, _)| key.board).collect();
        touched.extend(changes.parts.iter().map(|(key, _)| key.board));
        touched.extend(changes.boards.iter().map(BoardChange::no));
        touched.iter().filter_map(|no| self.boards.get(no)).map(|(board, _)| Arc::clone(board)).collect()
    }

    /// The board of that number.
    pub(super) fn board(&self, no: BoardNo) -> Option<&Arc<Board>> {
        self.boards.get(&no).map(|(board, _)| board)
    }

    /// Whether all that the batch has committed is published: no order of its boards waits for anything.
    pub(super) fn is_published(batch: &[Request]) -> bool {
        !Self::of(batch).boards.values().any(|(board, _)| unpublished::has_some(board))
    }
}

impl Stood {
    /// Nobody knows for now whether this database has committed it.
    pub(super) fn doubt(&mut self, shard: usize) {
        self.changing.iter_mut().for_each(|changing| changing.doubt(shard));
    }

    /// Where this process was stopped for very long since it was planned, what it committed is not published any more.
    pub(super) fn check_age(&self, batch: &[Request]) {
        if self.began.elapsed() > PUBLISHED_WITHIN {
            for (board, _) in Standing::of(batch).boards.values() {
                board.each_order(|_, order| order.remote().map_or((), RemoteRanking::miss));
            }
        }
    }

    /// It is published: boards may be renewed again. What it changed is known here as of its revision; where that was lost
    /// with the answer, they are read again.
    pub(super) fn end(self, done: &[OnDatabase]) {
        for OnDatabase { shard, committed, changed } in done {
            changed.iter().for_each(|board| board.advance(*shard, committed.revision));
        }
        drop(self.changing);
    }
}
