//! Repair of a store that refuses to start: continues with the rows that are certain.
//!
//! The batches of the journal up to the first error are flushed into the tables. Every journal file is kept under another
//! name, `<store>.set-aside-…`, so its contents can still be read. New batch numbers begin after all that may have been
//! given, so no late row is ever taken for a new one.
//!
//! Not here: finding the error (`recover`), and corruption inside the tables, for which there are backups.

use super::files::{self, Files, beside};
use super::manifest::Manifest;
use super::tables::Counters;
use super::{Options, at_rest, audit, identity, meta, migrate, recover};
use crate::StoreError;
use std::path::{Path, PathBuf};
use tally_rules::audit::{AuditEntry, AuditId};

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The error of the journal; `None` if the store starts by itself, and then nothing was changed.
    pub wrong: Option<String>,
    /// The last whole batch.
    pub last: u64,
    /// Some rows up to this batch may be in the tables; the same as `last` if there are none.
    pub partly: u64,
    /// The new paths of the journal files.
    pub set_aside: Vec<PathBuf>,
}

/// Repairs the store at `path`, if its journal prevents a start. The last transaction of a repair stores the row `act` of the
/// audit log.
///
/// # Errors
///
/// If another process has the store open, it is not a store, or the disk fails.
pub fn repair(
    path: &Path,
    options: &Options,
    act: Option<&(AuditId, AuditEntry)>,
) -> Result<Repaired, StoreError> {
    let files = Files::on(&options.disk);
    let path = identity::resolve(path)?;
    let (_lock, mut tables) = at_rest(&files, &path, options, migrate::MIGRATIONS)?;
    let found = recover::inspect(&files, &path, tables.connection(), options.busy_wait)?;
    let partly = found.partly.max(found.last);
    let Some(wrong) = &found.wrong else {
        return Ok(Repaired { wrong: None, last: found.last, partly, set_aside: Vec::new() });
    };
    let counters = Counters::default();
    recover::flush_found(&found, &mut tables, &counters)?;
    let mut set_aside = Vec::new();
    for journal in &found.files {
        set_aside.push(set_one_aside(&files, &path, journal)?);
    }
    files.sync_folder(&path)?;
    // After every given number: missing files may have had more batches than the tables know of.
    let next = partly.saturating_add(SKIPPED_BATCHES);
    tables.write(&counters, |connection| {
        let manifest = Manifest::read(connection)?;
        Manifest { open: std::collections::BTreeSet::new(), older: false, ..manifest }.write(connection)?;
        act.map_or(Ok(()), |row| audit::add(connection, row))?;
        meta::set_flushing(connection, next)?;
        meta::set_flushed(connection, next)
    })?;
    Ok(Repaired { wrong: Some(wrong.to_string()), last: found.last, partly, set_aside })
}

/// More than were ever in a journal at once.
const SKIPPED_BATCHES: u64 = 1 << 32;

fn set_one_aside(files: &Files, store: &Path, journal: &Path) -> Result<PathBuf, StoreError> {
    let number = files::number(journal).unwrap_or_default();
    let place = |n: u32| beside(store, &format!(".set-aside-{n}-journal-{number}"));
    let place = (1..).map(place).find(|place| !place.exists()).expect("there are fewer than 2^32 files");
    files.remove(&beside(journal, files::LOG_INDEX))?;
    for part in [files::LOG, ""] {
        let from = beside(journal, part);
        if from.exists() {
            files.rename(&from, &beside(&place, part))?;
        }
    }
    Ok(place)
}
