//! The scheduler of periods: it closes what is due, archives its ranking, and deletes the oldest.
//!
//! The lanes decide by the clock whether a period takes scores. The scheduler ends it while it holds the lanes, so no score is
//! added while it writes. If a ban or an erasure changes the ranking meanwhile, it writes again. Until the archive is in force
//! the period is read from memory.

use super::archive::{self, ArchivePlace, Basis, Naming, Written};
use super::scan::Readers;
use super::{LiveWindow, RuleState, catch_up, prizes, shared_close};
use crate::background::{Job, Next};
use crate::boards::Board;
use crate::failure::Failure;
use crate::servers;
use crate::tally::Tally;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tally_ranking::MemoryRanking;
use tally_rules::Micros;
use tally_store::{Store, StoreError, Task, Window, WindowRow};

/// The pause between two rounds.
const ROUND_PAUSE: Duration = Duration::from_millis(200);
/// Rounds between two removals of tombstones from rankings in Redis: every ten minutes.
const PURGE_EVERY: u32 = 3_000;
/// How many milliseconds the scheduler waits for readers of a period in memory.
const LEAVE_TRIES: u32 = 1_000;
/// The rest after writing archives again, in multiples of the time it took.
const RESTS: u32 = 9;
/// Every so many rounds, rankings that seem exact are checked too.
const EVERYWHERE_EVERY: u32 = 10;

/// Starts the background task.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    let mut rounds = 0_u32;
    let mut closing = Job::new("close periods", Duration::ZERO);
    // During an import there is always something to write.
    let mut refreshing = Job::resting("rewrite archives of closed periods", RESTS);
    let mut catching_up = Job::new("apply stored changes to rankings", Duration::ZERO);
    tally.tasks.periods.start("periods", tally, Next::After(ROUND_PAUSE), move |tally| {
        closing.run(|| close_due(tally));
        refreshing.run(|| refresh_due(tally));
        rounds = rounds.wrapping_add(1);
        if catch_up::are_in_redis(tally) {
            catching_up.run(|| catch_up::catch_up(tally, rounds.is_multiple_of(EVERYWHERE_EVERY)));
            if rounds.is_multiple_of(PURGE_EVERY) && tally.trusted_now().is_some() {
                catch_up::purge(tally);
            }
        }
        Next::After(ROUND_PAUSE)
    })
}

/// Closes every period that is due now, oldest first. Blocks. A failure on one board keeps no other from it.
pub fn close_due(tally: &Tally) -> Result<(), Failure> {
    tally.remember_clock()?;
    let boards = tally.boards.list(None, usize::MAX);
    boards.iter().map(|board| close_due_of(tally, board)).fold(Ok(()), Result::and)
}

/// The same for one board. If another server has the task lease, that one does it.
pub(super) fn close_due_of(tally: &Tally, board: &Board) -> Result<(), Failure> {
    // A close is irreversible, so a clock in doubt closes nothing.
    let Some(now) = tally.trusted_now() else { return Ok(()) };
    if board.is_shared() {
        return shared_close::close_due(tally, board, now);
    }
    let windows = if late(board, now).is_empty() {
        Vec::new()
    } else {
        // Every batch is decided and published before it or after it.
        let _held = tally.lane.hold()?;
        // Waiting takes time, in which the clock may jump.
        tally.trusted_now().map_or_else(Vec::new, |now| seal(board, now))
    };
    if windows.is_empty() && surplus(board).is_empty() {
        return Ok(());
    }
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    close(ArchivePlace::of(tally), board, &windows, now)
}

/// Periods in memory that take no more scores, oldest first.
pub(super) fn late(board: &Board, now: Micros) -> Vec<Arc<LiveWindow>> {
    let periods = board.periods();
    let of_rule = |state: &RuleState| {
        state.live.iter().filter(|live| !state.takes(live.span, now)).cloned().collect::<Vec<_>>()
    };
    let mut late: Vec<_> = periods.rules.iter().flat_map(of_rule).collect();
    late.sort_unstable_by_key(|live| (live.span.end, live.window));
    late
}

