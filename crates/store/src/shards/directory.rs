//! What every database needs of boards: which there are, how they are defined, and which of their periods are forgotten.
//!
//! The first database has it, and a change is true when it is committed there. Then each other database is told, in a
//! transaction of its own. One that cannot be told lags: before it is used again, all that it lacks is read from the first and
//! applied, as often as needed. That is safe to repeat: a board is created where it is not there and deleted where it is. What the
//! first still has to purge says what is gone, so the first purges last. A start compares all databases, because a process may
//! have been killed in between. Not here: several processes that change boards; the leases keep the second away.

use super::Inner;
use super::split::FIRST;
use crate::mysql::MySqlStore;
use crate::plan::{BatchId, BoardChange, BoardNo, BoardRow, Changes, Gone, Plan};
use crate::{ScoreBooks, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Boards that a database is told of in one transaction.
const TOLD_MAX: usize = 100;

/// See the head of the file.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Held from before a change on the first until the others were told: they hear of changes in their order.
    changing: Mutex<()>,
    /// One for each database, held while it is told.
    telling: Vec<Mutex<()>>,
    /// A bit for each database that lags.
    lagging: AtomicU64,
    /// Changes whose commit on the first is in doubt.
    in_doubt: Mutex<Vec<BatchId>>,
}

impl Directory {
    pub(super) fn of(shards: usize) -> Self {
        Self { telling: (0..shards).map(|_| Mutex::default()).collect(), ..Self::default() }
    }

    /// Changes boards, or purges what the others may still have to learn of, one at a time.
    pub(super) fn change(&self) -> MutexGuard<'_, ()> {
        locked(&self.changing)
    }

    /// How many databases lag.
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
    /// Tells the databases behind the first of a change that is done there. One that does not hear of it lags. The caller holds
    /// [`Directory::change`].
    pub(super) fn tell(&self, changes: &Changes) {
        std::thread::scope(|scope| {
            for shard in 1..self.all.len() {
                scope.spawn(move || {
                    let _one = locked(&self.directory.telling[shard]);
                    let unheard = self.directory.lags(shard) || self.silent.is_recent(shard);
                    if unheard || apply(&self.all[shard], changes).is_err() {
                        self.directory.set_lagging(shard);
                    }
                });
            }
        });
    }

    /// Nobody knows whether a change was committed on the first: who needs another database finds out before.
    pub(super) fn doubt(&self, batch: BatchId) {
        locked(&self.directory.in_doubt).push(batch);
        (1..self.all.len()).for_each(|shard| self.directory.set_lagging(shard));
    }

    /// Brings a database that lags to what the first says.
    pub(super) fn catch_up(&self, shard: usize) -> Result<(), StoreError> {
        if shard == FIRST || !self.directory.lags(shard) {
            return Ok(());
        }
        let _one = locked(&self.directory.telling[shard]);
        if self.directory.lags(shard) {
            self.settle_doubts().and_then(|()| self.compare(shard)).map_err(|error| match error {
                StoreError::Away(why) | StoreError::Conflict(why) => {
                    self.away(shard, true, format!("it does not know yet what boards there are: {why}"))
                }
                error => error,
            })?;
            self.directory.lagging.fetch_and(!(1 << shard), Ordering::AcqRel);
        }
        Ok(())
    }

    /// Brings every database to what the first says, whatever is known of it.
    pub(super) fn catch_up_all(&self) -> Result<(), StoreError> {
        (1..self.all.len()).for_each(|shard| self.directory.set_lagging(shard));
        (1..self.all.len()).try_for_each(|shard| self.catch_up(shard))
    }

    /// Asks what became of changes in doubt: afterwards each is there or never will be.
    fn settle_doubts(&self) -> Result<(), StoreError> {
        let mut doubts = locked(&self.directory.in_doubt);
        while let Some(batch) = doubts.last() {
            self.all[FIRST].became(batch)?;
            doubts.pop();
        }
        Ok(())
    }

    /// Tells a database everything that it lacks.
    fn compare(&self, shard: usize) -> Result<(), StoreError> {
        let (first, there) = (View::of(&self.all[FIRST])?, View::of(&self.all[shard])?);
        let changes = first.changes_of(&there);
        for boards in changes.boards.chunks(TOLD_MAX) {
            apply(&self.all[shard], &Changes { boards: boards.to_vec(), ..Changes::default() })?;
        }
        apply(&self.all[shard], &Changes { boards: Vec::new(), ..changes })
    }
}

