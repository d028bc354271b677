//! The leaderboards that rank a player, by name. It reads the rankings; with Redis it blocks, and reads many at once.

use crate::boards::Board;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Arc;
use tally_ranking::{Ranked, WindowRanking};
use tally_rules::definition::Subscore;
use tally_rules::{BoardId, PlayerId};

/// Boards that one page reads; after that the page ends early.
const SCANNED_MAX: usize = 10_000;

/// Leaderboards that are read at once with rankings in Redis: few enough that no other request waits long there.
const AT_ONCE: usize = 200;

/// A leaderboard and the player's position on it.
pub struct BoardRank {
    /// The name of the leaderboard.
    pub board: Arc<Board>,
    /// The position of the player, with its record.
    pub ranked: Ranked,
}

impl BoardRank {
    /// Whether the board has a subscore.
    pub fn has_subscore(&self) -> bool {
        self.board.definition.subscore != Subscore::None
    }
}

/// A page of leaderboards.
pub struct Page {
    /// The boards that rank the player.
    pub items: Vec<BoardRank>,
    /// The board after which the next page begins, if there may be more.
    pub next: Option<BoardId>,
}

/// The boards after `after` whose ranking of all time has the player.
pub fn of_player(
    tally: &Tally,
    player: &PlayerId,
    after: Option<&BoardId>,
    limit: usize,
) -> Result<Page, Failure> {
    let mut page = Page { items: Vec::new(), next: None };
    let boards = tally.boards.list(after, SCANNED_MAX);
    let many = boards.len();
    // In memory a batch saves nothing, so no board is read in vain.
    let at_once = if boards.first().is_some_and(|board| board.ranking.waits()) { AT_ONCE } else { 1 };
    let mut scanned = 0;
    for some in boards.chunks(at_once) {
        let rankings: Vec<&WindowRanking> = some.iter().map(|board| &board.ranking).collect();
        for (board, ranked) in some.iter().zip(WindowRanking::ranked_in(&rankings, player)) {
            scanned += 1;
            if let Some(ranked) = ranked? {
                page.items.push(BoardRank { board: Arc::clone(board), ranked });
            }
            if page.items.len() == limit && scanned < many || scanned == SCANNED_MAX {
                page.next = Some(board.id.clone());
                return Ok(page);
            }
        }
    }
    Ok(page)
}
