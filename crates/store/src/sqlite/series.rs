//! The table `contest_series`: series, by name and by the time at which the next contest of one is created.
//!
//! Not here: their bytes (`series`).

use super::SqliteStore;
use super::contest_reads::{merged, only_behind};
use super::contests::one;
use super::fault::{column_text, damaged};
use super::memtable::Memtables;
use super::reads;
use super::table::{Rows, Table};
use crate::codec::series;
use crate::codec::{Input, put_bytes};
use crate::contest_reads::{Due, DueAfter};
use crate::series::SeriesReads;
use crate::{Listing, StoreError};
use rusqlite::{Connection, Row, params};
use std::ops::Bound;
use tally_rules::Micros;
use tally_rules::contest::{ContestId, SeriesRecord};

pub(super) const GET: &str = "SELECT id, body FROM contest_series WHERE id = ?1";
pub(super) const PUT: &str = "REPLACE INTO contest_series (id, due, body) VALUES (?1, ?2, ?3)";
pub(super) const REMOVE: &str = "DELETE FROM contest_series WHERE id = ?1";
pub(super) const LIST: &str = "SELECT id, body FROM contest_series WHERE id > ?1 ORDER BY id";
pub(super) const DUE: &str = "SELECT id, due FROM contest_series INDEXED BY contest_series_due \
     WHERE due IS NOT NULL AND due <= ?1 AND (due, id) > (?2, ?3) ORDER BY due, id";

fn name(row: &Row<'_>) -> Result<ContestId, StoreError> {
    ContestId::new(&row.get::<_, String>(0)?).map_err(|bad| damaged("contest_series", bad.0))
}

pub(super) fn decode(row: &Row<'_>) -> Result<(ContestId, SeriesRecord), StoreError> {
    let read = || {
        let record = series::decode(&row.get::<_, Vec<u8>>(1)?);
        Ok((name(row)?, record.ok_or_else(|| damaged("contest_series", "a series that cannot be"))?))
    };
    read().map_err(|error: StoreError| error.of_row("contest_series", || column_text(row, 0)))
}

pub(super) fn get(connection: &Connection, id: &ContestId) -> Result<Option<SeriesRecord>, StoreError> {
    Ok(one(connection, GET, params![id.as_str()], decode)?.map(|(_, record)| record))
}

/// The table `contest_series` for the journal.
pub(super) struct AllSeries;

impl Table for AllSeries {
    const TAG: u8 = 21;
    type Key = ContestId;
    type Value = SeriesRecord;

    fn check(_key: &ContestId, _value: Option<&SeriesRecord>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &ContestId, out: &mut Vec<u8>) {
        put_bytes(key.as_str().as_bytes(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<ContestId> {
        ContestId::new(input.text()?).ok()
    }

    fn put_value(value: &SeriesRecord, out: &mut Vec<u8>) {
        put_bytes(&series::encode(value), out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<SeriesRecord> {
        series::decode(input.bytes()?)
    }

    fn heap_bytes(_key: &ContestId, value: Option<&SeriesRecord>) -> usize {
        let template = |record: &SeriesRecord| {
            let template = &record.series.template;
            1024 + 64 * (template.staff.len() + template.prizes.len() + template.leaderboard.periods.len())
        };
        value.map_or(0, template)
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (id, record) in rows {
            match record {
                Some(record) => {
                    let row = params![id.as_str(), record.due.map(|at| at.0), series::encode(record)];
                    connection.prepare_cached(PUT)?.execute(row)?
                }
                None => connection.prepare_cached(REMOVE)?.execute(params![id.as_str()])?,
            };
        }
        Ok(())
    }
}

impl SeriesReads for SqliteStore {
    fn series(&self, id: &ContestId) -> Result<Option<SeriesRecord>, StoreError> {
        let in_memory = |memtables: &Memtables| memtables.get::<AllSeries>(id).cloned();
        reads::one(&self.shared, "contest_series", in_memory, id, get)
    }

    fn list_series(
        &self,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, SeriesRecord)>, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let from = after.map_or(Bound::Unbounded, |id| Bound::Excluded(id.clone()));
            let all = |record: &SeriesRecord| Some(record.clone());
            memtables.first::<AllSeries, _>(from, |_| true, all, limit)
        };
        let order = |id: &ContestId, _: &SeriesRecord| id.clone();
        self.shared.list(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(LIST)?;
            let mut rows = statement.query(params![after.map_or("", ContestId::as_str)])?;
            merged(newer, order, &mut rows, |row| decode(row).map(Some), limit)
        })
    }

    fn due_series(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let due = |record: &SeriesRecord| record.due.filter(|at| *at <= now);
            memtables.first::<AllSeries, _>(Bound::Unbounded, |_| true, due, usize::MAX)
        };
        self.shared.read(in_memory, |mut newer, tables| {
            only_behind(&mut newer, after);
            let mut statement = tables.prepare_cached(DUE)?;
            let (at, id) = after.unwrap_or((Micros(i64::MIN), ""));
            let mut rows = statement.query(params![now.0, at.0, id])?;
            let decode = |row: &Row<'_>| Ok((name(row)?, Micros(row.get(1)?)));
            let order = |id: &ContestId, at: &Micros| (*at, id.clone());
            let found = merged(newer, order, &mut rows, |row| decode(row).map(Some), limit)?.whole()?;
            Ok(found.into_iter().map(|(id, at)| (at, id)).collect())
        })
    }
}
