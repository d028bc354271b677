//! Rows whose ids ascend with time, newest first: the audit log, transfers, holds and members. Of these, only
//! archived transfers are removed.
//!
//! Not here: the columns, and filters.

use super::fault::column_text;
use super::ledger::merged_over;
use super::memtable::Memtables;
use super::state::Shared;
use super::table::Table;
use crate::{Listing, StoreError};
use rusqlite::{Row, params};
use tally_rules::ledger::Uuid;

/// A row with its key.
type RowOf<T> = (<T as Table>::Key, <T as Table>::Value);

/// At most `limit` rows before an id. `id` is the column of the id in the rows of `query`, which are decoded by `decode`.
pub(super) fn list<T: Table>(
    shared: &Shared,
    (table, query, id): (&'static str, &'static str, usize),
    (key, before): (fn(Uuid) -> T::Key, Uuid),
    limit: usize,
    decode: impl Fn(&Row<'_>) -> Result<T::Value, StoreError>,
) -> Result<Listing<RowOf<T>>, StoreError> {
    let in_memory = |memtables: &Memtables| memtables.newest::<T>(&key(before), limit);
    let read = |row: &Row<'_>| -> Result<_, StoreError> { Ok((key(Uuid(row.get(id)?)), decode(row)?)) };
    shared.list(in_memory, |newer, tables| {
        let mut stored = Listing::default();
        let mut statement = tables.prepare_cached(query)?;
        let mut rows = statement.query(params![before.0])?;
        while stored.rows.len() < limit
            && let Some(row) = rows.next()?
        {
            match read(row) {
                Ok((key, _)) if matches!(newer.get(&key), Some(None)) => {}
                Ok(row) => stored.rows.push(row),
                Err(error) => stored.leave_out(error.of_row(table, || column_text(row, id)))?,
            }
        }
        let mut list = merged_over(stored, newer.into_iter());
        list.rows.reverse();
        list.rows.truncate(limit);
        Ok(list)
    })
}