/// What a database knows of boards.
#[derive(Default)]
struct View {
    /// Its boards; one that cannot be read has no definition.
    boards: BTreeMap<BoardNo, Option<BoardRow>>,
    /// Boards and periods that it has to purge.
    deleted: BTreeSet<BoardNo>,
    forgotten: BTreeSet<crate::PartKey>,
}

impl View {
    fn of(store: &MySqlStore) -> Result<Self, StoreError> {
        let mut books = store.snapshot()?;
        let (boards, purge) = (ScoreBooks::boards(&mut books)?, books.to_purge()?);
        Ok(Self { boards: boards.into_iter().collect(), deleted: purge.boards, forgotten: purge.parts })
    }

    /// What another database has to change to know the same.
    fn changes_of(&self, there: &Self) -> Changes {
        let mut boards = BTreeMap::new();
        for no in self.deleted.iter().filter(|no| there.boards.contains_key(no)) {
            boards.insert(*no, BoardChange::Delete(*no));
        }
        for row in self.boards.values().flatten() {
            match there.boards.get(&row.no) {
                None => drop(boards.insert(row.no, BoardChange::Create(row.clone()))),
                Some(Some(known)) if known.definition == row.definition => {}
                Some(_) => {
                    boards.insert(row.no, BoardChange::Redefine(row.no, row.definition.clone()));
                }
            }
        }
        Changes {
            boards: boards.into_values().collect(),
            parts: self.forgotten.iter().map(|part| (*part, None)).collect(),
            gone: self.forgotten.iter().map(|part| Gone::Part(*part)).collect(),
            ..Changes::default()
        }
    }
}

/// Changes boards of one database, as far as that is not done yet.
fn apply(store: &MySqlStore, changes: &Changes) -> Result<(), StoreError> {
    if changes.is_empty() {
        return Ok(());
    }
    let boards = changes.boards.iter().map(BoardChange::no).collect();
    let plan = Plan { boards, alone: true, ..Plan::default() };
    let done = store.run(&plan, &mut |loaded| {
        let is_due = |(change, live): &(&BoardChange, &Option<u64>)| {
            live.is_none() == matches!(change, BoardChange::Create(_))
        };
        let boards = changes.boards.iter().zip(&loaded.boards).filter(is_due);
        Changes { boards: boards.map(|(change, _)| change.clone()).collect(), ..changes.clone() }
    });
    done.map(drop)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Part, PartKey};
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
        }
    }

    #[test]
    fn a_database_is_told_what_it_lacks_and_nothing_else() {
        let mut first = view(&[(2, true), (3, false), (5, true)], &[1, 4]);
        first.boards.insert(BoardNo(7), None);
        let part = PartKey { board: BoardNo(2), part: Part(9) };
        first.forgotten.insert(part);
        // Board 4 came and went while it was away; board 6 is none of the first's, and nothing says that it is gone.
        let there = view(&[(1, true), (2, true), (3, true), (6, true)], &[]);
        let told = first.changes_of(&there);
        let definition = |no: u32| first.boards[&BoardNo(no)].clone().unwrap();
        assert_eq!(
            told.boards,
            [
                BoardChange::Delete(BoardNo(1)),
                BoardChange::Redefine(BoardNo(3), definition(3).definition),
                BoardChange::Create(definition(5)),
            ]
        );
        assert_eq!((told.parts, told.gone), (vec![(part, None)], vec![Gone::Part(part)]));
        first.forgotten.clear();
        assert!(first.changes_of(&first).is_empty());
    }
}
