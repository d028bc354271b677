//! Closing what is due: a period's order goes from memory into blocks, and the oldest are forgotten.
//!
//! Whether a period takes scores is decided by the clock in the lane. The keeper waits until the lane has passed the
//! boundary too, so nothing comes in while it writes. Until the blocks are in force the period is read from memory.

use super::order;
use crate::boards::Board;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tally_ranking::PartOrder;
use tally_rules::{Micros, PlayerId};
use tally_store::{Part, PartRow, ScoreKey, Store};

/// Between two looks at the clock.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// The thread that closes periods.
#[derive(Default)]
pub struct Keeper {
    thread: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Keeper {
    /// Starts the thread; it ends when the service does.
    pub(crate) fn start(&self, tally: Weak<Tally>) -> std::io::Result<()> {
        let (stop, stopped) = channel();
        let thread =
            std::thread::Builder::new().name("periods".into()).spawn(move || run(&tally, &stopped))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some((stop, thread));
        Ok(())
    }

    /// Ends after the period being closed.
    pub(crate) fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, thread)) = thread {
            drop(stop);
            if thread.join().is_err() {
                tracing::error!("the thread that closes periods panicked");
            }
        }
    }
}

fn run(tally: &Weak<Tally>, stopped: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK_PAUSE) {
        let Some(tally) = tally.upgrade() else { return };
        if let Err(failure) = close_due(&tally) {
            tracing::warn!(%failure, "close a period; it is tried again");
        }
    }
}

/// Closes every period that is due now, oldest first. Blocks.
pub fn close_due(tally: &Tally) -> Result<(), Failure> {
    let now = tally.now();
    for board in tally.boards.list(None, usize::MAX) {
        if due(&board, now).is_empty() {
            continue;
        }
        tally.lane.pass_fence()?;
        let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
        close_board(&*tally.store, &board, now)?;
    }
    Ok(())
}

/// Periods in memory that take no more scores, oldest first.
fn due(board: &Board, now: Micros) -> Vec<(Part, Micros)> {
    let periods = board.periods();
    let mut due: Vec<(Part, Micros)> = Vec::new();
    for state in &periods.rules {
        let late = state.live.iter().filter(|live| state.due(live.span) <= now);
        due.extend(late.map(|live| (live.part, live.span.end)));
    }
    due.sort_by_key(|(_, end)| *end);
    due
}

/// Closes what is due on one board. Nothing else may change its closed periods meanwhile.
pub(crate) fn close_board(store: &dyn Store, board: &Board, now: Micros) -> Result<(), Failure> {
    for (part, _) in due(board, now) {
        let Some(live) = board.periods().live(part).cloned() else { continue };
        let (rule, span) = (live.rule, live.span);
        let row = PartRow { part, rule, span, closed: false, version: 0, stale: false, total: 0 };
        let closed = order::write(store, board.no, &row, &live.order)?;
        let mut late = false;
        if let Some(state) = board.periods_mut().rule_mut(rule) {
            state.live.retain(|live| live.part != part);
            // An import of old lines has come in while this was written.
            late = state.closed.iter().any(|row| row.part == part);
            state.closed.retain(|row| row.part != part);
            state.closed.extend(closed.or(late.then_some(row)));
            state.closed.sort_by_key(|row| row.span.start);
        }
        if late {
            refresh(store, board, |row| row.part == part)?;
        }
        forget_oldest(store, board)?;
    }
    Ok(())
}

/// Forgets closed periods beyond those that are kept.
fn forget_oldest(store: &dyn Store, board: &Board) -> Result<(), Failure> {
    let mut gone = Vec::new();
    for state in &mut board.periods_mut().rules {
        let more = state.closed.len().saturating_sub(state.rule.keep as usize);
        gone.extend(state.closed.drain(..more).map(|row| row.part));
    }
    Ok(order::forget(store, board.no, &gone)?)
}

/// Writes anew the order of closed periods whose records an import has changed. Blocks.
pub fn refresh_stale(tally: &Tally, board: &Arc<Board>) -> Result<(), Failure> {
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    refresh(&*tally.store, board, |row| row.stale)?;
    forget_oldest(&*tally.store, board)
}

/// Writes anew the order of closed periods in which a player has a record. Blocks.
///
/// The lock comes first: a period that is being closed now is closed then, and is looked at too.
pub fn refresh_player(tally: &Tally, board: &Arc<Board>, player: &PlayerId) -> Result<(), Failure> {
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    let with = parts_of(&*tally.store, board, player)?;
    refresh(&*tally.store, board, |row| with.contains(&row.part))
}

/// Periods, closed or not, in which a player has a record. Blocks.
pub fn parts_of(store: &dyn Store, board: &Board, player: &PlayerId) -> Result<Vec<Part>, Failure> {
    let parts = board.periods().parts();
    let key = |part: &Part| ScoreKey { board: board.no, part: *part, player: player.clone() };
    let records = store.records(&parts.iter().map(key).collect::<Vec<_>>())?;
    Ok(parts.into_iter().zip(records).filter(|(_, record)| record.is_some()).map(|(part, _)| part).collect())
}

/// Writes anew the order of those of these periods that are closed by now. Blocks.
pub fn refresh_parts(tally: &Tally, board: &Arc<Board>, parts: &[Part]) -> Result<(), Failure> {
    if parts.is_empty() {
        return Ok(());
    }
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    refresh(&*tally.store, board, |row| parts.contains(&row.part))
}

/// Writes anew the order of the closed periods that are chosen.
pub(crate) fn refresh(
    store: &dyn Store,
    board: &Board,
    chosen: impl Fn(&PartRow) -> bool,
) -> Result<(), Failure> {
    let rows: Vec<PartRow> = board.periods().rules.iter().flat_map(|state| state.closed.clone()).collect();
    for row in rows.into_iter().filter(chosen) {
        let fresh = PartOrder::new(&board.definition);
        order::load(store, board, row.part, &fresh, |_, _| {})?;
        let written = order::write(store, board.no, &row, &fresh)?;
        if let Some(state) = board.periods_mut().rule_mut(row.rule) {
            state.closed.retain(|old| old.part != row.part);
            state.closed.extend(written);
            state.closed.sort_by_key(|row| row.span.start);
        }
    }
    Ok(())
}
