//! Arbitrary bytes as stored rows: the entry of the fuzz target `rows`, and of the test that runs its corpus.
//!
//! Decoders are private to their backends, so each backend lists its tables. A row that the store cannot have written is a
//! `StoreError`, never a panic. Not part of the interface of this crate.

use crate::codec::{Input, put_bytes, put_number, put_signed};
use crate::{StoreError, mysql, sqlite};

/// A value of a row, of any kind that a database may return.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// No value.
    Null,
    /// A whole number.
    Number(i64),
    /// Another number; no table has one.
    Real(f64),
    /// Text, maybe invalid UTF-8.
    Text(Vec<u8>),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The kind of an input, given by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A batch of the journal.
    Journal,
    /// A row of a table of SQLite; the next byte chooses the table.
    Sqlite,
    /// A row of a table of MySQL; the next byte chooses the table.
    MySql,
}

const KINDS: [InputKind; 3] = [InputKind::Journal, InputKind::Sqlite, InputKind::MySql];

/// Decodes an input.
pub fn rows(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    match KINDS[usize::from(*kind) % KINDS.len()] {
        InputKind::Journal => sqlite::fuzzing::journal(rest),
        InputKind::Sqlite => with_table(rest, sqlite::fuzzing::row),
        InputKind::MySql => with_table(rest, mysql::fuzzing::row),
    }
}

fn with_table(input: &[u8], decode: fn(usize, Vec<Column>) -> Result<(), StoreError>) {
    let Some((table, rest)) = input.split_first() else { return };
    match decode(usize::from(*table), columns(rest)) {
        Ok(()) | Err(StoreError::CorruptRow(_)) => {}
        Err(error) => panic!("damage of a row is said of the row: {error:?}"),
    }
}

/// Encodes a row as an input, for seeds.
pub fn input(kind: InputKind, table: u8, row: &[Column]) -> Vec<u8> {
    let mut out = vec![kind as u8, table];
    for column in row {
        match column {
            Column::Null => out.push(0),
            Column::Number(number) => {
                out.push(1);
                put_signed(*number, &mut out);
            }
            Column::Text(bytes) => {
                out.push(2);
                put_bytes(bytes, &mut out);
            }
            Column::Bytes(bytes) => {
                out.push(3);
                put_bytes(bytes, &mut out);
            }
            Column::Real(real) => {
                out.push(4);
                put_number(real.to_bits(), &mut out);
            }
        }
    }
    out
}

fn columns(bytes: &[u8]) -> Vec<Column> {
    let mut input = Input::new(bytes);
    std::iter::from_fn(|| column(&mut input)).take(sqlite::fuzzing::COLUMNS).collect()
}

fn column(input: &mut Input<'_>) -> Option<Column> {
    Some(match input.byte()? % 5 {
        0 => Column::Null,
        1 => Column::Number(input.signed()?),
        2 => Column::Text(input.bytes()?.to_vec()),
        3 => Column::Bytes(input.bytes()?.to_vec()),
        _ => Column::Real(f64::from_bits(input.number()?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    #[test]
    fn what_fuzzing_has_kept() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rows");
        let seeds =
            std::fs::read_dir(&folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        let seeds: Vec<Vec<u8>> = seeds.collect();
        assert!(!seeds.is_empty());
        seeds.iter().for_each(|seed| rows(seed));
    }

    fn any_column() -> impl Strategy<Value = Column> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            Just(Column::Null),
            (-3_i64..300).prop_map(Column::Number),
            any::<i64>().prop_map(Column::Number),
            (-1e9..1e9).prop_map(Column::Real),
            "[a-z0-9]{0,40}".prop_map(|text| Column::Text(text.into())),
            bytes().prop_map(Column::Text),
            bytes().prop_map(Column::Bytes),
            prop::collection::vec(any::<u8>(), 16).prop_map(Column::Bytes),
        ]
    }

    proptest! {
        #[test]
        fn any_row_is_read_or_damage(table in 0_u8..40, row in prop::collection::vec(any_column(), 0..14)) {
            prop_assert_eq!(&columns(&input(InputKind::Sqlite, table, &row)[2..]), &row);
            rows(&input(InputKind::Sqlite, table, &row));
            rows(&input(InputKind::MySql, table, &row));
        }

        #[test]
        fn any_bytes_are_a_batch_or_none(bytes in prop::collection::vec(0_u8..30, 0..80)) {
            sqlite::fuzzing::journal(&bytes);
        }
    }
}
