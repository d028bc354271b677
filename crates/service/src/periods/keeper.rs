//! Closing what is due: a period's order goes from memory into blocks, and the oldest are forgotten.
//!
//! Whether a period takes scores is decided by the clock in the lanes. The keeper ends it while it holds the lanes, so no
//! score comes in while it writes; where hiding or erasing changes the order meanwhile, it writes
//! again. Until the blocks are in force the period is read from memory.

use super::order::{self, Basis, Naming, Place, Written};
use super::walk::Readers;
use super::{LivePart, RuleState, behind, prizes, shared};
use crate::background::Background;
use crate::boards::Board;
use crate::failure::Failure;
use crate::servers;
use crate::tally::Tally;
use crate::trial::Trial;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};
use tally_ranking::MemoryRanking;
use tally_rules::Micros;
use tally_store::{Part, PartRow, Store, StoreError, Task};

/// Between two looks at the clock.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// Every so many looks, those who went long ago are forgotten where orders are kept elsewhere: every ten minutes.
const PURGE_EVERY: u32 = 3_000;
/// How many milliseconds whoever closes a period waits for those who read it from memory.
const LEAVE_TRIES: u32 = 1_000;
/// How many times as long as it took to write closed periods anew it waits before it looks for others.
const RESTS: u32 = 9;
/// Every so many looks, orders that seem right are looked at too.
const LOOK_EVERYWHERE: u32 = 10;

/// The thread that closes periods.
#[derive(Default)]
pub struct Keeper {
    thread: Background,
}

impl Keeper {
    /// Starts the thread; it ends when the service does.
    pub(crate) fn start(&self, tally: Weak<Tally>) -> std::io::Result<()> {
        self.thread.start("periods", move |stopped| run(&tally, &stopped))
    }

    /// Ends after the period being closed.
    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}

fn run(tally: &Weak<Tally>, stopped: &Receiver<()>) {
    let mut looks = 0_u32;
    let (mut closing, mut catching_up) =
        (Trial::new("close periods"), Trial::new("bring ranks to what is stored"));
    let (mut refreshing, mut rested) = (Trial::new("write closed periods anew"), Instant::now());
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK_PAUSE) {
        let Some(tally) = tally.upgrade() else { return };
        if closing.is_due(Instant::now()) {
            closing.note(Instant::now(), close_due(&tally).err().as_ref());
        }
        let began = Instant::now();
        if refreshing.is_due(began) && began >= rested {
            let done = refresh_due(&tally);
            if done.is_ok() {
                // While an import goes on there is always something to write.
                rested = Instant::now() + began.elapsed() * RESTS;
            }
            refreshing.note(Instant::now(), done.err().as_ref());
        }
        looks += 1;
        if !behind::are_elsewhere(&tally) {
            continue;
        }
        if catching_up.is_due(Instant::now()) {
            let done = behind::catch_up(&tally, looks.is_multiple_of(LOOK_EVERYWHERE));
            catching_up.note(Instant::now(), done.err().as_ref());
        }
        if looks.is_multiple_of(PURGE_EVERY) && tally.believed_now().is_some() {
            behind::purge(&tally);
        }
    }
}

/// Closes every period that is due now, oldest first. Blocks. What fails on one board keeps no other from it.
pub fn close_due(tally: &Tally) -> Result<(), Failure> {
    tally.remember_clock()?;
    let boards = tally.boards.list(None, usize::MAX);
    boards.iter().map(|board| close_due_of(tally, board)).fold(Ok(()), Result::and)
}

/// The same of one board. Where another server has the turn, that one does it.
pub(super) fn close_due_of(tally: &Tally, board: &Board) -> Result<(), Failure> {
    // What is closed stays closed, so a clock in doubt closes nothing.
    let Some(now) = tally.believed_now() else { return Ok(()) };
    if board.is_shared() {
        return shared::close_due(tally, board, now);
    }
    let parts = if late(board, now).is_empty() {
        Vec::new()
    } else {
        // Every batch is decided and published before it, or comes after it.
        let _held = tally.lane.hold()?;
        // Waiting takes time, in which the clock may jump.
        tally.believed_now().map_or_else(Vec::new, |now| seal(board, now))
    };
    if parts.is_empty() && surplus(board).is_empty() {
        return Ok(());
    }
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    close(Place::of(tally), board, &parts, now)
}

