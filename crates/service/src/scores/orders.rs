//! Questions to orders while somebody may hold some of them.
//!
//! A read in the middle of a pipeline is asked by the lane, which holds the orders that the pipeline changes; asking
//! those through their lock would wait for ever. Not here: what is asked, and publishing.

use crate::boards::Board;
use crate::failure::Failure;
use crate::periods::LivePart;
use crate::periods::view::View;
use tally_ranking::{HeldStandings, Reads};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Part, Store};

/// The orders as they are at the place of a question, some of them held by the one who publishes.
pub struct Orders<'a> {
    pub(super) held: &'a [(BoardNo, Part, HeldStandings<'a>)],
}

impl Orders<'_> {
    /// Nobody holds anything: everything is read as it is.
    pub const FREE: Orders<'static> = Orders { held: &[] };

    /// Asks one part of a board.
    pub fn read<T>(
        &self,
        view: &View,
        store: &dyn Store,
        with: impl FnOnce(&dyn Reads) -> T,
    ) -> Result<T, Failure> {
        match view.part().and_then(|part| self.held(view.board.no, part)) {
            Some(held) => Ok(held.read(with)?),
            None => view.read_once(store, with),
        }
    }

    /// Asks the order of a board over all time.
    pub fn read_board<T>(&self, board: &Board, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, Failure> {
        match self.held(board.no, ALL_TIME) {
            Some(held) => Ok(held.read(with)?),
            None => Ok(board.order.read(with)?),
        }
    }

    /// How many players a board has over all time.
    pub fn total_of_board(&self, board: &Board) -> u64 {
        let held = self.held(board.no, ALL_TIME);
        held.map_or_else(|| board.order.total(), HeldStandings::total)
    }

    /// How many players a period has.
    pub fn total(&self, board: &Board, live: &LivePart) -> u64 {
        self.held(board.no, live.part).map_or_else(|| live.order.total(), HeldStandings::total)
    }

    fn held(&self, board: BoardNo, part: Part) -> Option<&HeldStandings<'_>> {
        self.held.iter().find(|one| one.0 == board && one.1 == part).map(|one| &one.2)
    }
}
