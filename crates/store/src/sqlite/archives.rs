//! The table `archives`: the months of the ledger that are in files.
//!
//! Not here: the bytes of a row (`codec::archives`), and the files (`archive`).

use super::fault::damaged;
use super::memtable::Memtables;
use super::state::Shared;
use super::table::{Rows, Table};
use crate::StoreError;
use crate::archive::ArchivedMonth;
use crate::codec::{Input, archives, put_bytes};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;
use std::ops::Bound;
use tally_rules::ledger::Month;

pub(super) const GET: &str = "SELECT month, body FROM archives WHERE month = ?1";
pub(super) const LIST: &str = "SELECT month, body FROM archives ORDER BY month";
pub(super) const PUT: &str = "REPLACE INTO archives (month, body) VALUES (?1, ?2)";
pub(super) const REMOVE: &str = "DELETE FROM archives WHERE month = ?1";

pub(super) fn decode(row: &Row<'_>) -> Result<(Month, ArchivedMonth), StoreError> {
    let month = Month(row.get(0)?);
    let body = archives::decode(&row.get::<_, Vec<u8>>(1)?);
    let body = body.ok_or_else(|| damaged("archives", "a month that cannot be"));
    Ok((month, body.map_err(|error| error.of_row("archives", || month.to_string()))?))
}

pub(super) fn get(connection: &Connection, key: &Month) -> Result<Option<ArchivedMonth>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![key.0])?;
    Ok(rows.next()?.map(decode).transpose()?.map(|(_, row)| row))
}

/// Every month of the table.
pub(super) fn list(connection: &Connection) -> Result<Vec<(Month, ArchivedMonth)>, StoreError> {
    let mut statement = connection.prepare_cached(LIST)?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(decode(row)?);
    }
    Ok(all)
}

/// Every month of the store, oldest first.
pub(super) fn all(shared: &Shared) -> Result<Vec<(Month, ArchivedMonth)>, StoreError> {
    let in_memory =
        |memtables: &Memtables| memtables.range::<Archives>(Bound::Unbounded, |_| true, usize::MAX).0;
    shared.read(in_memory, |newer, tables| {
        let stored = list(tables)?.into_iter().map(|(month, row)| (month, Some(row)));
        let mut all: BTreeMap<_, _> = stored.collect();
        all.extend(newer);
        Ok(all.into_iter().filter_map(|(month, row)| Some((month, row?))).collect())
    })
}

/// The table `archives` for the journal.
pub(super) struct Archives;

impl Table for Archives {
    const TAG: u8 = 29;
    type Key = Month;
    type Value = ArchivedMonth;

    fn check(_key: &Month, _value: Option<&ArchivedMonth>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &Month, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.0.to_be_bytes());
    }

    fn take_key(input: &mut Input<'_>) -> Option<Month> {
        Some(Month(u32::from_be_bytes(input.fixed()?)))
    }

    fn put_value(value: &ArchivedMonth, out: &mut Vec<u8>) {
        put_bytes(&archives::encode(value), out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<ArchivedMonth> {
        archives::decode(input.bytes()?)
    }

    fn heap_bytes(_key: &Month, value: Option<&ArchivedMonth>) -> usize {
        let files = value.and_then(|value| value.files.as_ref());
        files.map_or(0, |files| 64 * files.totals.len())
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (month, row) in rows {
            match row {
                Some(row) => {
                    connection.prepare_cached(PUT)?.execute(params![month.0, archives::encode(row)])?
                }
                None => connection.prepare_cached(REMOVE)?.execute(params![month.0])?,
            };
        }
        Ok(())
    }
}