/// Periods in memory that take no more scores, oldest first.
pub(super) fn late(board: &Board, now: Micros) -> Vec<Arc<LivePart>> {
    let periods = board.periods();
    let of_rule = |state: &RuleState| {
        state.live.iter().filter(|live| !state.takes(live.span, now)).cloned().collect::<Vec<_>>()
    };
    let mut late: Vec<_> = periods.rules.iter().flat_map(of_rule).collect();
    late.sort_unstable_by_key(|live| (live.span.end, live.part));
    late
}

/// Closes what is due on one board that nobody serves yet.
pub(crate) fn close_board(store: &dyn Store, board: &Board, now: Micros) -> Result<(), Failure> {
    let parts = seal(board, now);
    close(Place { store, lanes: None }, board, &parts, now)
}

/// Periods in memory that take no more scores, oldest first. From now on nothing opens them again: neither a clock that
/// is set back nor a longer grace.
fn seal(board: &Board, now: Micros) -> Vec<Part> {
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
    late.into_iter().map(|live| live.part).collect()
}

/// Stores the orders of sealed periods and takes them out of memory. Nothing else may change closed periods meanwhile.
pub(super) fn close(place: Place<'_>, board: &Board, parts: &[Part], now: Micros) -> Result<(), Failure> {
    let store = place.store;
    for part in parts {
        let basis = Basis::of(board, *part);
        let Some(live) = board.periods().live(*part).cloned() else { continue };
        let follows = |state: &RuleState| state.calendar_follows(live.span);
        let keep_empty = board.periods().rule_no(live.rule).is_some_and(|state| !follows(state));
        let written = order::in_memory(store, board, &live, |order| {
            let row = live.row(true);
            let naming = Naming::of(board, &row, now);
            order::write(place, basis, (&row, naming), order, keep_empty)
        })?;
        board.live.wake();
        let Written::Closed(closed, held) = written else {
            // Somebody was hidden or erased meanwhile. It is read from memory until the next look.
            continue;
        };
        if board.is_shared() {
            servers::renew(store, board)?;
            live.order.forget();
            continue;
        }
        let mut gone = true;
        if let Some(state) = board.periods_mut().rule_mut(live.rule) {
            state.live.retain(|live| live.part != *part);
            state.replace_closed(*part, closed);
            gone = false;
        }
        drop(held);
        leave(live);
        if gone {
            // Its rule was removed while this was written.
            order::forget(store, board.no, &[*part])?;
        }
    }
    forget_oldest(place, board)
}

/// Frees the order of a period that is read from the store from now on, here and not where somebody still reads it: a large one takes
/// a while to take apart.
fn leave(live: Arc<LivePart>) {
    for _ in 0..LEAVE_TRIES {
        if Arc::strong_count(&live) == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(live);
    tally_memory::give_back();
}

/// Closed periods beyond those that are kept. Ones without players are counted apart: they are hidden from lists, and
/// are there because a player may be shown again or because they say where the next one begins.
pub(super) fn surplus(board: &Board) -> Vec<Part> {
    let mut gone = Vec::new();
    for state in &board.periods().rules {
        let keep = state.rule.keep;
        let (mut filled, mut empty) = (keep, keep.max(1));
        for row in state.closed.iter().rev().filter(|row| row.version > 0) {
            let left = if row.total > 0 { &mut filled } else { &mut empty };
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => gone.push(row.part),
            }
        }
    }
    gone
}

