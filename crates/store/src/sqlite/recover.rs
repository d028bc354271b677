//! Recovery: reads the journal of a killed process, checks it, and flushes it before the store is opened.
//!
//! SQLite drops the torn end of a log, which was not acknowledged. Recovery checks the rest again. Every file that the
//! tables list must exist, with its log and its identity, and the digest of each row must be valid. A gap between rows is
//! corruption, because a missing batch in the middle was acknowledged.
//!
//! [`RestingJournal`] is the result of that check, with the first error. A start refuses a store with an error; `repair` continues
//! with the batches before it. Not here: what is done about corruption (`repair`).

use super::batch::Batch;
use super::files::{self, Files};
use super::journal;
use super::journal_rows::{Identity, JournalRow, REPAIR, Source, damaged};
use super::manifest::{self, Manifest};
use super::memtable::Memtable;
use super::seeded_faults::{SeededFault, is_seeded};
use super::tables::{Counters, Tables};
use super::{crash_points, damage, flush, meta};
use crate::StoreError;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The journal of a store at rest.
pub(super) struct RestingJournal {
    /// Every file that belongs to the journal.
    pub(super) files: Vec<PathBuf>,
    /// Whether the files were written by a version that gave them no identity.
    pub(super) older: bool,
    /// The newest rows of the batches after the flushed ones, up to the first error.
    pub(super) memtable: Memtable,
    /// The last whole batch, in the journal or in the tables.
    pub(super) last: u64,
    /// Some rows up to this batch may be in the tables.
    pub(super) partly: u64,
    /// The first error.
    pub(super) wrong: Option<StoreError>,
}

/// Flushes every journal file of the store into its tables and removes it. Returns the number of the last batch.
pub(super) fn recover(
    files: &Files,
    store: &Path,
    tables: &mut Tables,
    busy_wait: Duration,
) -> Result<u64, StoreError> {
    let found = inspect(files, store, tables.connection(), busy_wait)?;
    if let Some(wrong) = found.wrong {
        return Err(wrong);
    }
    let counters = Counters::default();
    flush_found(&found, tables, &counters)?;
    let delete = || found.files.iter().try_for_each(|path| journal::delete(files, path));
    if found.older {
        // The files have no identity, so the mark that says so is removed after them.
        delete()?;
        files.sync_folder(store)?;
    }
    manifest::forget(tables, &counters, |_| false)?;
    delete()?;
    manifest::remove_unlisted(tables.connection(), files, store)?;
    Ok(found.last)
}

/// Flushes the found rows into the tables, durably.
pub(super) fn flush_found(
    found: &RestingJournal,
    tables: &mut Tables,
    counters: &Counters,
) -> Result<(), StoreError> {
    if found.memtable.is_empty() {
        return Ok(());
    }
    flush::into_tables(&found.memtable, &flush::all_at_once, &mut |rows| {
        tables.write(counters, |connection| rows(connection))
    })?;
    tables.flush_log(counters)?;
    crash_points::reach("recovered");
    Ok(())
}

