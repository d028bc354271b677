//! Backup: a copy of a store while a server writes it, made by another process; and restoring a copy.
//!
//! The copy is one file of plain tables. The source has rows in the tables, and newer ones in the journal. So the copy first
//! holds the journal files, each by a read transaction, and then the tables. A server does not overwrite a file that is
//! read; it only deletes its name. The tables say up to which batch they hold all rows, and up to which they may hold some.
//! If the held files have every batch from there on, both together are of one moment. If the server was faster, the copy
//! tries again. The copy contains everything that was acknowledged before it began.
//!
//! A copy gets its name after it was checked and is on the disk. Not here: the secret, which is not in the store.

use super::connect;
use super::fault;
use super::files::{self, Files, beside};
use super::journal;
use super::journal_rows::{Source, damaged};
use super::manifest::{self, Manifest};
use super::memtable::Memtable;
use super::seeded_faults::{SeededFault, is_seeded};
use super::tables::{Counters, Tables};
use super::{Options, audit, flush, identity, lock, meta, migrate, recover};
use crate::StoreError;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use tally_rules::audit::{AuditEntry, AuditId};

/// The maximum number of attempts: each fails if the server was faster.
const TRIES: usize = 50;

/// The number of pages between two progress reports.
const STEP_PAGES: i32 = 2_000;

/// The contents of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The number of records of all boards and windows.
    pub records: u64,
    /// The number of live boards.
    pub boards: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// Copies the store at `from` into the new file `to`. `progress` gets the number of copied pages and of all pages.
