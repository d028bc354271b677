//! The live boards of a store, by name and by number.

use super::Board;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tally_rules::{BoardId, Rejection};
use tally_store::{BoardNo, CorruptRow};

/// How many boards a suggestion is chosen from.
const NEAREST_AMONG: usize = 200;
/// The largest edit distance of a suggestion.
const NEAREST_MAX: usize = 3;

/// Live boards by name and by number.
#[derive(Debug, Default)]
pub struct Boards {
    all: RwLock<Registry>,
    /// Changes with every board that is added or removed.
    version: AtomicU64,
    /// Names of boards that are stored and cannot be read.
    damaged: RwLock<HashSet<String>>,
}

#[derive(Debug, Default)]
struct Registry {
    by_id: BTreeMap<BoardId, Arc<Board>>,
    by_no: BTreeMap<BoardNo, Arc<Board>>,
}

impl Boards {
    /// The board of that name, even if it has no players and is not [there](Board::is_there).
    pub fn get<Q: Ord + ?Sized>(&self, id: &Q) -> Option<Arc<Board>>
    where
        BoardId: Borrow<Q>,
    {
        self.read().by_id.get(id).cloned()
    }

    /// Whether a leaderboard is still the one of its name. Its ranking may be deleted, so a late request gets a rejection.
    pub fn has(&self, board: &Board) -> bool {
        self.read().by_no.contains_key(&board.no)
    }

    /// Callers that cache a leaderboard compare this.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The board of that name, or a rejection with the nearest name.
    pub fn find(&self, id: &BoardId) -> Result<Arc<Board>, Rejection> {
        let found = self.get(id).filter(|board| board.is_there());
        if found.is_none() {
            self.check_damaged(id.as_str())?;
        }
        found.ok_or_else(|| Rejection::LeaderboardNotFound(self.nearest(id)))
    }

    /// Rejects the name of a board that is stored and cannot be read.
    pub fn check_damaged(&self, name: &str) -> Result<(), Rejection> {
        let damaged = self.damaged.read().unwrap_or_else(PoisonError::into_inner);
        if damaged.contains(name) { Err(Rejection::LeaderboardDamaged) } else { Ok(()) }
    }

    /// Boards that are stored and cannot be read, in order of names.
    pub fn damaged_rows(&self) -> Vec<CorruptRow> {
        let damaged = self.damaged.read().unwrap_or_else(PoisonError::into_inner);
        let row = |key: &String| CorruptRow {
            table: "boards",
            key: key.clone(),
            what: "the leaderboard is unavailable".into(),
        };
        let mut rows: Vec<CorruptRow> = damaged.iter().map(row).collect();
        rows.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        rows
    }

    /// A board is stored and cannot be read.
    pub(crate) fn set_damaged(&self, name: &str) {
        self.damaged.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    /// A name within a small edit distance, among the first names only: a guess is not worth a scan.
    fn nearest(&self, id: &BoardId) -> Option<String> {
        let distance = |board: &Arc<Board>| strsim::damerau_levenshtein(board.id.as_str(), id.as_str());
        let boards = self.list(None, NEAREST_AMONG);
        let (far, board) = boards.iter().map(|board| (distance(board), board)).min_by_key(|(far, _)| *far)?;
        (far <= NEAREST_MAX).then(|| board.id.as_str().to_owned())
    }

    /// Boards in order of their names' bytes, at most `limit`, from the first after `after`.
    pub fn list(&self, after: Option<&BoardId>, limit: usize) -> Vec<Arc<Board>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let all = self.read();
        let there = all.by_id.range::<BoardId, _>((from, Bound::Unbounded)).map(|(_, board)| board);
        there.filter(|board| board.is_there()).take(limit).cloned().collect()
    }

    /// Boards by number, at most `limit`, from `from` on. A scan finds every board that exists throughout.
    pub fn from_no(&self, from: BoardNo, limit: usize) -> Vec<Arc<Board>> {
        self.read().by_no.range(from..).take(limit).map(|(_, board)| Arc::clone(board)).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.read().by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The board of that number.
    pub(crate) fn by_no(&self, no: BoardNo) -> Option<Arc<Board>> {
        self.read().by_no.get(&no).cloned()
    }

    /// Puts a board under that name, or leaves it empty; returns the previous one. A board that is there already stays: the
    /// request that made it and the follower may both add it.
    pub(crate) fn set(&self, id: &BoardId, board: Option<Arc<Board>>) -> Option<Arc<Board>> {
        let mut all = self.write();
        if board.as_ref().is_some_and(|board| all.by_no.contains_key(&board.no)) {
            return None;
        }
        let old = match &board {
            Some(board) => all.by_id.insert(id.clone(), Arc::clone(board)),
            None => all.by_id.remove(id),
        };
        if let Some(old) = &old {
            all.by_no.remove(&old.no);
        }
        all.by_no.extend(board.map(|board| (board.no, board)));
        self.version.fetch_add(1, Ordering::AcqRel);
        old
    }

    /// Removes a deleted board; its name may have another one by now.
    pub(crate) fn set_gone(&self, board: &Board) {
        let mut all = self.write();
        all.by_no.remove(&board.no);
        if all.by_id.get(&board.id).is_some_and(|named| named.no == board.no) {
            all.by_id.remove(&board.id);
        }
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    fn read(&self) -> RwLockReadGuard<'_, Registry> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Registry> {
        self.all.write().unwrap_or_else(PoisonError::into_inner)
    }
}
