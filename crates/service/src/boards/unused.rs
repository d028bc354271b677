//! Makes room for leaderboards: deletes those that no request sees any more, when another one needs the room. A contest that
//! starts reserves room.
//!
//! Not here: making and deleting leaderboards by request (`put`).

use super::Board;
use super::put::set;
use crate::damaged;
use crate::failure::Failure;
use crate::scores::DeleteUnused;
use crate::tally::Tally;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardChange, BoardNo, Loaded, ReadSet, ShardSet, WriteSet};

/// The database of what belongs to no player.
const FIRST: usize = 0;

/// Whether an unseen leaderboard may be deleted. The transaction that deletes it reads this; with several servers it has
/// locked the board's row, so the store does not change meanwhile.
pub(super) fn may_delete(tally: &Tally, board: &Board, loaded: &Loaded) -> bool {
    // A record that cannot be read is one all the same.
    if damaged::has_records(&*tally.store, board.no, ALL_TIME) {
        return false;
    }
    if !board.is_shared() {
        return !board.is_there();
    }
    let revisions = board.revisions();
    let is_known = |shard: usize, boards: &[Option<u64>]| boards[0] == Some(revisions.of(shard));
    let known = is_known(FIRST, &loaded.boards)
        && loaded.boards_elsewhere.iter().all(|(shard, boards)| is_known(*shard, boards));
    let shown = !board.is_implicit() || board.has_bans();
    known && !shown && {
        let found = tally.store.scan_scores(board.no, ALL_TIME, None, 1, &mut |_, _| {});
        matches!(found, Ok(0))
    }
}

/// The start of a contest: it reserves room for leaderboards until it is dropped. So others are made and deleted while the
/// start waits for the ledger. One starts at a time.
pub(crate) struct ReservedRoom<'a> {
    tally: &'a Tally,
    _one: MutexGuard<'a, ()>,
}

impl<'a> ReservedRoom<'a> {
    /// Waits for the start before. Nothing is reserved yet.
    pub(crate) fn begin(tally: &'a Tally) -> Self {
        let one = tally.contests.starting.lock().unwrap_or_else(PoisonError::into_inner);
        Self { tally, _one: one }
    }

    /// Reserves room for so many, instead of what was reserved before. Returns whether there is room.
    pub(crate) fn reserve(&self, wanted: usize) -> Result<bool, Failure> {
        let _one = self.tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
        self.set(0);
        let has_room = make_room(self.tally, wanted)?;
        self.set(if has_room { wanted } else { 0 });
        Ok(has_room)
    }

    fn set(&self, boards: usize) {
        self.tally.contests.reserved_boards.store(boards, Ordering::SeqCst);
    }
}

impl Drop for ReservedRoom<'_> {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Whether so many leaderboards may be made; deletes unseen ones if that needs their room. The caller holds
/// `changing_boards`.
pub(crate) fn make_room(tally: &Tally, wanted: usize) -> Result<bool, Failure> {
    let taken = || tally.boards.len() + tally.contests.reserved_boards.load(Ordering::SeqCst);
    let has_room = || tally.settings.boards_max.saturating_sub(taken()) >= wanted;
    if !has_room() {
        delete_unused(tally)?;
    }
    Ok(has_room())
}

/// Deletes leaderboards that no request sees any more. They stay until their room is needed. A request that is about to write
/// to one learns from the lane that it was deleted, and makes it again.
fn delete_unused(tally: &Tally) -> Result<(), Failure> {
    let unseen = tally.boards.from_no(BoardNo(0), usize::MAX).into_iter().filter(|board| !board.is_there());
    for board in unseen {
        let id = board.id.clone();
        let deleted = if board.is_shared() {
            delete_shared(tally, &board)?
        } else {
            tally.lane.ask_blocking(DeleteUnused(board), None)?
        };
        if deleted {
            set(tally, &id, None);
        }
    }
    tally.tasks.maintenance.wake();
    Ok(())
}

/// Deletes a leaderboard that no request sees, whatever other servers write.
fn delete_shared(tally: &Tally, board: &Board) -> Result<bool, Failure> {
    // Every database is locked: a first score may be on its way to any.
    let shards = ShardSet::first(tally.store.shards());
    let plan = ReadSet { boards: vec![board.no], exclusive: true, shards, ..ReadSet::default() };
    let mut deleted = false;
    // Not repeated: a caller that waits for room also waits for the lock.
    tally.keys.in_doubt.run(&*tally.store, &plan, &mut |loaded| {
        deleted = may_delete(tally, board, loaded);
        let boards = if deleted { vec![BoardChange::Delete(board.no)] } else { Vec::new() };
        WriteSet { boards, ..WriteSet::default() }
    })?;
    Ok(deleted)
}
