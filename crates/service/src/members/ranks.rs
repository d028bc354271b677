//! The boards that rank a player, by name. Asks the orders; blocks where they are elsewhere.

use crate::boards::Board;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Arc;
use tally_ranking::Ranked;
use tally_rules::definition::Subscore;
use tally_rules::{BoardId, PlayerId};

/// Boards that are looked at for one page: past it the page ends early.
const LOOKED_AT_MAX: usize = 10_000;

/// A board and the player's place on it.
pub struct BoardRank {
    /// The board.
    pub board: Arc<Board>,
    /// The place.
    pub ranked: Ranked,
}

impl BoardRank {
    /// Whether the board has a subscore.
    pub fn has_subscore(&self) -> bool {
        self.board.definition.subscore != Subscore::None
    }
}

/// A page.
pub struct Page {
    /// The boards that rank the player.
    pub items: Vec<BoardRank>,
    /// The board after which the next page begins, if there may be more.
    pub next: Option<BoardId>,
}

/// The boards after `after` whose order of all time has the player.
pub fn of_player(
    tally: &Tally,
    player: &PlayerId,
    after: Option<&BoardId>,
    limit: usize,
) -> Result<Page, Failure> {
    let mut page = Page { items: Vec::new(), next: None };
    let boards = tally.boards.list(after, LOOKED_AT_MAX);
    let many = boards.len();
    for (looked, board) in boards.into_iter().enumerate() {
        let id = board.id.clone();
        if let Some(ranked) = board.order.read(|order| order.ranked(player))? {
            page.items.push(BoardRank { board, ranked });
        }
        if page.items.len() == limit && looked + 1 < many || looked + 1 == LOOKED_AT_MAX {
            page.next = Some(id);
            break;
        }
    }
    Ok(page)
}
