//! A database as one side of a copy: rows are read in order of key, and written in one transaction with the progress.
//!
//! Not here: the order of the work (`copy`).

use super::archives::{self, Archives as ArchivedMonths};
use super::moving::after_key;
use super::row::Fields;
use super::table::Table;
use super::text::{RowScript, Script};
use super::{CLOCK, MySqlStore, leases, meta};
use crate::StoreError;
use crate::archive::{Archives, Months};
use crate::codec::audit;
use crate::copy::{ColumnKind, CopiedRow, CopiedTable, CopiedValue, CopySide, NOTE, check_finished};
use tally_rules::audit::{AuditEntry, AuditId};

impl MySqlStore {
    /// Refuses a database into which another store is being copied.
    pub(super) fn check_finished(&self) -> Result<(), StoreError> {
        check_finished(CopySide::note(self)?.as_deref(), self.url())
    }

    /// Runs a transaction of a copy. It is refused if another process has taken the lease. Repeating it is harmless.
    fn transact(&self, put: impl FnOnce(&mut Script)) -> Result<(), StoreError> {
        let mut script = Script::default();
        script.statement("START TRANSACTION");
        put(&mut script);
        if let Some(lease) = &self.lease {
            script
                .sql("REPLACE INTO batches (link, sequence, version, marks, fence) SELECT ")
                .bytes(&self.name);
            script.sql(", 0, ").sql(CLOCK).sql(", NULL, ");
            leases::put_guard(&mut script, lease.token(), &[]);
            script.end();
        }
        script.statement("COMMIT");
        self.pool.query_transaction(&script).map(drop)
    }
}

impl CopySide for MySqlStore {
    fn shown(&self) -> String {
        self.url().to_owned()
    }

    fn identity(&self) -> Result<[u8; 16], StoreError> {
        meta::id(&self.pool)
    }

    fn about(&self) -> Result<u64, StoreError> {
        let mut script = Script::default();
        script.statement(
            "SELECT CAST(COALESCE(SUM(table_rows), 0) AS UNSIGNED) FROM information_schema.tables WHERE table_schema = DATABASE()",
        );
        self.pool.query(&script)?.one_number("the list of tables")
    }

    fn note(&self) -> Result<Option<Vec<u8>>, StoreError> {
        meta::read(&mut self.pool.query(&meta::select(NOTE))?)
    }

    fn read(&self, table: &CopiedTable, after: Option<&[CopiedValue]>) -> Result<Vec<CopiedRow>, StoreError> {
        let mut results = self.pool.query(&select(table, after))?;
        results
            .list(1, table.name, |row| table.columns.iter().map(|(_, kind)| read_cell(*kind, row)).collect())
    }

    fn write(&self, table: &CopiedTable, rows: &[CopiedRow], note: &[u8]) -> Result<(), StoreError> {
        let head = |script: &mut Script| {
            script.sql("REPLACE INTO ").sql(table.mysql_name).sql(" (");
            names(script, table.columns);
            if let Some((name, _)) = table.mysql_derived {
                script.sql(", ").sql(name);
            }
            script.sql(") VALUES ");
        };
        let put = |row: &mut RowScript<'_>, cells: &CopiedRow| {
            cells.iter().for_each(|cell| put_cell(row, cell));
            if let Some((_, derive)) = table.mysql_derived {
                put_cell(row, &derive(cells));
            }
        };
        self.transact(|script| {
            script.insert(head, rows, |_| (), put);
            meta::note(script, &[(NOTE.into(), Some(note.to_vec()))]);
        })
    }

    fn finish(&self, (id, entry): &(AuditId, AuditEntry)) -> Result<(), StoreError> {
        self.transact(|script| {
            // Every server reads a board whole that is new to it, so all begin with the first revision.
            script.statement(
                "INSERT IGNORE INTO revisions (board, revision, gone) SELECT `no`, 1, 0 FROM boards",
            );
            script.rows("REPLACE INTO audit (id, body) VALUES ", [()], "", |row, ()| {
                row.bytes(&id.0.0).bytes(&audit::encode(entry));
            });
            meta::note(script, &[(NOTE.into(), None)]);
        })
    }

    fn months(&self) -> Result<Months, StoreError> {
        self.pool.query(&archives::select_all())?.list(1, "archives", ArchivedMonths::decode)
    }

    fn archives(&self) -> &Archives {
        &self.archives
    }
}

fn names(script: &mut Script, columns: &[(&'static str, ColumnKind)]) {
    for (nth, (name, _)) in columns.iter().enumerate() {
        script.sql(if nth == 0 { "" } else { ", " }).sql(name);
    }
}

fn select(table: &CopiedTable, after: Option<&[CopiedValue]>) -> Script {
    let mut script = Script::default();
    script.sql("SELECT ");
    names(&mut script, table.columns);
    script.sql(" FROM ");
    match table.mysql_from {
        Some(from) => script.sql(from),
        None => script.sql(table.mysql_name).sql(" FORCE INDEX (PRIMARY)"),
    };
    if let Some(filter) = table.mysql_filter {
        script.sql(" WHERE ").sql(filter);
    }
    let keys: Vec<&'static str> = table.columns[..table.keys].iter().map(|(name, _)| *name).collect();
    if let Some(after) = after {
        script.sql(if table.mysql_filter.is_some() { " AND (" } else { " WHERE (" });
        after_key(&mut script, &keys, after, write_key);
        script.sql(")");
    }
    script.sql(" ORDER BY ");
    names(&mut script, &table.columns[..table.keys]);
    script.sql(" LIMIT ").number(table.rows as u64).end();
    script
}

/// Writes a value of a key, which is never null.
fn write_key(cell: &CopiedValue, script: &mut Script) {
    match cell {
        CopiedValue::Null => script.sql("NULL"),
        CopiedValue::Number(number) => script.signed(*number),
        CopiedValue::Large(number) => script.large(*number),
        CopiedValue::Text(text) => script.bytes(text.as_bytes()),
        CopiedValue::Bytes(bytes) => script.bytes(bytes),
    };
}

fn put_cell(row: &mut RowScript<'_>, cell: &CopiedValue) {
    match cell {
        CopiedValue::Null => row.sql("NULL"),
        CopiedValue::Number(number) => row.signed(*number),
        CopiedValue::Large(number) => row.large(*number),
        CopiedValue::Text(text) => row.bytes(text.as_bytes()),
        CopiedValue::Bytes(bytes) => row.bytes(bytes),
    };
}

fn read_cell(kind: ColumnKind, row: &mut Fields<'_>) -> Result<CopiedValue, StoreError> {
    Ok(match kind {
        ColumnKind::Number => row.maybe_signed()?.map_or(CopiedValue::Null, CopiedValue::Number),
        ColumnKind::Digits => CopiedValue::Large(row.large()?),
        ColumnKind::Text => {
            row.maybe_text()?.map_or(CopiedValue::Null, |text| CopiedValue::Text(text.to_owned()))
        }
        ColumnKind::Bytes => {
            row.maybe_bytes()?.map_or(CopiedValue::Null, |bytes| CopiedValue::Bytes(bytes.to_vec()))
        }
    })
}
