//! Reads of several rows: those of some keys, all of a statement, a list for people, and what is due.
//!
//! Not here: what the columns mean.

use super::MySqlStore;
use super::fault::damaged;
use super::row::{Fields, key};
use super::text::Script;
use crate::contest_reads::{Due, DueAfter};
use crate::{Listing, StoreError};
use tally_rules::Micros;
use tally_rules::contest::ContestId;

/// The rows of one statement.
pub(super) fn all<T>(
    store: &MySqlStore,
    script: &Script,
    table: &'static str,
    decode: impl Fn(&mut Fields<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    store.pool.ask(script)?.list(script.len(), table, decode)
}

/// At most `limit` rows of a list that can be read, and those that were left out. Where some cannot, so many more are asked for.
pub(super) fn listing<T>(
    store: &MySqlStore,
    table: &'static str,
    limit: usize,
    script: impl Fn(usize) -> Script,
    decode: impl Fn(&mut Fields<'_>) -> Result<T, StoreError>,
) -> Result<Listing<T>, StoreError> {
    let mut asked = limit;
    loop {
        let (mut list, mut found) = (Listing::default(), 0);
        let script = script(asked);
        let mut answers = store.pool.ask(&script)?;
        let note = answers.notes();
        answers.skip(script.len() - 1);
        for row in answers.rows() {
            found += 1;
            match decode(&mut Fields::new(table, &row)) {
                Ok(row) if list.rows.len() < limit => list.rows.push(row),
                Ok(_) => break,
                Err(error) => list.leave_out(error.of_row(table, || key(table, &row)))?,
            }
        }
        if found < asked || list.rows.len() == limit {
            list.damaged.iter().for_each(note);
            return Ok(list);
        }
        asked += list.damaged.len();
    }
}

/// What of a table with `due` is due, by an index on `due` and `id`.
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
