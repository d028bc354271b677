//! The directory of boards that every shard needs: which exist, their definitions, and which of their periods are closed or
//! forgotten.
//!
//! The first shard decides: a change is valid when it is committed there. Then a transaction on each other shard brings it up
//! to date. That transaction holds its boards and writes what the first shard has at that moment. So the order, the number and
//! the sender of these transactions do not matter.
//!
//! A shard that a change does not reach lags. Before it is used again, it gets everything that it lacks from the first shard. A start
//! compares all shards, because a process may have been killed between the two commits. Servers that write side by side also
//! find a lagging shard when they read a board, or when a shard does not know a board. The rows that the first shard still
//! has to purge list what is deleted, so the first shard purges last. Not here: what a server caches of boards.

use super::Inner;
use super::split::FIRST;
use crate::mysql::MySqlStore;
use crate::plan::{BatchId, BoardChange, BoardNo, BoardRow, Garbage, ReadSet, WindowKey, WriteSet};
use crate::servers::{BoardRef, Revisions};
use crate::{Coordination, Reads, ScoreSnapshot, StoreError, Transactions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tally_rules::BoardId;

/// The maximum number of boards in one transaction that updates a shard.
const BOARDS_MAX: usize = 100;

/// The name of the note with the number of the next board.
pub(super) const NEXT_BOARD: &str = "store.next_board";

/// The maximum number of attempts to update a shard when other transactions conflict.
const TRIES: usize = 5;

/// A change on the first shard that the other shards have to learn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Delta {
    pub(super) boards: BTreeSet<BoardNo>,
    /// Closed periods: they take no more scores.
    pub(super) closed: BTreeSet<WindowKey>,
    /// Forgotten periods.
    pub(super) deleted_windows: BTreeSet<WindowKey>,
}

