//! The table `contest_series`: series by their names, and by when the next contest of one is made.
//!
//! Not here: their bytes (`series`).

use super::MySqlStore;
use super::connect::Flavour;
use super::fault::damaged;
use super::lists::{all, due, listing};
use super::row::Fields;
use super::text::{Row, Script, keys_end};
use crate::contest_reads::{Due, DueAfter};
use crate::series::{self, SeriesReads};
use crate::{Listing, StoreError};
use tally_rules::Micros;
use tally_rules::contest::{ContestId, SeriesRecord};

const HEAD: &str = "INSERT INTO contest_series (id, due, body) VALUES ";
const REMOVE: &str = "DELETE FROM contest_series WHERE id IN (";

/// Asks for series by name; how many statements that takes.
pub(super) fn select(script: &mut Script, keys: &[ContestId], locking: bool) -> usize {
    let head = "SELECT id, body FROM contest_series FORCE INDEX (PRIMARY) WHERE id IN (";
    script.keys(head, keys, keys_end(locking), put_id)
}

fn put_id(row: &mut Row<'_>, id: &ContestId) {
    row.bytes(id.as_str().as_bytes());
}

/// A row of [`select`].
pub(super) fn decode(row: &mut Fields<'_>) -> Result<(ContestId, SeriesRecord), StoreError> {
    let bad = || damaged("contest_series", "a series that cannot be");
    let id = ContestId::new(row.text()?).map_err(|_| bad())?;
    Ok((id, series::decode(row.bytes()?).ok_or_else(bad)?))
}

/// Fails where one of these has a row by now.
pub(super) fn guard<'a>(script: &mut Script, absent: impl Iterator<Item = &'a ContestId> + Clone) {
    script.rows(HEAD, absent.clone(), "", |row, id| {
        put_id(row, id);
        row.sql("NULL, ''");
    });
    script.keys(REMOVE, absent, ")", put_id);
}

/// Writes changes. What was not there when it was read must not be there now.
pub(super) fn write(
    script: &mut Script,
    rows: &[(ContestId, Option<SeriesRecord>)],
    is_new: impl Fn(&ContestId) -> bool,
    flavour: Flavour,
) {
    let put = |row: &mut Row<'_>, (id, record): (&ContestId, &SeriesRecord)| {
        put_id(row, id);
        row.signed_or_null(record.due.map(|at| at.0)).bytes(&series::encode(record));
    };
    let there = || rows.iter().filter_map(|(id, record)| Some((id, record.as_ref()?)));
    script.rows(HEAD, there().filter(|(id, _)| is_new(id)), "", put);
    let tail = |script: &mut Script| flavour.replace(script, &["due", "body"]);
    script.upserts(HEAD, there().filter(|(id, _)| !is_new(id)), tail, put);
    let gone = rows.iter().filter(|(id, record)| record.is_none() && !is_new(id)).map(|(id, _)| id);
    script.keys(REMOVE, gone, ")", put_id);
}

impl SeriesReads for MySqlStore {
    fn series(&self, id: &ContestId) -> Result<Option<SeriesRecord>, StoreError> {
        let mut script = Script::default();
        select(&mut script, std::slice::from_ref(id), false);
        Ok(all(self, &script, "contest_series", decode)?.pop().map(|(_, record)| record))
    }

    fn list_series(
        &self,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, SeriesRecord)>, StoreError> {
        let asked = |limit: usize| {
            let mut script = Script::default();
            script.sql("SELECT id, body FROM contest_series WHERE id > ");
            script.bytes(after.map_or(b"", |id| id.as_str().as_bytes()));
            script.sql(" ORDER BY id LIMIT ").number(limit as u64).end();
            script
        };
        listing(self, "contest_series", limit, asked, decode)
    }

    fn due_series(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError> {
        due(self, ("contest_series", "series_by_due"), (now, after), limit)
    }
}
