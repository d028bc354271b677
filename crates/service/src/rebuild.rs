//! From the store to exact ranks: every board is walked in key order and its trees built at once.
//!
//! Nothing is inserted one at a time: a build from sorted runs is several times faster and leaves full leaves. Periods
//! that ended while no server ran are closed here, in order, before anything is answered. A damaged record is left out of
//! its order, and a board whose own rows are damaged is unavailable; the start goes on.

use crate::boards::{Board, Boards};
use crate::clock::Judged;
use crate::contests::play;
use crate::damaged;
use crate::failure::{Failure, Fault};
use crate::periods::order::{self, Place, Step};
use crate::periods::walk::Readers;
use crate::periods::{behind, keeper};
use crate::progress::Progress;
use crate::servers::marks;
use crate::settings::Settings;
use std::sync::Arc;
use std::time::Duration;
use tally_ranking::{RankingBackend, WindowRanking};
use tally_rules::{Micros, Rejection};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardRow, DamagedRow, Name, Part, Store, StoreError};

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
    settings: &Settings,
    time: Judged,
    progress: &Progress,
) -> Result<Rebuilt, Failure> {
    let rows = store.boards()?;
    progress.begin("loading", 0);
    let boards = Boards::default();
    for row in store.damaged().iter().filter(|row| row.table == "boards") {
        boards.set_damaged(&row.key);
    }
    let rebuilt = std::thread::scope(|scope| {
        // Counting a hundred million rows takes seconds, and only whoever watches wants to know. Where it fails so does the rest.
        scope.spawn(|| count(store, &rows).map(|total| progress.expect(total)));
        load_all((store, settings), boards, &rows, time, progress)
    });
    tally_memory::give_back();
    damaged::log_all(store);
    rebuilt
}

/// How many rows there are to load.
fn count(store: &dyn Store, rows: &[BoardRow]) -> Result<u64, StoreError> {
    let mut total = 0;
    for row in rows {
        total += store.count_scores(row.no, ALL_TIME)?;
        // Where they are damaged the board is not loaded.
        for part in store.parts(row.no).unwrap_or_default().iter().filter(|part| !part.closed) {
            total += store.count_scores(row.no, part.part)?;
        }
    }
    Ok(total)
}

fn load_all(
    (store, settings): (&dyn Store, &Settings),
    boards: Boards,
    rows: &[BoardRow],
    time: Judged,
    progress: &Progress,
) -> Result<Rebuilt, Failure> {
    let ranking = &settings.ranking;
    let mut newest = Micros(i64::MIN);
    let mut start = match ranking {
        RankingBackend::Memory => None,
        RankingBackend::Redis(redis) => {
            if let Some(id) = store.id()? {
                redis.set_store(id);
            }
            Some(behind::Start::new(store)?)
        }
    };
    let patiently = |attempt: &mut dyn FnMut() -> Result<Option<Arc<Board>>, Failure>| {
        if settings.waits_for_ranking { behind::patiently(progress, attempt) } else { attempt() }
    };
    for row in rows {
        newest = newest.max(row.created_at);
        let board = match &mut start {
            None => load((store, ranking), row.clone(), time, &mut newest, progress)
                .map(|board| Some(Arc::new(board))),
            Some(start) => {
                patiently(&mut || join((store, ranking), (row.clone(), time.now), start, progress))
            }
        };
        match board {
            Ok(Some(board)) => drop(boards.set(&board.id.clone(), Some(board))),
            Ok(None) => {}
            // Something that belongs to this board alone.
            Err(Failure::Fault(Fault::Damaged(bad))) => {
                damaged::log(&bad);
                boards.set_damaged(row.id.as_str());
            }
            Err(failure) => return Err(failure),
        }
    }
    // Whoever was here before may have been killed between its last commit and its publication.
    start.map_or(Ok(()), behind::Start::end)?;
    patiently(&mut || marks::republish(store, &boards, Duration::ZERO).map(|_| None))?;
    Ok(Rebuilt { boards, newest })
}

fn load(
    (store, ranking): (&dyn Store, &RankingBackend),
    row: BoardRow,
    Judged { now, doubt }: Judged,
    newest: &mut Micros,
    progress: &Progress,
) -> Result<Board, Failure> {
    let hidden = store.bans(row.no)?;
    let key = row.id.as_str().to_owned();
    let bad = |rejection: Rejection| {
        Fault::Damaged(Box::new(DamagedRow { table: "boards", key, what: rejection.detail() }))
    };
    let board = Board::new(row, hidden, ranking).map_err(bad)?;
    play::learn(store, &board)?;
    let rows = store.parts(board.no)?;
    board.periods_mut().place(&rows, |_| None, |row| board.order_of_part(row.part));
    let mut fill = |part: Part, order: &WindowRanking| {
        order::fill(store, &board, part, order, Readers::All, |step| match step {
            Step::Read { newest: at, rows } => {
                *newest = (*newest).max(at);
                progress.add(rows);
            }
            Step::Placed { placed, of } => progress.build(placed, of),
        })
    };
    fill(ALL_TIME, &board.order)?;
    for live in board.live() {
        fill(live.part, &live.order)?;
    }
    if doubt.is_none() {
        keeper::close_board(store, &board, now)?;
    }
    keeper::refresh(Place { store, lanes: None }, &board, now)?;
    Ok(board)
}

/// A board that other servers serve as well: nothing is loaded that is there, and periods are closed by whose turn it is.
fn join(
    (store, ranking): (&dyn Store, &RankingBackend),
    (row, now): (BoardRow, Micros),
    start: &mut behind::Start<'_>,
    progress: &Progress,
) -> Result<Option<Arc<Board>>, Failure> {
    let key = row.id.as_str().to_owned();
    let bad = |rejection: Rejection| {
        Fault::Damaged(Box::new(DamagedRow { table: "boards", key: key.clone(), what: rejection.detail() }))
    };
    let Some(state) = store.board(Name::No(row.no), None)? else { return Ok(None) };
    let board = Arc::new(Board::new(row, Vec::new(), ranking).map_err(bad)?);
    board.renew(&state).map_err(bad)?;
    play::learn(store, &board)?;
    start.load(&board, |rows| progress.add(rows))?;
    keeper::refresh(Place { store, lanes: None }, &board, now)?;
    Ok(Some(board))
}
