//! Orders that are kept elsewhere and are not what is stored: published again, or loaded anew.
//!
//! Until that is done, nobody is told a rank of them. Not here: orders in memory, which cannot be behind.

use super::order;
use crate::boards::Board;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Arc;
use tally_ranking::Standings;
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Part, Store};

/// Brings every order to what is stored; with `everywhere` also those are looked at that seem right. The first that
/// cannot be mended ends it: the others are as far away.
pub(super) fn catch_up(tally: &Tally, everywhere: bool) -> Result<(), Failure> {
    for board in tally.boards.from_no(BoardNo(0), usize::MAX) {
        if board.order.remote().is_none() {
            return Ok(());
        }
        if board.definition.all_time {
            mend(&*tally.store, &board, ALL_TIME, &board.order, everywhere)?;
        }
        let live = board.periods().rules.iter().flat_map(|state| state.live.clone()).collect::<Vec<_>>();
        for live in live {
            mend(&*tally.store, &board, live.part, &live.order, everywhere)?;
        }
    }
    Ok(())
}

fn mend(
    store: &dyn Store,
    board: &Arc<Board>,
    part: Part,
    order: &Standings,
    everywhere: bool,
) -> Result<(), Failure> {
    let Some(remote) = order.remote() else { return Ok(()) };
    if !everywhere && !remote.is_behind() {
        return Ok(());
    }
    remote.catch_up()?;
    if remote.is_lost() {
        tracing::info!(board = board.id.as_str(), part = part.0, "load an order that was lost");
        order::fill(store, board, part, order, |_, _| {})?;
    }
    Ok(())
}
