//! Migrates a file to the present schema in one transaction, after keeping a copy of the file.
//!
//! The schema version is the number of applied migrations. Migrations run under the rollback journal instead of the
//! write-ahead log. So the version in the file's first bytes is always current, see `identity`. Not here: downgrades; the
//! copy `<file>.v<version>.bak` allows one.

use super::files::{self, Files};
use super::{connect, identity};
use crate::StoreError;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::path::{Path, PathBuf};

/// All migrations: the first makes a new file, each other one makes the next schema from the one before.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_tables.sql"),
    include_str!("../../migrations/sqlite/0002_players.sql"),
    include_str!("../../migrations/sqlite/0003_periods.sql"),
    include_str!("../../migrations/sqlite/0004_journal.sql"),
    include_str!("../../migrations/sqlite/0005_ledger.sql"),
    include_str!("../../migrations/sqlite/0006_contests.sql"),
    include_str!("../../migrations/sqlite/0007_series.sql"),
    include_str!("../../migrations/sqlite/0008_period_prizes.sql"),
    include_str!("../../migrations/sqlite/0009_events.sql"),
    include_str!("../../migrations/sqlite/0010_journals.sql"),
    include_str!("../../migrations/sqlite/0011_reversals.sql"),
    include_str!("../../migrations/sqlite/0012_origins.sql"),
    include_str!("../../migrations/sqlite/0013_audit.sql"),
    include_str!("../../migrations/sqlite/0014_scopes.sql"),
    include_str!("../../migrations/sqlite/0015_metadata.sql"),
    include_str!("../../migrations/sqlite/0016_webhooks.sql"),
    include_str!("../../migrations/sqlite/0017_credit.sql"),
    include_str!("../../migrations/sqlite/0018_archives.sql"),
];

/// The first version with a journal.
pub(super) const WITH_JOURNAL: u32 = 4;

/// The first version whose journals have an identity.
pub(super) const WITH_REGISTRY: u32 = 10;

/// The first version with an audit log.
pub(super) const WITH_AUDIT: u32 = 13;

/// The first version with archives of the ledger.
pub(super) const WITH_ARCHIVES: u32 = 18;

/// The version that a list of migrations leads to.
pub(super) fn version(migrations: &[&str]) -> u32 {
    u32::try_from(migrations.len()).expect("fewer than 2^32 migrations")
}

/// Applies the missing migrations. The caller holds the lock and has checked that the file is ours.
pub(super) fn migrate(
    files: &Files,
    connection: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<(), StoreError> {
    let known = version(migrations);
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(StoreError::TooNew { found, known });
    }
    if found == known {
        return Ok(());
    }
    leave_write_ahead_log(connection)?;
    if found > 0 {
        keep_copy(files, connection, path, found)?;
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    for migration in &migrations[found as usize..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", identity::APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    files.sync_folder(path)
}

/// The path of the kept copy of a file of that version.
pub(super) fn copy_path(path: &Path, version: u32) -> PathBuf {
    files::beside(path, &format!(".v{version}.bak"))
}

/// Makes the store a single file without a log.
pub(super) fn leave_write_ahead_log(connection: &Connection) -> Result<(), StoreError> {
    let mode = connect::journal_mode(connection, "DELETE")?;
    if mode != "delete" {
        return Err(StoreError::Conflict(format!(
            "the file is in use by another program (journal mode {mode})"
        )));
    }
    Ok(())
}

/// Keeps a copy that is complete or missing: it gets its name when it is on the disk.
fn keep_copy(files: &Files, connection: &Connection, path: &Path, version: u32) -> Result<(), StoreError> {
    let kept = copy_path(path, version);
    let unfinished = files::beside(&kept, ".part");
    files.remove(&unfinished)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut copy = connect::open(&unfinished, flags, files.vfs())?;
    let step = Backup::new(connection, &mut copy)?.step(-1)?;
    if step != StepResult::Done {
        return Err(StoreError::Conflict(format!(
            "the file is in use by another program (copying: {step:?})"
        )));
    }
    copy.close().map_err(|(_, error)| error)?;
    files.sync(&unfinished)?;
    // The copy needs the journal to be complete: it has the rows that are not flushed yet.
    for journal in files::journals(path)?.0 {
        let name = journal.to_string_lossy().into_owned();
        let more = name.strip_prefix(&*path.to_string_lossy()).unwrap_or_default().to_owned();
        for part in ["", files::LOG] {
            let (from, to) = (files::beside(&journal, part), files::beside(&kept, &format!("{more}{part}")));
            if from.exists() {
                files.copy(&from, &to)?;
            }
        }
    }
    files.rename(&unfinished, &kept)?;
    files.sync_folder(path)
}
