//! Closed periods whose archive is older than their records.
//!
//! A batch that changes records of a closed period stores a mark with the change; writing the archive again clears the mark.
//! The mark alone does not show whether a change came before the read of the records or after it. So the lanes count the
//! batches of each period in memory, and the writer compares. The revision of the board keeps other servers off, and no request
//! is served during a start, so the count need not be stored. Not here: writing archives ([`archive`](super::archive)).

use crate::boards::Board;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tally_store::{BoardNo, Window, WindowRow, WriteSet};

/// The outdated archives of one board, on this server.
#[derive(Debug, Default)]
pub(crate) struct OutdatedArchives {
    /// How many batches have changed records of a period that is marked.
    batches: Mutex<BTreeMap<Window, u64>>,
    /// Whether an archive lacks a change that may be acknowledged.
    is_lagging: AtomicBool,
}

impl OutdatedArchives {
    /// The marks among some changes.
    pub(crate) fn of(changes: &WriteSet) -> Vec<(BoardNo, WindowRow)> {
        let marked = changes.windows.iter().filter_map(|(key, row)| Some((key.board, (*row)?)));
        marked.filter(|(_, row)| row.stale).collect()
    }

    /// Notes the marks of a board that were committed. Other fields of a period stay: its archive may have been written
    /// meanwhile.
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

    /// The archive of a period is exact, or the period is forgotten.
    pub(crate) fn forget(&self, window: Window) {
        self.batches().remove(&window);
    }

    /// Whether an archive lacks a change that may be acknowledged: then none that is marked is read.
    pub(crate) fn is_lagging(&self) -> bool {
        self.is_lagging.load(Ordering::SeqCst)
    }

    /// Sets that; whether it is new.
    pub(crate) fn set_lagging(&self, is_lagging: bool) -> bool {
        self.is_lagging.swap(is_lagging, Ordering::SeqCst) != is_lagging
    }

    fn batches(&self) -> MutexGuard<'_, BTreeMap<Window, u64>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
