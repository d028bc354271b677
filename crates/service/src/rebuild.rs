//! From the store to exact ranks: every board is walked in key order and its trees built at once.
//!
//! Nothing is inserted one at a time: a build from sorted runs is several times faster and leaves full leaves. Periods
//! that ended while nobody served are closed here, in order, before anything is answered.

use crate::boards::{Board, Boards};
use crate::failure::{Failure, Fault};
use crate::periods::{LivePart, keeper, order};
use crate::progress::Progress;
use std::sync::Arc;
use tally_ranking::{Ranking, Standings};
use tally_rules::{Micros, Refusal};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardRow, Part, Store};

/// What a start needs to know.
pub struct Rebuilt {
    /// Every live board with its order.
    pub boards: Boards,
    /// The newest instant found: those given from now on come after it.
    pub newest: Micros,
}

/// Loads every board.
pub fn rebuild(
    store: &dyn Store,
    ranking: &Ranking,
    now: Micros,
    progress: &Progress,
) -> Result<Rebuilt, Failure> {
    let rows = store.boards()?;
    let mut total = 0;
    for row in &rows {
        total += store.count_scores(row.no, ALL_TIME)?;
        for part in store.parts(row.no)?.iter().filter(|part| !part.closed) {
            total += store.count_scores(row.no, part.part)?;
        }
    }
    progress.begin("loading", total);
    let boards = Boards::default();
    let mut newest = Micros(i64::MIN);
    for row in rows {
        newest = newest.max(row.created_at);
        boards.insert(Arc::new(load((store, ranking), row, now, &mut newest, progress)?));
    }
    Ok(Rebuilt { boards, newest })
}

fn load(
    (store, ranking): (&dyn Store, &Ranking),
    row: BoardRow,
    now: Micros,
    newest: &mut Micros,
    progress: &Progress,
) -> Result<Board, Failure> {
    let hidden = store.bans(row.no)?;
    let broken = |refusal: Refusal| Fault::Broken(refusal.detail());
    let board = Board::new(row, hidden, ranking).map_err(broken)?;
    let mut fill = |part: Part, order: &Standings| {
        order::fill(store, &board, part, order, |at, rows| {
            *newest = (*newest).max(at);
            progress.add(rows);
        })
    };
    fill(ALL_TIME, &board.order)?;
    for row in store.parts(board.no)? {
        let live = if row.closed {
            None
        } else {
            let order = board.order_of_part(row.part);
            fill(row.part, &order)?;
            Some(Arc::new(LivePart { part: row.part, rule: row.rule, span: row.span, order }))
        };
        let mut periods = board.periods_mut();
        let Some(state) = periods.rule_mut(row.rule) else { continue };
        match live {
            Some(live) => state.live.push(live),
            None => state.closed.push(row),
        }
        state.live.sort_by_key(|live| live.span.start);
        state.closed.sort_by_key(|row| row.span.start);
    }
    keeper::close_board(store, &board, now)?;
    keeper::refresh(store, &board, |row| row.stale)?;
    Ok(board)
}
