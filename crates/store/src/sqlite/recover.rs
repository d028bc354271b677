//! What a killed process left: reads its journal, checks it, and folds it before the store is opened.
//!
//! SQLite drops what stands torn at the end of a log; it was not acknowledged. What it gives is checked again: each
//! row by its digest, and all of them for a gap, because a missing batch in the middle was acknowledged. Not here:
//! repairing anything.

use super::batch::Batch;
use super::files;
use super::journal::{self, Row, damaged};
use super::overlay::Generation;
use super::tables::{Counters, Tables};
use super::{damage, fold, meta, points};
use crate::StoreError;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folds every journal file of the store into its tables and removes it. Gives the number of the last batch there was.
pub(super) fn recover(store: &Path, tables: &mut Tables, busy_wait: Duration) -> Result<u64, StoreError> {
    let (journals, left_over) = files::journals(store)?;
    left_over.iter().try_for_each(|path| files::remove(path))?;
    let folded = meta::folded(tables.connection())?;
    let generation = read(&journals, folded, busy_wait)?;
    let last = generation.last.max(folded);
    let partly = meta::folding(tables.connection())?;
    if partly > last {
        let text = format!("batches up to {partly} were being folded, and the journal ends at {last}");
        return Err(StoreError::Corrupt(text));
    }
    let counters = Counters::default();
    if !generation.is_empty() {
        fold::into_tables(&generation, &fold::all_at_once, &mut |rows| {
            tables.write(&counters, |connection| rows(connection))
        })?;
        tables.fold_log(&counters)?;
        points::reach("recovered");
    }
    journals.iter().try_for_each(|path| journal::delete(path))?;
    Ok(last)
}

fn read(journals: &[PathBuf], folded: u64, busy_wait: Duration) -> Result<Generation, StoreError> {
    let open = |path: &PathBuf| Ok((path.clone(), journal::open_to_read(path, busy_wait)?));
    let open: Vec<_> = journals.iter().map(open).collect::<Result<_, StoreError>>()?;
    let generation = read_open(&open, folded)?;
    let last = generation.last.max(folded);
    journals.iter().try_for_each(|path| damage::check(path, last))?;
    Ok(generation)
}

/// The newest rows of all batches after `folded` that are in these files.
pub(super) fn read_open(journals: &[(PathBuf, Connection)], folded: u64) -> Result<Generation, StoreError> {
    let mut spans = Vec::new();
    for (path, connection) in journals {
        let span = journal::span(connection, folded)?;
        spans.extend(span.map(|span| (span, path, connection)));
    }
    // Files are used in turn, so their names say nothing of the order.
    spans.sort_by_key(|(span, ..)| *span);
    let mut generation = Generation::default();
    let mut last = folded;
    for (_, path, connection) in spans {
        journal::read(connection, path, folded, &mut |row| add(path, row, &mut last, &mut generation))?;
    }
    Ok(generation)
}

fn add(path: &Path, row: Row, last: &mut u64, generation: &mut Generation) -> Result<(), StoreError> {
    if row.no != *last + 1 {
        return Err(damaged(path, &format!("batch {} is missing before batch {}", *last + 1, row.no)));
    }
    let batch = Batch::decode(&row.body);
    let batch = batch.ok_or_else(|| damaged(path, &format!("batch {} cannot be read", row.no)))?;
    batch.put_into(generation);
    *last = row.no;
    generation.last = row.no;
    Ok(())
}