/// Closes what is due on one board that is not served yet.
pub(crate) fn close_board(store: &dyn Store, board: &Board, now: Micros) -> Result<(), Failure> {
    let windows = seal(board, now);
    close(ArchivePlace { store, lanes: None }, board, &windows, now)
}

/// Periods in memory that take no more scores, oldest first. From now on nothing opens them again: neither a clock that
/// is set back nor a longer grace.
fn seal(board: &Board, now: Micros) -> Vec<Window> {
    let late = late(board, now);
    if late.is_empty() {
        return Vec::new();
    }
    let mut periods = board.periods_mut();
    for live in &late {
        let Some(state) = periods.rule_mut(live.rule) else { continue };
        if state.closed(live.span).is_none() {
            state.closed.push(live.row(true));
            state.closed.sort_by_key(|row| row.span.start);
        }
    }
    late.into_iter().map(|live| live.window).collect()
}

/// Archives sealed periods and takes them out of memory. Nothing else may change closed periods meanwhile.
pub(super) fn close(
    place: ArchivePlace<'_>,
    board: &Board,
    windows: &[Window],
    now: Micros,
) -> Result<(), Failure> {
    let store = place.store;
    for window in windows {
        let basis = Basis::of(board, *window);
        let Some(live) = board.periods().live(*window).cloned() else { continue };
        let follows = |state: &RuleState| state.calendar_follows(live.span);
        let keep_empty = board.periods().rule_no(live.rule).is_some_and(|state| !follows(state));
        let written = archive::in_memory(store, board, &live, |ranking| {
            let row = live.row(true);
            let naming = Naming::of(board, &row, now);
            archive::write(place, basis, (&row, naming), ranking, keep_empty)
        })?;
        board.live.wake();
        let Written::Closed(closed, held) = written else {
            // A player was banned or erased meanwhile. The period is read from memory until the next round.
            continue;
        };
        if board.is_shared() {
            servers::renew(store, board)?;
            live.ranking.forget();
            continue;
        }
        let mut purged = true;
        if let Some(state) = board.periods_mut().rule_mut(live.rule) {
            state.live.retain(|live| live.window != *window);
            state.replace_closed(*window, closed);
            purged = false;
        }
        drop(held);
        leave(live);
        if purged {
            // Its rule was removed while this was written.
            archive::forget(store, board.no, &[*window])?;
        }
    }
    forget_oldest(place, board)
}

/// Frees the ranking of a period that is archived by now, here and not on the thread of a request: a large one takes a while.
fn leave(live: Arc<LiveWindow>) {
    for _ in 0..LEAVE_TRIES {
        if Arc::strong_count(&live) == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(live);
    tally_memory::give_back();
}

/// Closed periods beyond those that are kept. Ones without players count separately. Lists leave them out, but they exist
/// because a player may be restored or because they have the start of the next one.
pub(super) fn surplus(board: &Board) -> Vec<Window> {
    let mut surplus = Vec::new();
    for state in &board.periods().rules {
        let keep = state.rule.keep;
        let (mut filled, mut empty) = (keep, keep.max(1));
        for row in state.closed.iter().rev().filter(|row| row.version > 0) {
            let left = if row.total > 0 { &mut filled } else { &mut empty };
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => surplus.push(row.window),
            }
        }
    }
    surplus
}

/// Forgets closed periods beyond those that are kept.
fn forget_oldest(place: ArchivePlace<'_>, board: &Board) -> Result<(), Failure> {
    let store = place.store;
    let mut surplus = surplus(board);
    let owed: Vec<(RuleState, WindowRow)> = {
        let periods = board.periods();
        let of = |window: &Window| {
            let row = *periods.closed(*window)?;
            Some((periods.rule_no(row.rule)?.clone(), row))
        };
        surplus.iter().filter_map(of).filter(|(state, row)| prizes::has_prizes(state, row)).collect()
    };
    for (state, row) in owed {
        // Its prizes must be paid first.
        if prizes::is_unpaid(store, board, &state, &row)? {
            surplus.retain(|window| *window != row.window);
        }
    }
    if surplus.is_empty() {
        return Ok(());
    }
    // No batch may depend on a deleted row: it would restore the period.
    let _held = place.hold(board.is_shared())?;
    archive::forget(store, board.no, &surplus)?;
    if board.is_shared() {
        return servers::renew(store, board).map(drop);
    }
    for state in &mut board.periods_mut().rules {
        state.closed.retain(|row| !surplus.contains(&row.window));
    }
    surplus.into_iter().for_each(|window| board.stale.forget(window));
    Ok(())
}

