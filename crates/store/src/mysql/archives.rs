//! The table `archives`: the months of the ledger that are in files.
//!
//! Not here: the bytes of a row (`codec::archives`), and the files (`archive`).

use super::MySqlStore;
use super::fault::damaged;
use super::lists::all;
use super::row::Fields;
use super::table::{self, Table};
use super::text::{RowScript, Script};
use crate::StoreError;
use crate::archive::ArchivedMonth;
use crate::codec::archives;
use tally_rules::ledger::Month;

pub(super) struct Archives;

impl Table for Archives {
    const NAME: &'static str = "archives";
    const KEY: &'static str = "month";
    const READ: &'static str = "month, body";
    const REPLACED: &'static [&'static str] = &["body"];
    const BLANK: &'static str = "''";
    type Key = Month;
    type Value = ArchivedMonth;

    fn put_key(row: &mut RowScript<'_>, key: &Month) {
        row.number(key.0);
    }

    fn put(row: &mut RowScript<'_>, value: &ArchivedMonth) {
        row.bytes(&archives::encode(value));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(Month, ArchivedMonth), StoreError> {
        let month = u32::try_from(row.number()?).map(Month);
        let month = month.map_err(|_| damaged("archives", "a month that cannot be"))?;
        let body = archives::decode(row.bytes()?);
        Ok((month, body.ok_or_else(|| damaged("archives", "a month that cannot be"))?))
    }
}

/// Queries every month, oldest first.
pub(super) fn select_all() -> Script {
    let mut script = Script::default();
    table::all::<Archives>(&mut script).sql(" ORDER BY month").end();
    script
}

/// Every month, oldest first.
pub(super) fn list(store: &MySqlStore) -> Result<Vec<(Month, ArchivedMonth)>, StoreError> {
    all(store, &select_all(), "archives", Archives::decode)
}
