//! Decodes arbitrary values as rows of the tables; see `crate::fuzzing`.

#![cfg(any(test, feature = "fuzzing"))]

use super::row::{Fields, ResultSets};
use super::table::Table;
use super::{
    archives, audit, boards, contests, events, holds, imports, keys, members, minted, payments, prizes,
    profiles, requests, reversals, score_snapshot, scores, series, transfers, wallets, webhooks, windows,
};
use crate::StoreError;
use crate::fuzzing::Column;
use mysql_async::consts::ColumnType;
use mysql_async::{Column as Named, Row, Value};
use mysql_common::row::new_row;

type Decoder = fn(&mut Fields<'_>) -> Result<(), StoreError>;

/// The decoder of each table.
const DECODERS: &[Decoder] = &[
    |row| boards::decode(row).map(drop),
    |row| keys::decode(row).map(drop),
    |row| events::decode(row).map(drop),
    |row| scores::record(row).map(drop),
    |row| score_snapshot::score(row).map(drop),
    |row| wallets::decode_total(row).map(drop),
    table::<requests::Requests>,
    table::<imports::Imports>,
    table::<profiles::Profiles>,
    table::<series::Series>,
    table::<payments::Payments>,
    table::<prizes::Prizes>,
    table::<holds::Holds>,
    table::<wallets::Wallets>,
    table::<members::Members>,
    table::<members::Handles>,
    table::<transfers::Transfers>,
    table::<transfers::Entries>,
    table::<windows::Windows>,
    table::<windows::Blocks>,
    table::<contests::Contests>,
    table::<contests::Applications>,
    table::<contests::Members>,
    table::<reversals::Reversals>,
    table::<audit::Audit>,
    table::<minted::Minted>,
    table::<webhooks::Webhooks>,
    table::<archives::Archives>,
];

fn table<T: Table>(row: &mut Fields<'_>) -> Result<(), StoreError> {
    T::decode(row).map(drop)
}

/// Decodes one row of a table, as if the database had sent it. The error of a corrupt row has its key as text.
pub(crate) fn row(table: usize, columns: Vec<Column>) -> Result<(), StoreError> {
    let named: Vec<Named> = columns.iter().map(|_| Named::new(ColumnType::MYSQL_TYPE_BLOB)).collect();
    let row: Row = new_row(columns.into_iter().map(value).collect(), named.into());
    let mut results = ResultSets::default();
    results.push(vec![row], 0);
    results.each(1, "", DECODERS[table % DECODERS.len()])
}

/// In this protocol, every value is text.
fn value(column: Column) -> Value {
    match column {
        Column::Null => Value::NULL,
        Column::Number(number) => Value::Bytes(number.to_string().into()),
        Column::Real(number) => Value::Double(number),
        Column::Text(bytes) | Column::Bytes(bytes) => Value::Bytes(bytes),
    }
}
