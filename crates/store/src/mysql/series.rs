//! The table `contest_series`: series, by name and by the time at which the next contest of one is created.
//!
//! Not here: their bytes (`series`).

use super::MySqlStore;
use super::fault::damaged;
use super::lists::{due, listing};
use super::row::Fields;
use super::table::{self, Table};
use super::text::{RowScript, Script};
use crate::codec::series;
use crate::contest_reads::{Due, DueAfter};
use crate::series::SeriesReads;
use crate::{Listing, StoreError};
use tally_rules::Micros;
use tally_rules::contest::{ContestId, SeriesRecord};

pub(super) struct Series;

impl Table for Series {
    const NAME: &'static str = "contest_series";
    const KEY: &'static str = "id";
    const READ: &'static str = "id, body";
    const WRITTEN: &'static str = "id, due, body";
    const REPLACED: &'static [&'static str] = &["due", "body"];
    const BLANK: &'static str = "NULL, ''";
    type Key = ContestId;
    type Value = SeriesRecord;

    fn put_key(row: &mut RowScript<'_>, id: &ContestId) {
        row.bytes(id.as_str().as_bytes());
    }

    fn put(row: &mut RowScript<'_>, record: &SeriesRecord) {
        row.signed_or_null(record.due.map(|at| at.0)).bytes(&series::encode(record));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(ContestId, SeriesRecord), StoreError> {
        let bad = || damaged("contest_series", "a series that cannot be");
        let id = ContestId::new(row.text()?).map_err(|_| bad())?;
        Ok((id, series::decode(row.bytes()?).ok_or_else(bad)?))
    }
}

impl SeriesReads for MySqlStore {
    fn series(&self, id: &ContestId) -> Result<Option<SeriesRecord>, StoreError> {
        table::get_one::<Series>(&self.pool, id)
    }

    fn list_series(
        &self,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, SeriesRecord)>, StoreError> {
        let query = |limit: usize| {
            let mut script = Script::default();
            script.sql("SELECT id, body FROM contest_series WHERE id > ");
            script.bytes(after.map_or(b"", |id| id.as_str().as_bytes()));
            script.sql(" ORDER BY id LIMIT ").number(limit as u64).end();
            script
        };
        listing(self, "contest_series", limit, query, Series::decode)
    }

    fn due_series(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError> {
        due(self, ("contest_series", "series_by_due"), (now, after), limit)
    }
}
