//! Corrupt rows: logged once each, and not taken for missing rows.
//!
//! The store records rows that it cannot read and leaves them out of lists. This is how the service handles them. Not here:
//! the response to a request whose row is corrupt, which is [`Fault::Damaged`](crate::Fault::Damaged).

use crate::boards::Board;
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use tally_rules::PlayerId;
use tally_store::{BoardNo, ScoreKey, Store, Window};
pub use tally_store::{CorruptRow, Listing};

/// Rows that are remembered as logged. More are not logged.
const LOGGED_MAX: usize = 10_000;

static LOGGED: Mutex<BTreeSet<(&'static str, String)>> = Mutex::new(BTreeSet::new());

/// Logs a corrupt row, unless this process has logged it.
pub fn log(row: &CorruptRow) {
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < LOGGED_MAX && logged.insert((row.table, row.key.clone())) {
        tracing::error!(table = row.table, row = %row.key, what = %row.what, "a stored row is damaged");
    }
}

/// Logs every corrupt row that the store has met.
pub(crate) fn log_all(store: &dyn Store) {
    if store.corrupt_row_count() > 0 {
        store.corrupt_rows().iter().for_each(log);
    }
}

/// The key of a player's record, if it is noted as corrupt. Its absence from the ranking means nothing then.
pub fn noted(
    store: &dyn Store,
    board: &Board,
    window: Option<Window>,
    player: &PlayerId,
) -> Option<ScoreKey> {
    let window = window.filter(|_| store.corrupt_row_count() > 0)?;
    let key = ScoreKey { board: board.no, window, player: player.clone() };
    store.is_corrupt(&key).then_some(key)
}

/// Reads such a record once more: it may have been repaired. Blocks on the store.
pub fn check(store: &dyn Store, key: ScoreKey) -> Result<(), Failure> {
    store.records(&[key])?;
    Ok(())
}

/// Whether a window has corrupt records.
pub(crate) fn has_records(store: &dyn Store, board: BoardNo, window: Window) -> bool {
    let of_window = format!("{}/{}/", board.0, window.0);
    let is_of_window = |row: &CorruptRow| row.table == "scores" && row.key.starts_with(&of_window);
    store.corrupt_row_count() > 0 && store.corrupt_rows().iter().any(is_of_window)
}