/// Writes every archive again that is older than its records. Blocks.
pub fn refresh_due(tally: &Tally) -> Result<(), Failure> {
    let boards = tally.boards.list(None, usize::MAX);
    boards.iter().map(|board| refresh_due_of(tally, board)).fold(Ok(()), Result::and)
}

/// The same for one board. If another server has the task lease, that one does it.
pub(super) fn refresh_due_of(tally: &Tally, board: &Board) -> Result<(), Failure> {
    if board.periods().stale().is_empty() {
        return Ok(());
    }
    if board.is_shared() && !tally.store.lease_task(Task::Periods, shared_close::LEASE)? {
        return Ok(());
    }
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    refresh(ArchivePlace::of(tally), board, tally.now())
}

/// Makes a change of records of closed periods, and writes their archives again before the change is acknowledged.
///
/// No archive is written between the decision of the change and its commit. If an archive cannot be written now, the change is
/// acknowledged all the same, because it is committed. The archive is not read until the scheduler has written it. Blocks.
pub(crate) fn with_closed<T>(
    tally: &Tally,
    boards: &[Arc<Board>],
    change: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    let done = change()?;
    for board in boards {
        refresh_acknowledged(tally, board);
    }
    Ok(done)
}

/// The same for an import that is complete. Blocks.
pub(crate) fn end_import(tally: &Tally, board: &Board) {
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    refresh_acknowledged(tally, board);
    // The scheduler does it as well.
    drop(forget_oldest(ArchivePlace::of(tally), board));
}

/// Writes archives again that are older than acknowledged changes.
fn refresh_acknowledged(tally: &Tally, board: &Board) {
    if let Err(failure) = refresh(ArchivePlace::of(tally), board, tally.now())
        && board.stale.set_lagging(true)
    {
        let board = board.id.as_str();
        tracing::warn!(board, %failure, "closed periods are not read until their archives are rewritten");
    }
}

/// Writes the archive of every closed period again that is older than its records. If other servers change the board
/// meanwhile, it is repeated on the new state.
pub(crate) fn refresh(place: ArchivePlace<'_>, board: &Board, now: Micros) -> Result<(), Failure> {
    let windows = board.periods().stale();
    for window in windows {
        let mut tries = 1;
        while !refresh_window(place, board, window, now)? {
            if tries == servers::ATTEMPTS_MAX {
                let why = "a board is changed all the time while the archive of a closed period is written";
                return Err(StoreError::Conflict(why.into()).into());
            }
            std::thread::sleep(tally_lanes::backoff(tries));
            tries += 1;
        }
        tally_memory::give_back();
    }
    board.stale.set_lagging(false);
    Ok(())
}

/// Writes one of them; whether no other server changed the board meanwhile.
fn refresh_window(
    place: ArchivePlace<'_>,
    board: &Board,
    window: Window,
    now: Micros,
) -> Result<bool, Failure> {
    let (store, basis) = (place.store, Basis::of(board, window));
    let found = {
        let periods = board.periods();
        let row = periods.closed(window).copied();
        let state = row.and_then(|row| periods.rule_no(row.rule));
        row.zip(state).map(|(row, state)| (row, !state.calendar_follows(row.span)))
    };
    let Some((row, keep_empty)) = found else { return Ok(true) };
    let fresh = MemoryRanking::new(&board.definition);
    archive::load(store, board, window, &fresh, Readers::Few, |_| {})?;
    let naming = Naming::of(board, &row, now);
    let written = archive::write(place, basis, (&row, naming), &fresh, keep_empty)?;
    board.live.wake();
    if board.is_shared() {
        servers::renew(store, board)?;
    }
    let Written::Closed(written, _held) = written else { return Ok(false) };
    if !board.is_shared()
        && let Some(state) = board.periods_mut().rule_mut(row.rule)
    {
        state.replace_closed(window, written);
    }
    Ok(true)
}