impl Delta {
    pub(super) fn of_board(no: BoardNo) -> Self {
        Self { boards: [no].into(), ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// The boards whose revisions the transaction holds.
    fn held(&self) -> Vec<BoardNo> {
        let windows = self.closed.iter().chain(&self.deleted_windows).map(|window| window.board);
        self.boards.iter().copied().chain(windows).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// The state of the propagation to the shards; see the head of the file.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Held from before a change on the first shard until the others have it, so they get changes in order.
    changing: Mutex<()>,
    /// One lock for each shard, held while the shard is updated.
    updating: Vec<Mutex<()>>,
    /// A bit for each lagging shard.
    lagging: AtomicU64,
    /// The in-doubt commit on the first shard. No other change begins before it is resolved.
    in_doubt: Mutex<Option<BatchId>>,
}

impl Directory {
    pub(super) fn of(shards: usize) -> Self {
        Self { updating: (0..shards).map(|_| Mutex::default()).collect(), ..Self::default() }
    }

    /// Serializes changes of boards, and purges of what the other shards may still have to learn.
    pub(super) fn change(&self) -> MutexGuard<'_, ()> {
        locked(&self.changing)
    }

    /// The number of lagging shards.
    pub(super) fn lagging(&self) -> u32 {
        self.lagging.load(Ordering::Acquire).count_ones()
    }

    fn lags(&self, shard: usize) -> bool {
        self.lagging.load(Ordering::Acquire) & 1 << shard != 0
    }

    fn set_lagging(&self, shard: usize) {
        self.lagging.fetch_or(1 << shard, Ordering::AcqRel);
    }
}

impl Inner {
    /// Propagates a change that is committed on the first shard to the others. Returns whether all have it; a shard without
    /// it lags. The caller holds [`Directory::change`].
    pub(super) fn propagate(&self, change: &Delta) -> bool {
        let propagate = |shard: usize| {
            // A lagging shard gets everything that it lacks first.
            let caught_up = !self.breaker.is_recent(shard) && self.catch_up(shard).is_ok();
            let _one = locked(&self.directory.updating[shard]);
            let reached = caught_up && self.sync(shard, change).is_ok();
            if !reached {
                self.directory.set_lagging(shard);
            }
            reached
        };
        std::thread::scope(|scope| {
            let all: Vec<_> =
                (1..self.all.len()).map(|shard| scope.spawn(move || propagate(shard))).collect();
            all.into_iter().all(|one| one.join().unwrap_or(false))
        })
    }

    /// Brings the named boards and periods of a shard to the state of the first shard.
    pub(super) fn sync(&self, shard: usize, change: &Delta) -> Result<(), StoreError> {
        let mut tries = 1;
        loop {
            match self.sync_once(shard, change) {
                // A missing board cannot be held, so another server may have created it meanwhile.
                Err(StoreError::Conflict(_) | StoreError::Row(_)) if tries < TRIES => tries += 1,
                done => return done,
            }
        }
    }

    /// The shard's boards are held, so no other server updates it meanwhile. So the state that is read from the first
    /// shard is not older than any state written here.
    fn sync_once(&self, shard: usize, change: &Delta) -> Result<(), StoreError> {
        let (first, there) = (&self.all[FIRST], &self.all[shard]);
        // A missing board cannot be held. Creating or deleting a board holds the row of the next number, and so does this
        // transaction.
        let name = (!change.boards.is_empty()).then(|| BoardId::new("told").expect("it is a name"));
        let board_names = name.into_iter().collect();
        let plan = ReadSet { boards: change.held(), board_names, exclusive: true, ..ReadSet::default() };
        let mut failed = None;
        let done = there.run(&plan, &mut |loaded| {
            let live = |no: &BoardNo| {
                let place = plan.boards.binary_search(no).expect("it is in the plan");
                loaded.boards[place].is_some()
            };
            let read = lacks(first, there, change, live);
            read.unwrap_or_else(|error| {
                failed = Some(error);
                WriteSet::default()
            })
        });
        match failed {
            Some(error) => Err(error),
            None => done.map(drop),
        }
    }

    /// Marks a commit on the first shard as in doubt. It is resolved before another shard is used.
    pub(super) fn doubt(&self, batch: BatchId) {
        *locked(&self.directory.in_doubt) = Some(batch);
        (1..self.all.len()).for_each(|shard| self.directory.set_lagging(shard));
    }

    /// Brings a lagging shard to the state of the first shard.
    pub(super) fn catch_up(&self, shard: usize) -> Result<(), StoreError> {
        if shard == FIRST || !self.directory.lags(shard) {
            return Ok(());
        }
        let _one = locked(&self.directory.updating[shard]);
        if self.directory.lags(shard) {
            self.settle_doubt().and_then(|()| self.compare(shard)).map_err(|error| match error {
                StoreError::Unavailable(why) | StoreError::NoAccess(why) | StoreError::Conflict(why) => self
                    .unavailable(shard, true, format!("it does not know yet what boards there are: {why}")),
                error => error,
            })?;
            self.directory.lagging.fetch_and(!(1 << shard), Ordering::AcqRel);
        }
        Ok(())
    }

    /// Brings every shard to the state of the first shard, even if it is not marked as lagging.
    pub(super) fn catch_up_all(&self) -> Result<(), StoreError> {
        (1..self.all.len()).for_each(|shard| self.directory.set_lagging(shard));
        (1..self.all.len()).try_for_each(|shard| self.catch_up(shard))
    }

    /// Resolves an in-doubt change: afterwards it is committed or never will be.
    pub(super) fn settle_doubt(&self) -> Result<(), StoreError> {
        let mut doubt = locked(&self.directory.in_doubt);
        if let Some(batch) = &*doubt {
            self.all[FIRST].resolve(batch)?;
        }
        *doubt = None;
        Ok(())
    }

    /// Compares a shard with the first shard, and writes everything that it lacks.
    fn compare(&self, shard: usize) -> Result<(), StoreError> {
        // The first shard is read last: what the other shard has was committed on the first before.
        let there = View::of(&self.all[shard])?;
        let first = View::of(&self.all[FIRST])?;
        let change = first.change_for(&there, self.shared).ok_or_else(|| {
            StoreError::Layout(format!(
                "{} and {} are of different moments: their leaderboards do not fit together. Restore backups of one moment \
                 (nothing was changed)",
                self.all[FIRST].url(),
                self.all[shard].url()
            ))
        })?;
        let boards: Vec<BoardNo> = change.boards.iter().copied().collect();
        for boards in boards.chunks(BOARDS_MAX) {
            self.sync(shard, &Delta { boards: boards.iter().copied().collect(), ..Delta::default() })?;
        }
        if change.deleted_windows.is_empty() {
            Ok(())
        } else {
            self.sync(shard, &Delta { deleted_windows: change.deleted_windows, ..Delta::default() })
        }
    }

    /// Whether a shard lacks some boards because a change did not reach it. It has them when this returns.
    pub(super) fn was_behind(&self, shard: usize, unknown: &[BoardNo]) -> Result<bool, StoreError> {
        let mut change = Delta::default();
        for no in unknown {
            if row_of(&self.all[FIRST], *no)?.is_some() {
                change.boards.insert(*no);
            }
        }
        if change.is_empty() {
            return Ok(false);
        }
        self.sync(shard, &change)?;
        Ok(true)
    }
}

/// A live board as a shard has it.
fn row_of(store: &MySqlStore, no: BoardNo) -> Result<Option<BoardRow>, StoreError> {
    Ok(store.board(BoardRef::No(no), Some(&no_bans()))?.map(|state| state.row))
}

/// Revisions that exclude all bans of a board.
pub(super) fn no_bans() -> Revisions {
    Revisions::new(vec![u64::MAX])
}

/// The changes that bring a shard to the state of the first. `live` says which boards the shard has.
fn lacks(
    first: &MySqlStore,
    there: &MySqlStore,
    change: &Delta,
    live: impl Fn(&BoardNo) -> bool,
) -> Result<WriteSet, StoreError> {
    let mut changes = WriteSet::default();
    let mut new = Vec::new();
    for no in &change.boards {
        match (row_of(first, *no)?, live(no)) {
            (Some(row), false) => {
                // The name may belong to a deleted board whose deletion did not reach this shard either.
                let old = there.board(BoardRef::Id(&row.id), Some(&no_bans()))?;
                let old = old.map(|state| state.row.no).filter(|old| !change.boards.contains(old));
                changes.boards.extend(old.map(BoardChange::Delete));
                new.push(BoardChange::Create(row));
            }
            (Some(row), true) => {
                if row_of(there, *no)?.is_none_or(|known| known.definition != row.definition) {
                    changes.boards.push(BoardChange::Redefine(*no, row.definition));
                }
            }
            (None, true) => changes.boards.push(BoardChange::Delete(*no)),
            (None, false) => {}
        }
    }
    // A deletion frees a name before a creation takes it, because numbers ascend.
    changes.boards.extend(new);
    changes.boards.sort_unstable_by_key(BoardChange::no);
    changes.boards.dedup_by_key(|change| change.no());
    for window in change.closed.iter().filter(|window| live(&window.board)) {
        let closed = |store: &MySqlStore| {
            let rows = store.windows(window.board)?.into_iter();
            Ok::<_, StoreError>(rows.filter(|row| row.closed).find(|row| row.window == window.window))
        };
        if let (Some(row), None) = (closed(first)?, closed(there)?) {
            changes.windows.push((*window, Some(row)));
        }
    }
    if !change.deleted_windows.is_empty() {
        let purge = first.begin_snapshot()?.to_purge()?;
        for window in change.deleted_windows.iter().filter(|window| purge.windows.contains(window)) {
            changes.windows.push((*window, None));
            changes.garbage.push(Garbage::Window(*window));
        }
    }
    changes.windows.sort_unstable_by_key(|(key, _)| *key);
    Ok(changes)
}

/// The boards that a shard knows.
#[derive(Default)]
struct View {
    /// Live boards; a corrupt board has no definition.
    boards: BTreeMap<BoardNo, Option<BoardRow>>,
    /// Boards and periods that the shard has to purge.
    deleted: BTreeSet<BoardNo>,
    forgotten: BTreeSet<WindowKey>,
    /// The number of the next board.
    next: u32,
}

impl View {
    fn of(store: &MySqlStore) -> Result<Self, StoreError> {
        let mut snapshot = store.begin_snapshot()?;
        let (boards, purge) = (ScoreSnapshot::boards(&mut snapshot)?, snapshot.to_purge()?);
        let next = store
            .notes(NEXT_BOARD)?
            .first()
            .and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
        let (boards, next) = (boards.into_iter().collect(), next.unwrap_or(0));
        Ok(Self { boards, deleted: purge.boards, forgotten: purge.windows, next })
    }

    /// What the other shard lacks. `None` if the other shard knows boards that this one never had, or has lost a
    /// board of this one. Then one of the two was restored from an older backup. Servers that write side by side
    /// propagate boards in any order, so there a missing board may be new.
    fn change_for(&self, there: &Self, side_by_side: bool) -> Option<Delta> {
        let is_known = |no: &BoardNo| self.boards.contains_key(no) || self.deleted.contains(no);
        let is_lost = |no: &BoardNo| !side_by_side && no.0 < there.next && !there.boards.contains_key(no);
        if !there.boards.keys().all(is_known) || self.boards.keys().any(is_lost) {
            return None;
        }
        let deleted = self.deleted.iter().filter(|no| there.boards.contains_key(no)).copied();
        let differs = |row: &&BoardRow| match there.boards.get(&row.no) {
            Some(Some(known)) => known.definition != row.definition,
            _ => true,
        };
        let changed = self.boards.values().flatten().filter(differs).map(|row| row.no);
        Some(Delta {
            boards: deleted.chain(changed).collect(),
            deleted_windows: self.forgotten.iter().copied().collect(),
            ..Delta::default()
        })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Window;
    use tally_rules::{BoardId, Definition, Micros};

    fn view(boards: &[(u32, bool)], deleted: &[u32]) -> View {
        let board = |(no, all_time): &(u32, bool)| {
            let definition = Definition { all_time: *all_time, ..Definition::default() };
            let (no, id) = (BoardNo(*no), BoardId::new(&format!("b{no}")).unwrap());
            (no, Some(BoardRow { no, id, definition, created_at: Micros(0) }))
        };
        View {
            boards: boards.iter().map(board).collect(),
            deleted: deleted.iter().copied().map(BoardNo).collect(),
            forgotten: BTreeSet::new(),
            next: boards.last().map_or(1, |(no, _)| no + 1),
        }
    }

    #[test]
    fn a_database_is_told_what_it_lacks_and_nothing_else() {
        let mut first = view(&[(2, true), (3, false), (5, true)], &[1, 4]);
        first.boards.insert(BoardNo(7), None);
        let window = WindowKey { board: BoardNo(2), window: Window(9) };
        first.forgotten.insert(window);
        // Board 4 was created and deleted while the shard was unavailable.
        let there = view(&[(1, true), (2, true), (3, true)], &[]);
        for side_by_side in [false, true] {
            let change = first.change_for(&there, side_by_side).unwrap();
            assert_eq!(change.boards, [1, 3, 5].map(BoardNo).into());
            assert_eq!((change.closed, change.deleted_windows), (BTreeSet::new(), [window].into()));
        }
        first.forgotten.clear();
        assert!(first.change_for(&first, false).unwrap().is_empty());
    }

    #[test]
    fn databases_of_different_moments_are_told_apart() {
        let first = view(&[(2, true), (5, true)], &[1]);
        // A board that the first shard never had, and a board that the other shard deleted and the first did not.
        let (unknown, lost) = (view(&[(2, true), (6, true)], &[]), view(&[(5, true)], &[2]));
        assert!([&unknown, &lost].iter().all(|other| first.change_for(other, false).is_none()));
        // With several servers, the missing board may not have reached the shard yet.
        assert!(first.change_for(&unknown, true).is_none());
        assert_eq!(first.change_for(&lost, true), Some(Delta::of_board(BoardNo(2))));
    }
}
