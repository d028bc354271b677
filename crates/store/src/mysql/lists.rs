//! Reads of several rows: by keys, all rows of a statement, a list for display, and due rows.
//!
//! Not here: the meaning of the columns.

use super::MySqlStore;
use super::fault::damaged;
use super::row::{Fields, key};
use super::table::{self, Table};
use super::text::Script;
use crate::contest_reads::{Due, DueAfter};
use crate::{Listing, StoreError};
use tally_rules::Micros;
use tally_rules::contest::ContestId;
use tally_rules::ledger::Uuid;

/// The rows of one statement.
pub(super) fn all<T>(
    store: &MySqlStore,
    script: &Script,
    table: &'static str,
    decode: impl Fn(&mut Fields<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    store.pool.query(script)?.list(script.len(), table, decode)
}

/// At most `limit` sound rows of a list, and the corrupt rows that were left out. Each corrupt row is
/// made up for by one more.
pub(super) fn listing<T>(
    store: &MySqlStore,
    table: &'static str,
    limit: usize,
    query: impl Fn(usize) -> Script,
    decode: impl Fn(&mut Fields<'_>) -> Result<T, StoreError>,
) -> Result<Listing<T>, StoreError> {
    let mut rows = limit;
    loop {
        let (mut list, mut found) = (Listing::default(), 0);
        let script = query(rows);
        let mut results = store.pool.query(&script)?;
        let note = results.notes();
        results.skip(script.len() - 1);
        for row in results.rows() {
            found += 1;
            match decode(&mut Fields::new(table, &row)) {
                Ok(row) if list.rows.len() < limit => list.rows.push(row),
                Ok(_) => break,
                Err(error) => list.leave_out(error.of_row(table, || key(table, &row)))?,
            }
        }
        if found < rows || list.rows.len() == limit {
            list.damaged.iter().for_each(note);
            return Ok(list);
        }
        rows += list.damaged.len();
    }
}

/// A row with its key.
type RowOf<T> = (<T as Table>::Key, <T as Table>::Value);

/// At most `limit` rows of a table before an id, newest first.
pub(super) fn newest<T: Table>(
    store: &MySqlStore,
    before: Uuid,
    limit: usize,
) -> Result<Listing<RowOf<T>>, StoreError> {
    let query = |limit: usize| {
        let mut script = Script::default();
        table::all::<T>(&mut script).sql(" WHERE id < ").bytes(&before.0);
        script.sql(" ORDER BY id DESC LIMIT ").number(limit as u64).end();
        script
    };
    listing(store, T::NAME, limit, query, T::decode)
}

/// Due rows of a table with the column `due`, by an index on `due` and `id`.
pub(super) fn due(
    store: &MySqlStore,
    (table, index): (&'static str, &'static str),
    (now, after): (Micros, DueAfter<'_>),
    limit: usize,
) -> Result<Due, StoreError> {
    let mut script = Script::default();
    script.sql("SELECT due, id FROM ").sql(table).sql(" FORCE INDEX (").sql(index).sql(") WHERE due <= ");
    script.signed(now.0);
    if let Some((at, id)) = after {
        script.sql(" AND (due > ").signed(at.0).sql(" OR due = ").signed(at.0);
        script.sql(" AND id > ").bytes(id.as_bytes()).sql(")");
    }
    script.sql(" ORDER BY due, id LIMIT ").number(limit as u64).end();
    all(store, &script, table, |row| {
        let at = Micros(row.signed()?);
        Ok((at, ContestId::new(row.text()?).map_err(|bad| damaged(table, bad.0))?))
    })
}
