//! Any values as rows of the tables; see `crate::fuzzing`.

#![cfg(any(test, feature = "fuzzing"))]

use super::row::{Answers, Fields};
use super::{
    boards, contests, events, holds, imports, keys, members, parts, payments, prizes, profiles, requests,
    score_books, scores, series, transfers, wallets,
};
use crate::StoreError;
use crate::fuzzing::Column;
use mysql_async::consts::ColumnType;
use mysql_async::{Column as Named, Row, Value};
use mysql_common::row::new_row;

/// What reads a row of each table.
const DECODERS: &[fn(&mut Fields<'_>) -> Result<(), StoreError>] = &[
    |row| boards::decode(row).map(drop),
    |row| keys::decode(row).map(drop),
    |row| requests::decode(row).map(drop),
    |row| events::decode(row).map(drop),
    |row| imports::decode(row).map(drop),
    |row| profiles::decode(row).map(drop),
    |row| series::decode(row).map(drop),
    |row| payments::decode(row).map(drop),
    |row| prizes::decode(row).map(drop),
    |row| holds::decode(row).map(drop),
    |row| wallets::decode(row).map(drop),
    |row| members::decode(row).map(drop),
    |row| members::decode_handle(row).map(drop),
    |row| transfers::decode(row).map(drop),
    |row| transfers::decode_entry(row).map(drop),
    |row| parts::decode(row).map(drop),
    |row| parts::decode_block(row).map(drop),
    |row| scores::record(row).map(drop),
    |row| score_books::score(row).map(drop),
    |row| contests::decode(row).map(drop),
    |row| contests::decode_application(row).map(drop),
    |row| contests::decode_member(row).map(drop),
];

/// Reads one row of a table, as an answer of the database that has it, with its key as text where it is damaged.
pub(crate) fn row(table: usize, columns: Vec<Column>) -> Result<(), StoreError> {
    let named: Vec<Named> = columns.iter().map(|_| Named::new(ColumnType::MYSQL_TYPE_BLOB)).collect();
    let row: Row = new_row(columns.into_iter().map(value).collect(), named.into());
    let mut answers = Answers::default();
    answers.push(vec![row], 0);
    answers.each(1, "", DECODERS[table % DECODERS.len()])
}

/// Everything is text on this wire.
fn value(column: Column) -> Value {
    match column {
        Column::Null => Value::NULL,
        Column::Number(number) => Value::Bytes(number.to_string().into()),
        Column::Real(number) => Value::Double(number),
        Column::Text(bytes) | Column::Bytes(bytes) => Value::Bytes(bytes),
    }
}
