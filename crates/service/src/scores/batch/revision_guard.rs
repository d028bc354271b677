//! The revision guard: a batch is written only if its leaderboards still have the revisions of its plan.
//!
//! A plan depends on schedules, periods and bans as cached by this server, and other servers change them. The transaction locks
//! its leaderboards and reads their revisions. If one differs, nothing is written: the leaderboard is read again and the batch is
//! planned again. So no score counts by an old schedule or in a closed period, and no banned player is published. Between the
//! plan and the publication of a batch that changes a leaderboard, this server does not renew it.

use super::kind::{ScoreRequest, on_kind};
use super::targets::Targets;
use crate::boards::{Board, Changing};
use crate::scores::unpublished;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;
use tally_ranking::{PUBLISHED_WITHIN, RankingError, RemoteRanking};
use tally_store::{BoardChange, BoardNo, Committed, Loaded, ReadSet, Revisions, ScoreKey, WriteSet};

/// Why a batch must be planned again, or cannot be decided now.
#[derive(Debug)]
pub(super) enum Replan {
    /// These leaderboards have changed since.
    BoardsChanged(Vec<Arc<Board>>),
    /// It depends on records that were not read.
    Missing(Vec<ScoreKey>),
    /// A ranking elsewhere differs from the store: a change is on its way there.
    Lagging(Vec<ScoreKey>),
    /// A ranking is unavailable.
    Ranking(RankingError),
}

impl From<RankingError> for Replan {
    fn from(error: RankingError) -> Self {
        Self::Ranking(error)
    }
}

/// The leaderboards of a batch that other servers may change, with their revisions from before all other reads.
pub(super) struct RevisionGuard {
    boards: BTreeMap<BoardNo, (Arc<Board>, Revisions)>,
}

/// What a batch has committed on one shard.
#[derive(Debug)]
pub(crate) struct OnShard {
    pub(super) shard: usize,
    pub(super) committed: Committed,
    /// Leaderboards that it changed.
    pub(super) changed: Vec<Arc<Board>>,
}

/// What a planned batch keeps until it is published.
#[derive(Debug)]
pub(super) struct Planned {
    /// Whether its changes are published to Redis.
    pub(super) outbox: bool,
    /// Whether it may change what its leaderboards are.
    pub(super) is_exclusive: bool,
    began: Instant,
    changing: Vec<Changing>,
}

impl RevisionGuard {
    pub(super) fn of(batch: &[ScoreRequest]) -> Self {
        let mut boards = BTreeMap::new();
        let mut add = |board: &Arc<Board>| {
            if board.is_shared() {
                boards.entry(board.no).or_insert_with(|| (Arc::clone(board), board.revisions()));
            }
        };
        batch.iter().for_each(|request| on_kind!(request, one => one.each_board(&mut add)));
        Self { boards }
    }

    /// Protects leaderboards that the batch may change. `None` if one has changed already.
    pub(super) fn plan(&self, batch: &[ScoreRequest], targets: &Targets) -> Option<Planned> {
        let is_exclusive = targets.stores_windows() || changes_boards(batch);
        let (outbox, began) = (!self.boards.is_empty(), Instant::now());
        let mut planned = Planned { outbox, is_exclusive, began, changing: Vec::new() };
        if is_exclusive {
            for (board, revisions) in self.boards.values() {
                planned.changing.push(board.change(revisions)?);
            }
        }
        Some(planned)
    }

    /// Compares the revisions that the transaction on one shard has read.
    pub(super) fn check(&self, plan: &ReadSet, loaded: &Loaded, shard: usize) -> Result<(), Replan> {
        let changed_on = |shard: usize, boards: &[Option<u64>]| {
            let changed = |(no, now): (&BoardNo, &Option<u64>)| {
                let (board, planned) = self.boards.get(no)?;
                now.is_some_and(|now| !planned.holds(shard, now)).then(|| Arc::clone(board))
            };
            plan.boards.iter().zip(boards).filter_map(changed).collect::<Vec<_>>()
        };
        let mut changed = changed_on(shard, &loaded.boards);
        changed.extend(loaded.boards_elsewhere.iter().flat_map(|(shard, boards)| changed_on(*shard, boards)));
        if changed.is_empty() { Ok(()) } else { Err(Replan::BoardsChanged(changed)) }
    }

    /// The leaderboards that get a new revision by these changes.
    pub(super) fn changed(&self, changes: &WriteSet) -> Vec<Arc<Board>> {
        let mut touched: BTreeSet<BoardNo> = changes.bans.iter().map(|(key, _)| key.board).collect();
        touched.extend(changes.windows.iter().map(|(key, _)| key.board));
        touched.extend(changes.boards.iter().map(BoardChange::no));
        touched.iter().filter_map(|no| self.boards.get(no)).map(|(board, _)| Arc::clone(board)).collect()
    }

    pub(super) fn board(&self, no: BoardNo) -> Option<&Arc<Board>> {
        self.boards.get(&no).map(|(board, _)| board)
    }

    /// Whether all that the batch has committed is published.
    pub(super) fn is_published(batch: &[ScoreRequest]) -> bool {
        !Self::of(batch).boards.values().any(|(board, _)| unpublished::has_some(board))
    }
}

impl Planned {
    /// The commit on this shard is in doubt.
    pub(super) fn doubt(&mut self, shard: usize) {
        self.changing.iter_mut().for_each(|changing| changing.doubt(shard));
    }

    /// Marks the rankings in Redis as lagging if this process was stopped for long since the plan.
    pub(super) fn check_age(&self, batch: &[ScoreRequest]) {
        if self.began.elapsed() > PUBLISHED_WITHIN {
            for (board, _) in RevisionGuard::of(batch).boards.values() {
                board.each_ranking(|_, ranking| ranking.remote().map_or((), RemoteRanking::miss));
            }
        }
    }

    /// The batch is published, so its leaderboards may be renewed again. Its changes are in memory as of their revision; a
    /// leaderboard whose revision was lost with the reply is read again.
    pub(super) fn end(self, done: &[OnShard]) {
        for OnShard { shard, committed, changed } in done {
            changed.iter().for_each(|board| board.advance(*shard, committed.revision));
        }
        drop(self.changing);
    }
}

/// Whether a batch changes what other lanes read. Then no other batch of its shards may run beside it.
pub(super) fn changes_boards(batch: &[ScoreRequest]) -> bool {
    batch.iter().any(|request| on_kind!(request, one => one.changes_boards()))
}

/// Whether it changes that for all players, as a new definition does. Then no other batch may run beside it on any shard.
pub(super) fn changes_all(batch: &[ScoreRequest]) -> bool {
    batch.iter().any(|request| on_kind!(request, one => one.changes_boards() && one.player().is_none()))
}
