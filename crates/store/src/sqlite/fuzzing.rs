//! Decodes arbitrary values as rows of the tables, and arbitrary bytes as a batch of the journal; see `crate::fuzzing`.

use super::batch::Batch;
use super::memtable::Memtable;
use super::migrate::MIGRATIONS;
use super::{
    archives, audit, boards, contests, events, holds, imports, keys, members, minted, payments, requests,
    reversals, score_snapshot, scores, series, transfers, wallets, webhooks, windows,
};
use crate::StoreError;
use crate::fuzzing::Column;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};

/// More than any table has.
pub(crate) const COLUMNS: usize = 24;

type Decoder = fn(&Connection, &Row<'_>) -> Result<(), StoreError>;

/// The decoder of each table.
const DECODERS: &[Decoder] = &[
    |connection, row| boards::decode(connection, row).map(drop),
    |_, row| keys::decode(row).map(drop),
    |_, row| requests::decode(row).map(drop),
    |_, row| events::decode(row).map(drop),
    |_, row| imports::decode(row).map(drop),
    |_, row| series::decode(row).map(drop),
    |_, row| payments::decode(row).map(drop),
    |_, row| holds::decode(row).map(drop),
    |_, row| wallets::decode(row).map(drop),
    |_, row| wallets::decode_total(row).map(drop),
    |_, row| members::decode(row).map(drop),
    |_, row| transfers::decode(row).map(drop),
    |_, row| transfers::decode_entry(row).map(drop),
    |_, row| windows::decode(row).map(drop),
    |_, row| windows::decode_block(row).map(drop),
    |_, row| scores::decode(row).map(drop),
    |_, row| score_snapshot::decode_score(row).map(drop),
    |_, row| contests::decode(row).map(drop),
    |_, row| contests::decode_application(row).map(drop),
    |_, row| contests::decode_member(row).map(drop),
    |_, row| contests::decode_prize(row).map(drop),
    |_, row| reversals::decode(row).map(drop),
    |_, row| audit::decode(row).map(drop),
    |_, row| minted::decode(row).map(drop),
    |_, row| webhooks::decode(row).map(drop),
    |_, row| archives::decode(row).map(drop),
];

thread_local! {
    static CONNECTION: Connection = {
        let connection = Connection::open_in_memory().expect("SQLite opens a database in memory");
        MIGRATIONS.iter().for_each(|sql| connection.execute_batch(sql).expect("the schema is good"));
        connection
    };
}

/// Decodes one row of a table.
pub(crate) fn row(table: usize, columns: Vec<Column>) -> Result<(), StoreError> {
    let names: Vec<String> = (1..=COLUMNS).map(|number| format!("?{number}")).collect();
    let missing = std::iter::repeat(&Column::Null);
    let values = columns.iter().chain(missing).take(COLUMNS).map(value);
    CONNECTION.with(|connection| {
        let mut statement = connection.prepare_cached(&format!("SELECT {}", names.join(", ")))?;
        let mut rows = statement.query(params_from_iter(values))?;
        let row = rows.next()?.expect("a SELECT of values has a row");
        DECODERS[table % DECODERS.len()](connection, row)
    })
}

fn value(column: &Column) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match column {
        Column::Null => ValueRef::Null,
        Column::Number(number) => ValueRef::Integer(*number),
        Column::Real(number) => ValueRef::Real(*number),
        Column::Text(bytes) => ValueRef::Text(bytes),
        Column::Bytes(bytes) => ValueRef::Blob(bytes),
    })
}

/// Decodes a batch. A decoded batch is encoded and decoded to the same rows.
pub(crate) fn journal(bytes: &[u8]) {
    let Some(batch) = Batch::decode(bytes) else { return };
    let (mut once, mut again) = (Vec::new(), Vec::new());
    batch.encode(&mut once);
    let same = Batch::decode(&once).expect("a batch that was written can be read");
    assert_eq!(same.rows(), batch.rows());
    same.encode(&mut again);
    assert_eq!(once, again);
    let mut memtable = Memtable::default();
    batch.put_into(&mut memtable);
}
