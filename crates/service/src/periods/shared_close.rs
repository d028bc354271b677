//! Closing what is due on a board that other servers write to: one of them does it, and first marks it as closed in the
//! store.
//!
//! Not here: what is due, and writing archives (`scheduler`).

use super::LiveWindow;
use super::archive::ArchivePlace;
use super::scheduler::{close, late, surplus};
use crate::boards::Board;
use crate::failure::Failure;
use crate::servers;
use crate::tally::Tally;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tally_rules::Micros;
use tally_store::{ReadSet, Store, Task, Window, WindowKey, WriteSet};

/// How long the server that closes periods keeps the task lease without a sign of it.
pub(super) const LEASE: Duration = Duration::from_secs(5);

/// Closes every period of a board that is due now. A close is a change of the board, so no batch that was planned before it
/// is written after it, whatever the clocks. The store has all its records then.
pub(super) fn close_due(tally: &Tally, board: &Board, now: Micros) -> Result<(), Failure> {
    let store = &*tally.store;
    if late(board, now).is_empty() && surplus(board).is_empty() {
        return Ok(());
    }
    if !store.lease_task(Task::Periods, LEASE)? {
        return Ok(());
    }
    let _one = tally.closing.lock().unwrap_or_else(PoisonError::into_inner);
    let windows = seal_stored(store, board, now)?;
    close(ArchivePlace::of(tally), board, &windows, now)
}

/// Marks due periods in the store as closed, and returns them, oldest first. A period that is closed here is closed on every
/// database. One that has missed it gets it when the board is read.
fn seal_stored(store: &dyn Store, board: &Board, now: Micros) -> Result<Vec<Window>, Failure> {
    for _ in 0..servers::ATTEMPTS_MAX {
        let revisions = board.shared_revisions();
        let due = late(board, now);
        let open = |live: &&Arc<LiveWindow>| board.periods().closed(live.window).is_none();
        let key = |live: &Arc<LiveWindow>| WindowKey { board: board.no, window: live.window };
        let mut rows: Vec<_> =
            due.iter().filter(open).map(|live| (key(live), Some(live.row(true)))).collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        if rows.is_empty() {
            return Ok(due.iter().map(|live| live.window).collect());
        }
        let plan = ReadSet { boards: vec![board.no], exclusive: true, ..ReadSet::default() };
        let revision = revisions.map(|revisions| revisions.of(0));
        servers::run(store, &plan, &mut |loaded| {
            let as_planned = loaded.boards[0].is_some() && loaded.boards[0] == revision;
            let windows = if as_planned { rows.clone() } else { Vec::new() };
            WriteSet { windows, ..WriteSet::default() }
        })?;
        servers::renew(store, board)?;
    }
    // Other servers change it too often: the next round tries again.
    Ok(Vec::new())
}
