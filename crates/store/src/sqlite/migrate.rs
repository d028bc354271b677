//! Brings a file to the present schema: all of it in one transaction, after a copy of the file was kept.
//!
//! The schema version is the number of migrations applied. They run under the rollback journal, not the write-ahead
//! log, so that the version in the file's first bytes is the truth at every moment, see `identity`. Not here: going
//! back. Whoever must, has the copy `<file>.v<version>.bak`.

use super::{fault, identity};
use crate::StoreError;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, TransactionBehavior};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Every schema there ever was: the first makes a new file, each other one makes the next out of the one before.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_tables.sql"),
    include_str!("../../migrations/sqlite/0002_players.sql"),
    include_str!("../../migrations/sqlite/0003_periods.sql"),
    include_str!("../../migrations/sqlite/0004_implicit_boards.sql"),
];

/// The version that a list of migrations leads to.
pub(super) fn version(migrations: &[&str]) -> u32 {
    u32::try_from(migrations.len()).expect("fewer than 2^32 migrations")
}

/// Applies the migrations that the file has not seen. The caller holds the lock and has checked whose file it is.
pub(super) fn migrate(
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
        keep_copy(connection, path, found)?;
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    for migration in &migrations[found as usize..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", identity::APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    sync_folder(path)
}

/// Where the copy of a file of that version is kept.
pub(super) fn copy_path(path: &Path, version: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".v{version}.bak"));
    PathBuf::from(name)
}

fn leave_write_ahead_log(connection: &Connection) -> Result<(), StoreError> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
    if mode != "delete" {
        return Err(StoreError::Conflict(format!(
            "the file is in use by another program (journal mode {mode})"
        )));
    }
    Ok(())
}

/// A copy that is complete or not there: it gets its name when it is on the disk.
fn keep_copy(connection: &Connection, path: &Path, version: u32) -> Result<(), StoreError> {
    let kept = copy_path(path, version);
    let mut unfinished = kept.as_os_str().to_owned();
    unfinished.push(".part");
    let unfinished = PathBuf::from(unfinished);
    match std::fs::remove_file(&unfinished) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(fault::file("remove", &unfinished, &error)),
    }
    let mut copy = Connection::open(&unfinished)?;
    let step = Backup::new(connection, &mut copy)?.step(-1)?;
    if step != StepResult::Done {
        return Err(StoreError::Conflict(format!(
            "the file is in use by another program (copying: {step:?})"
        )));
    }
    copy.close().map_err(|(_, error)| error)?;
    let synced = File::open(&unfinished).and_then(|file| file.sync_all());
    synced.map_err(|error| fault::file("sync", &unfinished, &error))?;
    std::fs::rename(&unfinished, &kept).map_err(|error| fault::file("rename", &unfinished, &error))?;
    sync_folder(path)
}

/// A new name is durable when its folder is. Only Unix lets a folder be synced.
fn sync_folder(path: &Path) -> Result<(), StoreError> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| fault::file("sync", folder, &error))
}