/// Checks the journal of a store that no process has open. An error is a fault of the disk; an error of the journal is in
/// the result.
pub(super) fn inspect(
    files: &Files,
    store: &Path,
    tables: &Connection,
    busy_wait: Duration,
) -> Result<RestingJournal, StoreError> {
    let (journals, _) = files::journals(store)?;
    let (flushed, partly) = (meta::flushed(tables)?, meta::flushing(tables)?);
    let manifest = Manifest::read(tables)?;
    let mut wrong = missing(store, &manifest);
    let mut sources = Vec::new();
    for path in &journals {
        match source(files, path, &manifest, flushed, busy_wait) {
            Ok(source) => sources.extend(source),
            Err(error @ StoreError::Corrupt(_)) => wrong = wrong.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    let (memtable, unread) = read_open(&sources, flushed)?;
    wrong = wrong.or(unread);
    let last = memtable.last.max(flushed);
    for source in &sources {
        if wrong.is_none() {
            match damage::check(&source.path, source.identity.as_ref(), last) {
                Ok(()) => {}
                Err(error @ StoreError::Corrupt(_)) => wrong = Some(error),
                Err(error) => return Err(error),
            }
        }
    }
    drop(sources);
    if wrong.is_none() && partly > last {
        let text =
            format!("batches up to {partly} were being flushed, and the journal ends at {last}; {REPAIR}");
        wrong = Some(StoreError::Corrupt(text));
    }
    Ok(RestingJournal { files: journals, older: manifest.older, memtable, last, partly, wrong })
}

/// The error of a listed file that is missing, or whose log is.
fn missing(store: &Path, manifest: &Manifest) -> Option<StoreError> {
    if is_seeded(SeededFault::MissingAccepted) {
        return None;
    }
    manifest.open.iter().find_map(|number| {
        let path = files::journal(store, *number);
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        if length(&path) == 0 {
            return Some(damaged(&path, "the file is missing or empty, and the tables list it as in use"));
        }
        let log = files::beside(&path, files::LOG);
        (length(&log) == 0)
            .then(|| damaged(&path, &format!("its log `{}` is missing or empty", log.display())))
    })
}

/// Opens a journal file and checks its identity. `None` for a file that a crash left before its deletion, or before its
/// entry: all of its rows are in the tables.
fn source(
    files: &Files,
    path: &Path,
    manifest: &Manifest,
    flushed: u64,
    busy_wait: Duration,
) -> Result<Option<Source>, StoreError> {
    let opened = journal::open(files, path, busy_wait).and_then(|journal| Source::new(path, journal));
    let source = opened.map_err(|error| match error {
        StoreError::Corrupt(why) => damaged(path, &why),
        error => error,
    })?;
    if manifest.older && source.identity.is_none() {
        return Ok(Some(source));
    }
    let number = files::number(path);
    let ours = number.map(|number| Identity { store: manifest.store, number });
    if is_seeded(SeededFault::ForeignAccepted) {
        return Ok(Some(source));
    }
    if source.identity != ours {
        return Err(damaged(path, "it belongs to another store, or to another place in this one"));
    }
    if number.is_some_and(|number| manifest.open.contains(&number)) {
        return Ok(Some(source));
    }
    match source.span(flushed)? {
        None => Ok(None),
        Some((first, _)) => Err(damaged(
            path,
            &format!("it has batch {first}, and the tables do not list it: they are older than it"),
        )),
    }
}

/// The newest rows of all batches after `flushed` in these files, up to the first error.
pub(super) fn read_open(
    sources: &[Source],
    flushed: u64,
) -> Result<(Memtable, Option<StoreError>), StoreError> {
    let mut memtable = Memtable::default();
    let mut spans = Vec::new();
    for source in sources {
        match source.span(flushed) {
            Ok(span) => spans.extend(span.map(|span| (span, source))),
            Err(error @ StoreError::Corrupt(_)) => return Ok((memtable, Some(error))),
            Err(error) => return Err(error),
        }
    }
    // Files are reused, so their names do not give the order.
    spans.sort_by_key(|(span, _)| *span);
    let mut last = flushed;
    for (_, source) in spans {
        let read = source.read(flushed, &mut |row| add(&source.path, row, &mut last, &mut memtable));
        match read {
            Ok(()) => {}
            Err(error @ StoreError::Corrupt(_)) => return Ok((memtable, Some(error))),
            Err(error) => return Err(error),
        }
    }
    Ok((memtable, None))
}

fn add(path: &Path, row: JournalRow, last: &mut u64, memtable: &mut Memtable) -> Result<(), StoreError> {
    if row.no != *last + 1 {
        return Err(damaged(path, &format!("batch {} is missing before batch {}", *last + 1, row.no)));
    }
    let batch = Batch::decode(&row.body);
    let batch = batch.ok_or_else(|| damaged(path, &format!("batch {} cannot be read", row.no)))?;
    batch.put_into(memtable);
    *last = row.no;
    memtable.last = row.no;
    Ok(())
}
