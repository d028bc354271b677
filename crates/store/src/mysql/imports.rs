//! The table `imports`: how far each file has come into its board.

use super::check::count;
use super::connect::Flavour;
use super::found;
use super::row::{Answers, Fields};
use super::text::{Row, Script, keys_end};
use crate::StoreError;
use crate::plan::{BoardNo, ImportKey, ImportRow};

/// Asks for imports; how many statements that takes. The keys ascend.
pub(super) fn select(script: &mut Script, keys: &[ImportKey], locking: bool) -> usize {
    script.keys(
        "SELECT board, digest, `lines`, taken, refused, finished FROM imports FORCE INDEX (PRIMARY) \
         WHERE (board, digest) IN (",
        keys,
        keys_end(locking),
        put_key,
    )
}

/// The answer.
pub(super) fn read(
    answers: &mut Answers,
    statements: usize,
    keys: &[ImportKey],
) -> Result<Vec<Option<ImportRow>>, StoreError> {
    found(answers, statements, "imports", keys, decode)
}

pub(super) fn decode(row: &mut Fields<'_>) -> Result<(ImportKey, ImportRow), StoreError> {
    let key = ImportKey { board: BoardNo(row.small()?), digest: row.fixed()? };
    let (lines, taken, refused) = (row.number()?, row.number()?, row.number()?);
    Ok((key, ImportRow { lines, taken, refused, finished: row.truth()? }))
}

fn put_key(row: &mut Row<'_>, key: &ImportKey) {
    row.number(key.board.0).bytes(&key.digest);
}

/// What no row can hold.
pub(super) fn check(row: &ImportRow) -> Result<(), StoreError> {
    [row.lines, row.taken, row.refused].into_iter().try_for_each(|number| count("imports", number))
}

const HEAD: &str = "INSERT INTO imports (board, digest, `lines`, taken, refused, finished) VALUES ";

/// Writes progress. What was not there when it was read must not be there now.
pub(super) fn write(
    script: &mut Script,
    rows: &[(ImportKey, ImportRow)],
    absent: impl Fn(&ImportKey) -> bool,
    flavour: Flavour,
) {
    let put = |row: &mut Row<'_>, (key, import): &(ImportKey, ImportRow)| {
        put_key(row, key);
        row.number(import.lines)
            .number(import.taken)
            .number(import.refused)
            .number(u8::from(import.finished));
    };
    script.rows(HEAD, rows.iter().filter(|(key, _)| absent(key)), "", put);
    let tail = |script: &mut Script| flavour.replace(script, &["`lines`", "taken", "refused", "finished"]);
    script.upserts(HEAD, rows.iter().filter(|(key, _)| !absent(key)), tail, put);
}

/// Fails where one of these keys has a row by now.
pub(super) fn guard<'a>(script: &mut Script, absent: impl Iterator<Item = &'a ImportKey> + Clone) {
    script.rows(HEAD, absent.clone(), "", |row, key| {
        put_key(row, key);
        row.sql("0, 0, 0, 0");
    });
    script.keys("DELETE FROM imports WHERE (board, digest) IN (", absent, ")", put_key);
}
