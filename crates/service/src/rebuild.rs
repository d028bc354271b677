//! The rankings of a start: every leaderboard is scanned in key order and its trees are built at once.
//!
//! Nothing is inserted one at a time: a bulk load from sorted runs is several times faster and leaves full leaves. Periods
//! that ended while no server ran are closed here, in order, before the first request. A corrupt record is left out of its
//! ranking, and a leaderboard whose own rows are corrupt is unavailable; the start continues.

use crate::boards::{Board, Boards};
use crate::clock::ClockReading;
use crate::contests::play;
use crate::damaged;
use crate::failure::{Failure, Fault};
use crate::follow::Role;
use crate::footprint;
use crate::periods::archive::{self, ArchivePlace, LoadStep};
use crate::periods::scan::Readers;
use crate::periods::{catch_up, scheduler};
use crate::progress::Progress;
use crate::servers::{outbox, redis_claim};
use crate::settings::Settings;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tally_ranking::{RankingBackend, WindowRanking};
use tally_rules::{BoardId, Micros, Rejection};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardRef, BoardRow, CorruptRow, Store, StoreError, Window};

/// Threads that load into Redis: each waits for a database or for Redis most of the time.
const LOADERS: usize = 4;

/// What a start needs to know.
pub struct Rebuilt {
    /// Every live leaderboard with its rankings.
    pub boards: Arc<Boards>,
    /// The newest instant found; later ones come after it.
    pub newest: Micros,
    /// What is known of the Redis of the rankings.
    pub(crate) claim: Option<redis_claim::Known>,
}

