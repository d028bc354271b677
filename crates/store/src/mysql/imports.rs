//! The table `imports`: the position of each imported file in its board.

use super::check::count;
use super::row::Fields;
use super::table::Table;
use super::text::RowScript;
use crate::StoreError;
use crate::plan::{BoardNo, ImportKey, ImportRow};

pub(super) struct Imports;

impl Table for Imports {
    const NAME: &'static str = "imports";
    const KEY: &'static str = "(board, digest)";
    const READ: &'static str = "board, digest, `lines`, taken, refused, finished";
    const REPLACED: &'static [&'static str] = &["`lines`", "taken", "refused", "finished"];
    const BLANK: &'static str = "0, 0, 0, 0";
    type Key = ImportKey;
    type Value = ImportRow;

    fn put_key(row: &mut RowScript<'_>, key: &ImportKey) {
        row.number(key.board.0).bytes(&key.digest);
    }

    fn put(row: &mut RowScript<'_>, import: &ImportRow) {
        row.number(import.lines).number(import.taken).number(import.refused);
        row.number(u8::from(import.finished));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(ImportKey, ImportRow), StoreError> {
        let key = ImportKey { board: BoardNo(row.small()?), digest: row.fixed()? };
        let (lines, taken, refused) = (row.number()?, row.number()?, row.number()?);
        Ok((key, ImportRow { lines, taken, refused, finished: row.boolean()? }))
    }
}

/// Refuses values that no row can hold.
pub(super) fn check(row: &ImportRow) -> Result<(), StoreError> {
    [row.lines, row.taken, row.refused].into_iter().try_for_each(|number| count("imports", number))
}
