//! Copies everything from one store into an empty one, of the same backend or of the other, while no server runs on either.
//!
//! Rows are copied column by column (`tables`), in batches in order of their keys. The transaction of a batch also stores
//! the progress in the target (`progress`), so a copy that was cut goes on after its last batch. While that note is there,
//! the target opens for nothing else. At the end both stores are read again, in the same order, and compared table by table:
//! the number of rows, the sums of money, and a digest of all values (`proof`). Only then the note is removed.
//!
//! The source stays as it is. The target is a store of its own: with an identity of its own, so that a Redis does not take it
//! for the source. Not here: several databases (`shards::reshard` makes one of them, or several of one), and the secret,
//! which is in no store.

mod progress;
mod proof;
mod tables;
mod values;

pub(crate) use progress::{NOTE, check_finished};
pub(crate) use tables::{ColumnKind, CopiedTable, TABLES};
pub(crate) use values::{CopiedRow, CopiedValue};

use crate::StoreError;
use crate::archive::{Archives, Months, file_names};
use crate::mysql::{self, MySqlStore};
use crate::shards::{MoveProgress, check_alone};
use crate::sqlite::{self, SqliteStore, copy_files};
use progress::CopyState;
use proof::Proof;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use tables::META;
use tally_rules::audit::{AuditEntry, AuditId};

/// The only value of the store's own that is carried over: numbers of boards are given once.
const NEXT_BOARD: &str = "store.next_board";
const OWN: &str = "store.";

/// Where a store is, and how it is opened.
#[derive(Clone, Debug)]
pub enum CopyEnd {
    /// A file of this machine.
    File(PathBuf, sqlite::Options),
    /// A database, by its URL. The options name this process as the only writer.
    Database(String, mysql::Options),
}

/// The result of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// The target, without a password.
    pub shown: String,
    /// The number of rows in all tables.
    pub rows: u64,
    /// The number of tables.
    pub tables: usize,
    /// The number of archive files that were copied or were there already.
    pub archives: usize,
    /// The sums of the balances of all wallets, by currency.
    pub balances: BTreeMap<String, i128>,
    /// Whether it resumed an interrupted copy.
    pub resumed: bool,
}

/// One of the two stores, while it is copied.
pub(crate) trait CopySide: Sync {
    /// Its name without a password.
    fn shown(&self) -> String;
    /// Its identity.
    fn identity(&self) -> Result<[u8; 16], StoreError>;
    /// About how many rows it has.
    fn about(&self) -> Result<u64, StoreError>;
    /// The note of a copy into it.
    fn note(&self) -> Result<Option<Vec<u8>>, StoreError>;
    /// The next rows of a table, in order of key: fewer than those of a batch at the end.
    fn read(&self, table: &CopiedTable, after: Option<&[CopiedValue]>) -> Result<Vec<CopiedRow>, StoreError>;
    /// Writes rows and the note in one transaction. A row that is written twice exists once.
    fn write(&self, table: &CopiedTable, rows: &[CopiedRow], note: &[u8]) -> Result<(), StoreError>;
    /// Derives what the target needs beside the copied rows, adds the row of the audit log, and removes the note.
    fn finish(&self, act: &(AuditId, AuditEntry)) -> Result<(), StoreError>;
    /// The months of the ledger that are in files.
    fn months(&self) -> Result<Months, StoreError>;
    /// The folder of these files.
    fn archives(&self) -> &Archives;
}

/// Copies the store `from` into `to`, or goes on with it. Values of callers with the names `left_out` stay behind. `act` is the
/// row for the audit log of the target. `on_wait` gets a message about each wait, `progress` the progress: each row counts when
/// it is copied, and when it is read again.
///
/// # Errors
///
/// If a server runs on either store, if the target has data, or if both differ at the end.
pub fn copy(
    from: &CopyEnd,
    to: &CopyEnd,
    (left_out, act): (&[&str], &(AuditId, AuditEntry)),
    on_wait: &mut dyn FnMut(&str),
    progress: &mut dyn FnMut(MoveProgress),
) -> Result<CopyReport, StoreError> {
    let source = from.open_source(on_wait)?;
    let target = to.open_target(on_wait)?;
    let (source, target) = (&*source, &*target);
    let (mut state, resumed) = begin(source, target, left_out)?;
    let archives = copy_months(source, target)?;
    // Each row is read for its copy, and read back.
    let total = source.about()?.max(state.rows) * 2;
    let mut report = |done: u64| progress(MoveProgress { done: done.min(total), total });
    report(state.rows);
    while let Some(table) = TABLES.get(state.table) {
        let mut rows = source.read(table, state.after.as_deref())?;
        match rows.last() {
            Some(last) if rows.len() == table.rows => state.after = Some(last[..table.keys].to_vec()),
            _ => (state.table, state.after) = (state.table + 1, None),
        }
        rows.retain(|row| is_carried(table, row, left_out));
        state.rows += rows.len() as u64;
        target.write(table, &rows, &state.encode())?;
        report(state.rows);
    }
    let proofs = prove(source, target, left_out, &mut |read| report(state.rows + read))?;
    target.finish(act)?;
    report(total);
    let balances = proofs.iter().find(|(table, _)| *table == "wallets").map(|(_, proof)| proof.sums.clone());
    Ok(CopyReport {
        shown: target.shown(),
        rows: proofs.iter().map(|(_, proof)| proof.rows).sum(),
        tables: proofs.len(),
        archives,
        balances: balances.unwrap_or_default(),
        resumed,
    })
}

