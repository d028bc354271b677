//! From the store to exact ranks: every board is walked in key order and its tree built at once.
//!
//! Nothing is inserted one at a time: a build from sorted runs is several times faster and leaves full leaves.

use crate::boards::{Board, Boards};
use crate::failure::{Failure, Fault};
use crate::progress::Progress;
use std::sync::Arc;
use tally_rules::Micros;
use tally_store::plan::ALL_TIME;
use tally_store::{BoardRow, Store};

/// Rows read in one go: large enough to hide the statement, small enough to show progress.
const WALK_ROWS: usize = 50_000;

/// What a start needs to know.
pub struct Rebuilt {
    /// Every live board with its order.
    pub boards: Boards,
    /// The newest instant found: those given from now on come after it.
    pub newest: Micros,
}

/// Loads every board.
pub fn rebuild(store: &dyn Store, progress: &Progress) -> Result<Rebuilt, Failure> {
    let rows = store.boards()?;
    let mut total = 0;
    for row in &rows {
        total += store.count_scores(row.no, ALL_TIME)?;
    }
    progress.begin("loading", total);
    let boards = Boards::default();
    let mut newest = Micros(i64::MIN);
    for row in rows {
        newest = newest.max(row.created_at);
        let board = load(store, row, &mut newest, progress)?;
        boards.insert(Arc::new(board));
    }
    Ok(Rebuilt { boards, newest })
}

fn load(
    store: &dyn Store,
    row: BoardRow,
    newest: &mut Micros,
    progress: &Progress,
) -> Result<Board, Failure> {
    let hidden = store.bans(row.no)?;
    let board = Board::new(row, hidden);
    let mut loading = board.order.loading();
    let mut after = None;
    loop {
        let mut last = None;
        let walked =
            store.walk_scores(board.no, ALL_TIME, after.as_ref(), WALK_ROWS, &mut |player, record| {
                *newest = (*newest).max(record.at);
                if !board.hides(&player) {
                    loading.push(&player, &record);
                }
                last = Some(player);
            })?;
        progress.add(walked as u64);
        if walked < WALK_ROWS {
            break;
        }
        after = last;
    }
    board
        .order
        .load(loading)
        .map_err(|twice| Fault::Broken(format!("board `{}`: {twice}", board.id.as_str())))?;
    Ok(board)
}