///
/// # Errors
///
/// If there is no store, `to` exists already, or the copy cannot be written or fails its check.
pub fn backup(from: &Path, to: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Copied, StoreError> {
    backup_on(&Options::default(), from, to, progress)
}

/// Like [`backup`], on another disk.
///
/// # Errors
///
/// As [`backup`].
pub fn backup_on(
    options: &Options,
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Copied, StoreError> {
    must_be_there(from)?;
    let from = identity::resolve(from)?;
    identity::check(&from, migrate::version(migrate::MIGRATIONS))?;
    must_be_free(to)?;
    let files = Files::on(&options.disk);
    let unfinished = beside(to, files::UNFINISHED);
    remove_database(&files, &unfinished)?;
    let copied = copy(options, &from, &unfinished, progress).and_then(|()| {
        let copied = check(&files, &unfinished)?;
        files.sync(&unfinished)?;
        must_be_free(to)?;
        files.rename(&unfinished, to)?;
        Ok(copied)
    });
    if copied.is_err() {
        // The rest is no backup. The original error is more useful than an error of the cleanup.
        let _ = remove_database(&files, &unfinished);
    }
    let copied = copied?;
    files.sync_folder(to)?;
    Ok(copied)
}

/// Restores the copy `from` to `to`. No store may be there, or with `replace` none that is in use. An interrupted restore is
/// completed by running it again; until then no server opens the store.
///
/// # Errors
///
/// If `from` is no sound copy or is of a later version, or `to` is in use or has a store. Nothing was changed then.
pub fn restore(
    from: &Path,
    to: &Path,
    replace: bool,
    act: Option<&(AuditId, AuditEntry)>,
) -> Result<Copied, StoreError> {
    restore_on(&Options::default(), (from, to), replace, act)
}

/// Like [`restore`], on another disk.
///
/// # Errors
///
/// As [`restore`].
pub fn restore_on(
    options: &Options,
    (from, to): (&Path, &Path),
    replace: bool,
    act: Option<&(AuditId, AuditEntry)>,
) -> Result<Copied, StoreError> {
    let files = Files::on(&options.disk);
    must_be_there(from)?;
    let from = identity::resolve(from)?;
    identity::check(&from, migrate::version(migrate::MIGRATIONS))?;
    let incomplete = !files::journals(&from)?.0.is_empty() || beside(&from, files::LOG).exists();
    if incomplete {
        return Err(StoreError::NotOurs(format!(
            "`{}` has a log or a journal beside it, so by itself it",
            from.display()
        )));
    }
    let copied = check(&files, &from)?;
    put_in_place(&files, to, (replace, act), &mut |unfinished| files.copy(&from, unfinished))?;
    Ok(copied)
}

/// Puts the store that `fill` writes in place of what is at `to`.
pub(super) fn put_in_place(
    files: &Files,
    to: &Path,
    (replace, act): (bool, Option<&(AuditId, AuditEntry)>),
    fill: &mut dyn FnMut(&Path) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let to = identity::resolve(to)?;
    let lock = lock::Lock::take(files, &to)?;
    let taken =
        std::fs::metadata(&to).is_ok_and(|file| file.len() > 0) || !files::journals(&to)?.0.is_empty();
    let mark = files::restore_mark(&to);
    if taken && !replace && !mark.exists() {
        return Err(StoreError::Row(format!("there is a store at `{}` already", to.display())));
    }
    let unfinished = beside(&to, files::UNFINISHED);
    remove_database(files, &unfinished)?;
    fill(&unfinished)?;
    renew(files, &unfinished, act)?;
    files.sync(&unfinished)?;
    // From here on the place holds a part of each store, until the mark is removed.
    if !is_seeded(SeededFault::RestoreUnmarked) {
        files.create(&mark)?.sync().map_err(|error| fault::file("sync", &mark, &error))?;
    }
    files.sync_folder(&to)?;
    // Files of the old store are deleted before the new one arrives: a log must never be used with the tables of another
    // store.
    let (journals, left_over) = files::journals(&to)?;
    journals.iter().try_for_each(|path| journal::delete(files, path))?;
    left_over
        .iter()
        .chain([&beside(&to, files::LOG), &beside(&to, files::LOG_INDEX)])
        .try_for_each(|path| files.remove(path))?;
    files.sync_folder(&to)?;
    files.rename(&unfinished, &to)?;
    files.sync_folder(&to)?;
    files.remove(&mark)?;
    files.sync_folder(&to)?;
    drop(lock);
    Ok(())
}

/// Gives a copy a new id, so that journals of the replaced store are never accepted as its own. An audit log gets the row of the
/// restoration.
fn renew(files: &Files, path: &Path, act: Option<&(AuditId, AuditEntry)>) -> Result<(), StoreError> {
    let mut connection = connect::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, files.vfs())?;
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version < migrate::WITH_REGISTRY {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    manifest::renew(&transaction)?;
    if let Some(row) = act.filter(|_| version >= migrate::WITH_AUDIT) {
        audit::add(&transaction, row)?;
    }
    Ok(transaction.commit()?)
}

/// One moment of a store: journal files and tables, each held by a read transaction.
struct Moment {
    journals: Vec<Source>,
    tables: Connection,
    flushed: u64,
}

fn copy(
    options: &Options,
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), StoreError> {
    let files = Files::on(&options.disk);
    let moment = hold(&files, from, options)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut target = connect::open(to, flags, files.vfs())?;
    // The copy gets its name after a sync, so intermediate writes need none.
    target.pragma_update(None, "synchronous", "OFF")?;
    {
        let copying = Backup::new(&moment.tables, &mut target)?;
        loop {
            let step = copying.step(STEP_PAGES)?;
            let at = copying.progress();
            let (total, left) =
                (u64::try_from(at.pagecount).unwrap_or(0), u64::try_from(at.remaining).unwrap_or(0));
            progress(total - left.min(total), total);
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                other => return Err(StoreError::Conflict(format!("copying the tables: {other:?}"))),
            }
        }
    }
    drop(moment.tables);
    let (memtable, wrong) = recover::read_open(&moment.journals, moment.flushed)?;
    wrong.map_or(Ok(()), Err)?;
    flush_into(options, to, target, &memtable)
}

/// Holds journal and tables, once they fit together.
fn hold(files: &Files, from: &Path, options: &Options) -> Result<Moment, StoreError> {
    for _ in 0..TRIES {
        let mut journals = Vec::new();
        hold_journals(files, from, options, &mut journals)?;
        let tables = connect::reader(files, from, options, options.cache_bytes)?;
        tables.execute_batch("BEGIN")?;
        let version: u32 = tables.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version < migrate::WITH_JOURNAL {
            return Ok(Moment { journals: Vec::new(), tables, flushed: 0 });
        }
        let (flushed, flushing) = (meta::flushed(&tables)?, meta::flushing(&tables)?);
        // The server may have rotated the journal meanwhile.
        hold_journals(files, from, options, &mut journals)?;
        let mut listed = Vec::new();
        if version >= migrate::WITH_REGISTRY {
            let manifest = Manifest::read(&tables)?;
            let ours = |source: &Source| source.identity.is_none_or(|found| found.store == manifest.store);
            if let Some(other) = journals.iter().find(|source| !ours(source)) {
                return Err(damaged(&other.path, "it belongs to another store"));
            }
            listed.extend(manifest.open);
        }
        let is_held =
            |number: &u32| journals.iter().any(|source| files::number(&source.path) == Some(*number));
        let mut spans = Vec::new();
        for journal in &journals {
            spans.extend(journal.span(flushed)?);
        }
        spans.sort_unstable();
        let whole = |last: u64, (first, end): (u64, u64)| (first == last + 1).then_some(end);
        let fits = spans.into_iter().try_fold(flushed, whole).is_some_and(|last| last >= flushing);
        if fits && listed.iter().all(is_held) {
            return Ok(Moment { journals, tables, flushed });
        }
    }
    Err(StoreError::Conflict(
        "the server was faster each time, or a file of the journal is missing: try again".into(),
    ))
}

/// Holds the present journal files. A file that is held already is held again, to see its later batches. If its name now
/// belongs to another file, both are held.
fn hold_journals(
    files: &Files,
    from: &Path,
    options: &Options,
    held: &mut Vec<Source>,
) -> Result<(), StoreError> {
    for path in files::journals(from)?.0 {
        // The file may just have been deleted. If it was needed, the held files do not fit together.
        let Ok(connection) = journal::open(files, &path, options.busy_wait) else { continue };
        connection.execute_batch("BEGIN")?;
        let Ok(source) = Source::new(&path, connection) else { continue };
        let first = |source: &Source| Ok(source.span(0)?.map(|(first, _)| first));
        let Ok::<_, StoreError>(now) = first(&source) else { continue };
        let mut same = None;
        for (at, old) in held.iter().enumerate() {
            let then: Option<u64> = first(old)?;
            if *old.path == *path && then.is_none_or(|then| now == Some(then)) {
                same = Some(at);
            }
        }
        match same {
            Some(at) => held[at] = source,
            None => held.push(source),
        }
    }
    Ok(())
}

/// Flushes the newer rows into a copy and makes it a single file.
fn flush_into(
    options: &Options,
    path: &Path,
    target: Connection,
    memtable: &Memtable,
) -> Result<(), StoreError> {
    let version: u32 = target.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let mut tables = Tables::new(Files::on(&options.disk), path, target, options)?;
    let counters = Counters::default();
    if !memtable.is_empty() {
        flush::into_tables(memtable, &flush::all_at_once, &mut |rows| {
            tables.write(&counters, |connection| rows(connection))
        })?;
    }
    if version >= migrate::WITH_REGISTRY {
        // The copy has no journal.
        manifest::forget(&mut tables, &counters, |_| false)?;
    }
    migrate::leave_write_ahead_log(tables.connection())
}

/// Checks every page, and counts the contents.
pub(super) fn check(files: &Files, path: &Path) -> Result<Copied, StoreError> {
    let connection = connect::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, files.vfs())?;
    let verdict: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(StoreError::Corrupt(format!("`{}`: {verdict}", path.display())));
    }
    let count = |table: &str| -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM {table}");
        Ok(connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?.cast_unsigned())
    };
    let bytes = std::fs::metadata(path).map_err(|error| fault::file("look at", path, &error))?.len();
    Ok(Copied { records: count("scores")?, boards: count("boards")?, bytes })
}

pub(super) fn must_be_there(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(file) if file.len() > 0 => Ok(()),
        Ok(_) => Err(StoreError::NotOurs(format!("`{}` is empty, so it", path.display()))),
        Err(error) => Err(fault::file("open", path, &error)),
    }
}

fn must_be_free(path: &Path) -> Result<(), StoreError> {
    if path.exists() {
        Err(StoreError::Row(format!("`{}` is there already", path.display())))
    } else {
        Ok(())
    }
}

/// Tries to remove each file; a failure does not stop the others.
fn remove_database(files: &Files, path: &Path) -> Result<(), StoreError> {
    ["", files::ROLLBACK, files::LOG, files::LOG_INDEX, files::UNSYNCED]
        .iter()
        .map(|more| files.remove(&beside(path, more)))
        .fold(Ok(()), Result::and)
}
