//! Orders that are kept elsewhere and are not what is stored: published again, or loaded anew.
//!
//! Until that is done, nobody is told a rank of them. Not here: orders in memory, which cannot be behind.

use super::order;
use crate::boards::Board;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Arc;
use tally_ranking::Standings;
use tally_rules::instant::SECOND;
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Part, Store};

/// How long those who went are remembered, as in the store.
const KEPT_MICROS: i64 = 3_600 * SECOND;

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

/// Forgets who went from orders that are kept elsewhere, when nothing older than that can still arrive there.
pub(super) fn purge(tally: &Tally) {
    let before = u64::try_from(tally.now().plus(-KEPT_MICROS).0).unwrap_or(0);
    for board in tally.boards.from_no(BoardNo(0), usize::MAX) {
        let live = board.periods().rules.iter().flat_map(|state| state.live.clone()).collect::<Vec<_>>();
        let orders = std::iter::once(&board.order).chain(live.iter().map(|live| &live.order));
        for remote in orders.filter_map(Standings::remote).filter(|remote| !remote.is_behind()) {
            // It costs memory until the next time, and nothing else.
            drop(remote.purge(before));
        }
    }
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