/// Loads every board.
pub fn rebuild(
    store: &dyn Store,
    settings: &Settings,
    time: ClockReading,
    progress: &Progress,
) -> Result<Rebuilt, Failure> {
    let rows = store.boards()?;
    progress.begin("loading", 0);
    let boards = Boards::default();
    for row in store.corrupt_rows().iter().filter(|row| row.table == "boards") {
        boards.set_damaged(&row.key);
    }
    let rebuilt = std::thread::scope(|scope| {
        if matches!(settings.ranking, RankingBackend::Memory) {
            // It comes first, because a process that loads more than fits is killed without a word. If it fails, so does the rest.
            if let Ok(total) = count(store, &rows) {
                progress.expect(total);
                footprint::check(total, settings.memory_max)?;
            }
        } else {
            // Counting takes seconds, and is for progress only. If it fails, so does the rest.
            scope.spawn(|| count(store, &rows).map(|total| progress.expect(total)));
        }
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
        // A leaderboard with corrupt ones is not loaded.
        for window in store.windows(row.no).unwrap_or_default().iter().filter(|window| !window.closed) {
            total += store.count_scores(row.no, window.window)?;
        }
    }
    Ok(total)
}

fn load_all(
    (store, settings): (&dyn Store, &Settings),
    boards: Boards,
    rows: &[BoardRow],
    time: ClockReading,
    progress: &Progress,
) -> Result<Rebuilt, Failure> {
    let (ranking, follows) = (&settings.ranking, matches!(settings.role, Role::Follows(_)));
    let newest = AtomicI64::new(i64::MIN);
    let mut claim = None;
    let start = match ranking {
        RankingBackend::Memory => None,
        RankingBackend::Redis(redis) => {
            claim = Some(redis_claim::take(store, redis, settings.waits_for_ranking, progress)?);
            Some(catch_up::Start::new(store)?)
        }
    };
    let retry_while_unavailable = |attempt: &mut dyn FnMut() -> Result<Option<Arc<Board>>, Failure>| {
        if settings.waits_for_ranking {
            catch_up::retry_while_unavailable(progress, attempt)
        } else {
            attempt()
        }
    };
    let each = |row: &BoardRow| {
        let mut latest = row.created_at;
        let board = match &start {
            None => load((store, ranking, follows), row.clone(), time, &mut latest, progress)
                .map(|board| Some(Arc::new(board))),
            Some(start) => retry_while_unavailable(&mut || {
                join((store, ranking), (row.clone(), time.now), start, progress)
            }),
        };
        newest.fetch_max(latest.0, Ordering::Relaxed);
        put(&boards, &row.id, board)
    };
    // A load into memory uses all processors for each leaderboard. One into Redis mostly waits.
    if start.is_some() {
        on_threads(rows, each)?
    } else {
        rows.iter().try_for_each(each)?
    }
    // The server before may have been killed between its last commit and its publication.
    start.map_or(Ok(()), catch_up::Start::end)?;
    retry_while_unavailable(&mut || outbox::republish(store, &boards, Duration::ZERO).map(|_| None))?;
    Ok(Rebuilt { boards: Arc::new(boards), newest: Micros(newest.into_inner()), claim })
}

/// Does this for each row on a few threads, until the first failure.
fn on_threads(
    rows: &[BoardRow],
    each: impl Fn(&BoardRow) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let rest = Mutex::new(rows.iter());
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || {
        while let Some(row) = next() {
            each(row).inspect_err(|_| while next().is_some() {})?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..LOADERS).map(|_| scope.spawn(worker)).collect();
        running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Puts a board that was loaded, if it still exists. One that is corrupt is unavailable, and no reason to fail.
pub(crate) fn put(
    boards: &Boards,
    name: &BoardId,
    loaded: Result<Option<Arc<Board>>, Failure>,
) -> Result<(), Failure> {
    match loaded {
        Ok(board) => board.into_iter().for_each(|board| drop(boards.set(name, Some(board)))),
        // Something that belongs to this board alone.
        Err(Failure::Fault(Fault::Damaged(bad))) => {
            damaged::log(&bad);
            boards.set_damaged(name.as_str());
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// Loads one board.
pub(crate) fn load(
    (store, ranking, follows): (&dyn Store, &RankingBackend, bool),
    row: BoardRow,
    ClockReading { now, doubt }: ClockReading,
    newest: &mut Micros,
    progress: &Progress,
) -> Result<Board, Failure> {
    let banned = store.bans(row.no)?;
    let key = row.id.as_str().to_owned();
    let bad = |rejection: Rejection| {
        Fault::Damaged(Box::new(CorruptRow { table: "boards", key, what: rejection.detail() }))
    };
    let board = Board::new(row, banned, ranking).map_err(bad)?;
    play::load(store, &board)?;
    let rows = store.windows(board.no)?;
    board.periods_mut().place(&rows, |_| None, |row| board.new_ranking(row.window));
    let mut fill = |window: Window, ranking: &WindowRanking| {
        archive::fill(store, &board, window, ranking, Readers::All, |step| match step {
            LoadStep::Read { newest: at, rows } => {
                *newest = (*newest).max(at);
                progress.add(rows);
            }
            LoadStep::Placed { placed, of } => progress.build(placed, of),
        })
    };
    fill(ALL_TIME, &board.ranking)?;
    for live in board.live() {
        fill(live.window, &live.ranking)?;
    }
    if follows {
        return Ok(board);
    }
    if doubt.is_none() {
        scheduler::close_board(store, &board, now)?;
    }
    scheduler::refresh(ArchivePlace { store, lanes: None }, &board, now)?;
    Ok(board)
}

/// A leaderboard that other servers serve as well: only what is missing is loaded, and the server with the task lease closes
/// periods.
fn join(
    (store, ranking): (&dyn Store, &RankingBackend),
    (row, now): (BoardRow, Micros),
    start: &catch_up::Start<'_>,
    progress: &Progress,
) -> Result<Option<Arc<Board>>, Failure> {
    let key = row.id.as_str().to_owned();
    let bad = |rejection: Rejection| {
        Fault::Damaged(Box::new(CorruptRow { table: "boards", key: key.clone(), what: rejection.detail() }))
    };
    let Some(state) = store.board(BoardRef::No(row.no), None)? else { return Ok(None) };
    let board = Arc::new(Board::new(row, Vec::new(), ranking).map_err(bad)?);
    board.renew(&state).map_err(bad)?;
    play::load(store, &board)?;
    start.load(&board, |rows| progress.add(rows))?;
    scheduler::refresh(ArchivePlace { store, lanes: None }, &board, now)?;
    Ok(Some(board))
}
