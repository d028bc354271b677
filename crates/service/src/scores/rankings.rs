//! Reads of rankings while the lane or a transaction may hold some of them.
//!
//! The lane runs the reads in the middle of a pipeline, and holds the rankings that the pipeline changes. Reading those
//! through their lock would be a deadlock. Reads of a transaction that changes nothing share their rankings, so that no
//! change comes between them, and need no lane. Not here: the reads, and publishing.

use super::batch::WindowInMemory;
use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::periods::LiveWindow;
use crate::periods::view::View;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_ranking::{LockedRanking, ReadGuard, Reads, WindowRanking};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Store, Window};

/// The rankings for a read; some of them are held by the lane that publishes, or shared by the transaction that reads.
pub struct Rankings<'a> {
    pub(super) held: &'a [(BoardNo, Window, LockedRanking<'a>)],
    shared: Option<&'a SharedRankings<'a>>,
}

/// Rankings that do not change during the reads.
struct SharedRankings<'a> {
    rankings: BTreeMap<(BoardNo, Window), ReadGuard<'a>>,
    /// Whether another one was read: its lock, taken out of order, could wait for a writer that waits for these.
    missed: Cell<bool>,
}

/// The windows in memory that the reads of a transaction use.
#[derive(Debug, Default)]
pub struct TransactionWindows(BTreeMap<(BoardNo, Window), WindowInMemory>);

impl TransactionWindows {
    /// Adds a board over all time, and its open periods; returns whether a read of it waits only for its lock.
    pub fn add_board(&mut self, board: &Arc<Board>) -> bool {
        let open = board.live().into_iter();
        self.0.extend(open.map(|live| ((board.no, live.window), WindowInMemory::Live(live))));
        self.0.insert((board.no, ALL_TIME), WindowInMemory::AllTime(Arc::clone(board)));
        !board.ranking.waits()
    }

    /// Adds a window of a board; returns whether a read of it waits only for its lock.
    pub fn add(&mut self, view: &View) -> bool {
        if let (Some(window), Some(found)) = (view.window(), view.in_memory()) {
            self.0.insert((view.board.no, window), found);
        }
        !view.blocks()
    }

    /// Reads with all of them shared. `with` gets the rankings of a read, and a function that returns whether the read used
    /// another ranking, which makes its reply invalid.
    pub fn read(&self, with: impl FnOnce(&Rankings<'_>, &dyn Fn() -> bool)) {
        // In the order in which the lane locks several.
        let in_memory = self.0.iter().filter_map(|(of, window)| Some((*of, window.ranking().memory()?)));
        let rankings = in_memory.map(|(of, ranking)| (of, ranking.share())).collect();
        let shared = SharedRankings { rankings, missed: Cell::new(false) };
        with(&Rankings { held: &[], shared: Some(&shared) }, &|| shared.missed.take());
    }
}

impl<'a> Rankings<'a> {
    /// Nothing is held: everything is read through its lock.
    pub const FREE: Rankings<'static> = Rankings { held: &[], shared: None };

    /// The lane holds these.
    pub(super) fn held(held: &'a [(BoardNo, Window, LockedRanking<'a>)]) -> Self {
        Self { held, shared: None }
    }

    /// Reads one window of a board.
    pub fn read<T>(
        &self,
        view: &View,
        store: &dyn Store,
        with: impl FnOnce(&dyn Reads) -> T,
    ) -> Result<T, Failure> {
        match view.window() {
            Some(window) => {
                self.read_window((view.board.no, window), with, |with| view.read_once(store, with))
            }
            None => view.read_once(store, with),
        }
    }

    /// Reads the ranking of a board over all time.
    pub fn read_board<T>(&self, board: &Board, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, Failure> {
        self.read_window((board.no, ALL_TIME), with, |with| Ok(board.ranking.read(with)?))
    }

    /// How many players a board has over all time.
    pub fn total_of_board(&self, board: &Board) -> u64 {
        self.total_of((board.no, ALL_TIME), &board.ranking)
    }

    /// How many players a period has.
    pub fn total(&self, board: &Board, live: &LiveWindow) -> u64 {
        self.total_of((board.no, live.window), &live.ranking)
    }

    fn total_of(&self, of: (BoardNo, Window), ranking: &WindowRanking) -> u64 {
        match self.shared.filter(|_| !ranking.waits()) {
            Some(shared) => shared.get(&of).map_or(0, |ranking| ranking.read(|ranking| ranking.total())),
            None => self.find(&of).map_or_else(|| ranking.total(), LockedRanking::total),
        }
    }

    /// Reads a ranking as it is held or shared, or calls `free` if it is neither.
    fn read_window<T, W: FnOnce(&dyn Reads) -> T>(
        &self,
        of: (BoardNo, Window),
        with: W,
        free: impl FnOnce(W) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if let Some(shared) = self.shared {
            return Ok(shared.get(&of).ok_or(Fault::Overloaded)?.read(with));
        }
        match self.find(&of) {
            Some(held) => Ok(held.read(with)?),
            None => free(with),
        }
    }

    fn find(&self, of: &(BoardNo, Window)) -> Option<&LockedRanking<'_>> {
        self.held.iter().find(|one| (one.0, one.1) == *of).map(|one| &one.2)
    }
}

impl<'a> SharedRankings<'a> {
    fn get(&self, of: &(BoardNo, Window)) -> Option<&ReadGuard<'a>> {
        let found = self.rankings.get(of);
        self.missed.set(self.missed.get() || found.is_none());
        found
    }
}