impl CopyEnd {
    /// Opens a store with data, of this version's schema.
    fn open_source(&self, on_wait: &mut dyn FnMut(&str)) -> Result<Box<dyn CopySide>, StoreError> {
        match self {
            Self::File(path, options) => {
                if !sqlite::is_there(path) {
                    return Err(refused(&path.display().to_string(), "there is no store"));
                }
                sqlite::check_current(path)?;
                Ok(Box::new(SqliteStore::open(path, options)?))
            }
            Self::Database(url, options) => {
                let store = MySqlStore::open_reporting(url, options, on_wait)?;
                check_alone(&store)?;
                Ok(Box::new(store))
            }
        }
    }

    /// Opens a store that may be the target of an unfinished copy, and creates an empty one.
    fn open_target(&self, on_wait: &mut dyn FnMut(&str)) -> Result<Box<dyn CopySide>, StoreError> {
        match self {
            Self::File(path, options) => {
                sqlite::check_current(path)?;
                Ok(Box::new(SqliteStore::open_unfinished(path, options)?))
            }
            Self::Database(url, options) => {
                let store = MySqlStore::open_unfinished(url, options, on_wait)?;
                check_alone(&store)?;
                Ok(Box::new(store))
            }
        }
    }
}

/// Finds the progress of an interrupted copy, or begins one: then the target must be empty. Returns whether it is resumed.
fn begin(
    source: &dyn CopySide,
    target: &dyn CopySide,
    left_out: &[&str],
) -> Result<(CopyState, bool), StoreError> {
    if first_data(source, left_out)?.is_none() {
        return Err(refused(&source.shown(), "it has nothing to copy"));
    }
    let (identity, shown) = (source.identity()?, target.shown());
    if let Some(note) = target.note()? {
        let unknown = || refused(&shown, "the copy that was begun into it is not known to this version");
        let state = CopyState::decode(&note).ok_or_else(unknown)?;
        if state.source != identity {
            return Err(refused(&shown, "the copy of another store into it was begun and is not finished"));
        }
        return Ok((state, true));
    }
    if let Some(table) = first_data(target, left_out)? {
        return Err(refused(&shown, &format!("it has rows in `{table}`, and a copy needs an empty store")));
    }
    let state = CopyState::of(identity);
    // From now on it opens for this copy only.
    target.write(&TABLES[0], &[], &state.encode())?;
    Ok((state, false))
}

/// The first table that has rows beside those of a new store.
fn first_data(side: &dyn CopySide, left_out: &[&str]) -> Result<Option<&'static str>, StoreError> {
    for table in TABLES {
        let is_data = |row: &CopiedRow| is_carried(table, row, left_out) && !is_first_board(table, row);
        if side.read(table, None)?.iter().any(is_data) {
            return Ok(Some(table.name));
        }
    }
    Ok(None)
}

fn refused(shown: &str, why: &str) -> StoreError {
    StoreError::Layout(format!("{shown}: {why} (nothing was changed)"))
}

/// Whether a row belongs to what is copied. Values of the store itself do not, but for the number of the next board.
fn is_carried(table: &CopiedTable, row: &CopiedRow, left_out: &[&str]) -> bool {
    match &row[..] {
        [CopiedValue::Text(name), ..] if table.name == META => {
            name == NEXT_BOARD || !(name.starts_with(OWN) || left_out.contains(&name.as_str()))
        }
        _ => true,
    }
}

/// Whether this is the number that a new store begins with.
fn is_first_board(table: &CopiedTable, row: &CopiedRow) -> bool {
    table.name == META && row[..] == [CopiedValue::Text(NEXT_BOARD.into()), CopiedValue::Bytes(b"1".into())]
}

/// Copies the files of archived months, if the target has another folder for them. Returns their number.
fn copy_months(source: &dyn CopySide, target: &dyn CopySide) -> Result<usize, StoreError> {
    let needed = file_names(&source.months()?);
    if needed.is_empty() {
        return Ok(0);
    }
    let (from, to) = (source.archives().folder()?, target.archives().folder()?);
    if from != to {
        copy_files(&needed, from, to)?;
    }
    Ok(needed.len())
}

/// Reads both stores side by side, and compares them.
fn prove(
    source: &dyn CopySide,
    target: &dyn CopySide,
    left_out: &[&str],
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<(&'static str, Proof)>, StoreError> {
    let failed = AtomicBool::new(false);
    let (of_source, of_target) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let read = proof::read(source, left_out, &mut |_| !failed.load(Ordering::Relaxed));
            failed.fetch_or(read.is_err(), Ordering::Relaxed);
            read
        });
        let of_target = proof::read(target, left_out, &mut |rows| {
            progress(rows);
            !failed.load(Ordering::Relaxed)
        });
        failed.fetch_or(of_target.is_err(), Ordering::Relaxed);
        (reading.join().expect("reading does not panic"), of_target)
    });
    let (of_source, of_target) = (of_source?, of_target?);
    for ((table, source), (_, target)) in of_source.iter().zip(&of_target) {
        if source != target {
            return Err(StoreError::Corrupt(format!(
                "`{table}` differs after the copy: {source} in the source, {target} in the target. The source has changed since \
                 the copy was begun, or a database has changed a value. Copy into another, empty store"
            )));
        }
    }
    Ok(of_target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_stores_own_values_only_the_next_board_is_carried() {
        let carried = |name: &str| {
            is_carried(
                &TABLES[0],
                &vec![CopiedValue::Text(name.into()), CopiedValue::Null],
                &["ranking_redis"],
            )
        };
        assert!(["store.next_board", "secret_fingerprint", "stores"].into_iter().all(carried));
        assert!(!["store.id", "store.shard", "store.copy", "ranking_redis"].into_iter().any(carried));
    }
}
