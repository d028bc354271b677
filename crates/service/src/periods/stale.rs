//! Closed periods whose stored order is older than their records.
//!
//! A batch that changes records of a closed period stores a mark with the change; writing the order anew takes the mark off.
//! The mark alone cannot tell a change before the order was read from one after it, so the lanes count the batches of each
//! period in memory, and the writer compares. Other servers are kept off by the revision of the board, and a start by nobody
//! serving yet, so the count need not be stored. Not here: writing orders ([`keeper`](super::keeper)).

use crate::boards::Board;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tally_store::{BoardNo, Window, WindowRow, WriteSet};

/// What this server knows of them, of one board.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    /// How many batches have changed records of a period that is marked.
    batches: Mutex<BTreeMap<Window, u64>>,
    /// Whether an order lacks a change that may be acknowledged.
    is_behind: AtomicBool,
}

impl Stale {
    /// The marks among some changes.
    pub(crate) fn of(changes: &WriteSet) -> Vec<(BoardNo, WindowRow)> {
        let marked = changes.windows.iter().filter_map(|(key, row)| Some((key.board, (*row)?)));
        marked.filter(|(_, row)| row.stale).collect()
    }

    /// Makes those of a board known that were committed. What else is known of a period stays: its order may have been
    /// written meanwhile.
    pub(crate) fn mark(board: &Board, rows: &[(BoardNo, WindowRow)]) {
        for (_, row) in rows.iter().filter(|(no, _)| *no == board.no) {
            let mut periods = board.periods_mut();
            let Some(state) = periods.rule_mut(row.rule) else { continue };
            *board.stale.batches().entry(row.window).or_default() += 1;
            match state.closed.iter_mut().find(|known| known.window == row.window) {
                Some(known) => known.stale = true,
                None => {
                    state.closed.push(*row);
                    state.closed.sort_by_key(|row| row.span.start);
                }
            }
        }
    }

    /// How many batches have changed records of a period.
    pub(crate) fn count(&self, window: Window) -> u64 {
        self.batches().get(&window).copied().unwrap_or_default()
    }

    /// The order of a period is exact, or the period is gone.
    pub(crate) fn forget(&self, window: Window) {
        self.batches().remove(&window);
    }

    /// Whether an order lacks a change that may be acknowledged: none that is marked is read then.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::SeqCst)
    }

    /// Says so, or that none does any more; whether that is new.
    pub(crate) fn set_behind(&self, is_behind: bool) -> bool {
        self.is_behind.swap(is_behind, Ordering::SeqCst) != is_behind
    }

    fn batches(&self) -> MutexGuard<'_, BTreeMap<Window, u64>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