/// Forgets closed periods beyond those that are kept.
fn forget_oldest(place: Place<'_>, board: &Board) -> Result<(), Failure> {
    let store = place.store;
    let mut gone = surplus(board);
    let owed: Vec<(RuleState, PartRow)> = {
        let periods = board.periods();
        let of = |part: &Part| {
            let row = *periods.closed(*part)?;
            Some((periods.rule_no(row.rule)?.clone(), row))
        };
        gone.iter().filter_map(of).filter(|(state, row)| prizes::has_prizes(state, row)).collect()
    };
    for (state, row) in owed {
        // Its prizes come first.
        if prizes::is_unpaid(store, board, &state, &row)? {
            gone.retain(|part| *part != row.part);
        }
    }
    if gone.is_empty() {
        return Ok(());
    }
    // No batch may stand on a row that is there no more: it would bring the period back.
    let _held = place.hold(board.is_shared())?;
    order::forget(store, board.no, &gone)?;
    if board.is_shared() {
        return servers::renew(store, board).map(drop);
    }
    for state in &mut board.periods_mut().rules {
        state.closed.retain(|row| !gone.contains(&row.part));
    }
    gone.into_iter().for_each(|part| board.stale.forget(part));
    Ok(())
}

/// Writes every order anew that is older than its records. Blocks.
pub fn refresh_due(tally: &Tally) -> Result<(), Failure> {
    let boards = tally.boards.list(None, usize::MAX);
    boards.iter().map(|board| refresh_due_of(tally, board)).fold(Ok(()), Result::and)
}

/// The same of one board. Where another server has the turn, that one does it.
pub(super) fn refresh_due_of(tally: &Tally, board: &Board) -> Result<(), Failure> {
    if board.periods().stale().is_empty() {
        return Ok(());
    }
    if board.is_shared() && !tally.store.take_turn(Task::Periods, shared::TURN)? {
        return Ok(());
    }
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    refresh(Place::of(tally), board, tally.now())
}

/// Makes a change of records of closed periods, and writes their orders anew before the change is acknowledged.
///
/// No order is written between the decision of the change and its commit. An order that cannot be written now leaves the
/// change acknowledged, because it is committed: the order is not read until the scheduler has written it. Blocks.
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

/// The same of an import that has come to its end. Blocks.
pub(crate) fn end_import(tally: &Tally, board: &Board) {
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    refresh_acknowledged(tally, board);
    // The scheduler looks for them as well.
    drop(forget_oldest(Place::of(tally), board));
}

/// Writes orders anew that are older than acknowledged changes.
fn refresh_acknowledged(tally: &Tally, board: &Board) {
    if let Err(failure) = refresh(Place::of(tally), board, tally.now())
        && board.stale.set_behind(true)
    {
        let board = board.id.as_str();
        tracing::warn!(board, %failure, "closed periods are not read until their orders are written anew");
    }
}

/// Writes the order of every closed period anew that is older than its records. Where other servers change the board
/// meanwhile, it is done again on what they left.
pub(crate) fn refresh(place: Place<'_>, board: &Board, now: Micros) -> Result<(), Failure> {
    let parts = board.periods().stale();
    for part in parts {
        let mut tries = 1;
        while !refresh_part(place, board, part, now)? {
            if tries == servers::TRIES {
                let why = "a board is changed all the time while the order of a closed period is written";
                return Err(StoreError::Conflict(why.into()).into());
            }
            std::thread::sleep(tally_lanes::backoff(tries));
            tries += 1;
        }
        tally_memory::give_back();
    }
    board.stale.set_behind(false);
    Ok(())
}

/// Writes one of them; whether no other server changed the board meanwhile.
fn refresh_part(place: Place<'_>, board: &Board, part: Part, now: Micros) -> Result<bool, Failure> {
    let (store, basis) = (place.store, Basis::of(board, part));
    let found = {
        let periods = board.periods();
        let row = periods.closed(part).copied();
        let state = row.and_then(|row| periods.rule_no(row.rule));
        row.zip(state).map(|(row, state)| (row, !state.calendar_follows(row.span)))
    };
    let Some((row, keep_empty)) = found else { return Ok(true) };
    let fresh = MemoryRanking::new(&board.definition);
    order::load(store, board, part, &fresh, Readers::Few, |_| {})?;
    let naming = Naming::of(board, &row, now);
    let written = order::write(place, basis, (&row, naming), &fresh, keep_empty)?;
    board.live.wake();
    if board.is_shared() {
        servers::renew(store, board)?;
    }
    let Written::Closed(written, _held) = written else { return Ok(false) };
    if !board.is_shared()
        && let Some(state) = board.periods_mut().rule_mut(row.rule)
    {
        state.replace_closed(part, written);
    }
    Ok(true)
}
