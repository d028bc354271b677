//! The embedded store as one side of a copy: rows are read from the tables, and written into them without the journal.
//!
//! A store that was just opened has an empty journal, and a copy makes no other changes. Not here: the order of the work
//! (`copy`).

use super::fault::damaged;
use super::manifest::Manifest;
use super::{SqliteStore, archives, audit, identity, meta, migrate};
use crate::StoreError;
use crate::archive::{Archives, Months};
use crate::copy::{ColumnKind, CopiedRow, CopiedTable, CopiedValue, CopySide, NOTE, TABLES, check_finished};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Row, params, params_from_iter};
use std::path::Path;
use tally_rules::audit::{AuditEntry, AuditId};

/// Refuses a store of an earlier schema, which opening it would migrate.
pub(crate) fn check_current(path: &Path) -> Result<(), StoreError> {
    let known = migrate::version(migrate::MIGRATIONS);
    match identity::schema(path)? {
        Some(found) if found < known => Err(StoreError::TooOld { found, known }),
        _ => Ok(()),
    }
}

impl SqliteStore {
    /// Refuses a store into which another is being copied.
    pub(super) fn check_finished(&self) -> Result<(), StoreError> {
        check_finished(CopySide::note(self)?.as_deref(), &self.shown())
    }
}

impl CopySide for SqliteStore {
    fn shown(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    fn identity(&self) -> Result<[u8; 16], StoreError> {
        Ok(Manifest::read(&self.shared.readers.lend())?.store)
    }

    fn about(&self) -> Result<u64, StoreError> {
        let connection = self.shared.readers.lend();
        let mut all = 0;
        for table in TABLES {
            let count = format!("SELECT count(*) FROM {}", from(table));
            all += connection.query_row(&count, [], |row| row.get::<_, i64>(0).map(i64::cast_unsigned))?;
        }
        Ok(all)
    }

    fn note(&self) -> Result<Option<Vec<u8>>, StoreError> {
        meta::get(&self.shared.readers.lend(), NOTE)
    }

    fn read(&self, table: &CopiedTable, after: Option<&[CopiedValue]>) -> Result<Vec<CopiedRow>, StoreError> {
        let connection = self.shared.readers.lend();
        let mut statement = connection.prepare_cached(&select(table, after.is_some()))?;
        let mut rows = statement.query(params_from_iter(after.unwrap_or_default().iter().map(value)))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read_row(table, row)?);
        }
        Ok(found)
    }

    fn write(&self, table: &CopiedTable, rows: &[CopiedRow], note: &[u8]) -> Result<(), StoreError> {
        let write = write(table);
        self.shared.write_tables(|connection| {
            let mut statement = connection.prepare_cached(&write)?;
            for row in rows {
                statement.execute(params_from_iter(row.iter().map(value)))?;
            }
            meta::put_own(connection, NOTE, note)
        })
    }

    fn finish(&self, act: &(AuditId, AuditEntry)) -> Result<(), StoreError> {
        self.shared.write_tables(|connection| {
            audit::add(connection, act)?;
            connection.execute("DELETE FROM meta WHERE name = ?1", params![NOTE])?;
            Ok(())
        })
    }

    fn months(&self) -> Result<Months, StoreError> {
        archives::list(&self.shared.readers.lend())
    }

    fn archives(&self) -> &Archives {
        &self.archives
    }
}

/// The columns, separated by commas.
fn names(columns: &[(&str, ColumnKind)]) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The numbered parameters of a list of columns.
fn places(columns: &[(&str, ColumnKind)]) -> String {
    (1..=columns.len()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ")
}

fn from(table: &CopiedTable) -> &'static str {
    table.sqlite_from.unwrap_or(table.name)
}

fn select(table: &CopiedTable, after: bool) -> String {
    let keys = &table.columns[..table.keys];
    let by = names(keys);
    let after = if after { format!(" WHERE ({by}) > ({})", places(keys)) } else { String::new() };
    format!("SELECT {} FROM {}{after} ORDER BY {by} LIMIT {}", names(table.columns), from(table), table.rows)
}

fn write(table: &CopiedTable) -> String {
    table.sqlite_write.map_or_else(
        || {
            let CopiedTable { name, columns, .. } = table;
            format!("REPLACE INTO {name} ({}) VALUES ({})", names(columns), places(columns))
        },
        str::to_owned,
    )
}

fn value(cell: &CopiedValue) -> Value {
    match cell {
        CopiedValue::Null => Value::Null,
        CopiedValue::Number(number) => Value::Integer(*number),
        CopiedValue::Large(number) => Value::Text(number.to_string()),
        CopiedValue::Text(text) => Value::Text(text.clone()),
        CopiedValue::Bytes(bytes) => Value::Blob(bytes.clone()),
    }
}

fn read_row(table: &CopiedTable, row: &Row<'_>) -> Result<CopiedRow, StoreError> {
    let mut cells = CopiedRow::with_capacity(table.columns.len());
    for (at, (name, kind)) in table.columns.iter().enumerate() {
        let cell = read_cell(*kind, row.get_ref(at)?);
        cells.push(cell.ok_or_else(|| damaged(table.name, &format!("column {name} has another type")))?);
    }
    Ok(cells)
}

fn read_cell(kind: ColumnKind, value: ValueRef<'_>) -> Option<CopiedValue> {
    Some(match (kind, value) {
        (_, ValueRef::Null) => CopiedValue::Null,
        (ColumnKind::Number, ValueRef::Integer(number)) => CopiedValue::Number(number),
        (ColumnKind::Digits, ValueRef::Text(digits)) => {
            CopiedValue::Large(std::str::from_utf8(digits).ok()?.parse().ok()?)
        }
        (ColumnKind::Text, ValueRef::Text(text)) => {
            CopiedValue::Text(std::str::from_utf8(text).ok()?.to_owned())
        }
        (ColumnKind::Bytes, ValueRef::Blob(bytes)) => CopiedValue::Bytes(bytes.to_vec()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::Options;
    use std::collections::BTreeMap;

    /// A table or a column that is not in the list would stay behind.
    #[test]
    fn every_column_of_the_schema_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
        let connection = store.shared.readers.lend();
        let all = "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table'";
        let mut statement = connection.prepare(all).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in rows {
            let (table, column): (String, String) = row.unwrap();
            wanted.entry(table).or_default().push(column);
        }
        let mut copied: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for table in TABLES.iter().filter(|table| table.sqlite_write.is_none()) {
            let columns = table.columns.iter().map(|(name, _)| name.trim_matches('`').to_owned());
            copied.insert(table.name.to_owned(), columns.collect());
        }
        // The table of its own in the other backend.
        copied.get_mut("periods").unwrap().push("prizes".into());
        for columns in wanted.values_mut().chain(copied.values_mut()) {
            columns.sort();
        }
        assert_eq!(copied, wanted);
    }

    #[test]
    fn every_statement_is_understood() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
        let connection = store.shared.readers.lend();
        for table in TABLES {
            for sql in [select(table, false), select(table, true), write(table)] {
                connection.prepare(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        }
    }
}
