//! Refuses values that no table can hold, before anything is sent.
//!
//! The limits are those of the embedded store, so that rows can move between stores. Not here: lengths of names, which their
//! types check, and boards, which are checked against the stored ones.

use super::{imports, ledger, windows};
use crate::StoreError;
use crate::plan::{Garbage, Window, WriteSet};

/// Refuses changes that cannot be stored on any attempt.
pub(super) fn changes(changes: &WriteSet) -> Result<(), StoreError> {
    changes.scores.iter().try_for_each(|(key, _)| window(key.window))?;
    changes.imports.iter().try_for_each(|(_, row)| imports::check(row))?;
    changes.windows.iter().try_for_each(|(key, row)| windows::check(*key, row.as_ref()))?;
    changes.blocks.iter().try_for_each(|(key, block)| windows::check_block(key, block))?;
    ledger::check(&changes.ledger)?;
    changes.garbage.iter().try_for_each(|gone| match gone {
        Garbage::Window(of) | Garbage::Blocks(of, _) => window(of.window),
    })
}

/// Window numbers are below 2^63: a rule's number and a second of the years that have names.
pub(super) fn window(window: Window) -> Result<(), StoreError> {
    i64::try_from(window.0).map(drop).map_err(|_| StoreError::Row(format!("parts: {} is no part", window.0)))
}

pub(super) fn count(table: &str, count: u64) -> Result<(), StoreError> {
    let refused = |_| StoreError::Row(format!("{table}: {count} is more than can be counted"));
    i64::try_from(count).map(drop).map_err(refused)
}
