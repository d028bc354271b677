//! The files of archives beside a copy of a store: a backup has them in a folder of its own, and a restore brings them back.
//!
//! A file never changes, and its name is of one attempt only. So a file that is there already is not copied again.

use super::{archives, connect, fault, migrate};
use crate::StoreError;
use crate::archive::file_names;
use rusqlite::OpenFlags;
use std::path::{Path, PathBuf};
use tally_disk::{Disk, SystemDisk};

/// The folder beside a copy at this path.
pub fn archives_beside(copy: &Path) -> PathBuf {
    super::files::beside(copy, ".archive")
}

/// Copies the files that the store at `store` needs, which no process has open, from one folder into another. Returns their number.
///
/// # Errors
///
/// If a file is missing or has another length, or cannot be copied.
pub fn copy_archives(store: &Path, from: &Path, to: &Path) -> Result<usize, StoreError> {
    let connection = connect::open(store, OpenFlags::SQLITE_OPEN_READ_ONLY, None)?;
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version < migrate::WITH_ARCHIVES {
        return Ok(0);
    }
    let needed = file_names(&archives::list(&connection)?);
    copy_files(&needed, from, to)?;
    Ok(needed.len())
}

/// Copies files of these names and lengths from one folder into another.
pub(crate) fn copy_files(needed: &[(String, u64)], from: &Path, to: &Path) -> Result<(), StoreError> {
    if !needed.is_empty() {
        std::fs::create_dir_all(to).map_err(|error| fault::file("make", to, &error))?;
    }
    for (name, bytes) in needed {
        let (from, to) = (from.join(name), to.join(name));
        let length = |path: &Path| std::fs::metadata(path).ok().map(|file| file.len());
        if length(&to) != Some(*bytes) {
            copy(&from, &to).map_err(|error| broken(name, error.to_string()))?;
        }
        if length(&to) != Some(*bytes) {
            return Err(broken(name, format!("it has not the {bytes} bytes of the catalog")));
        }
    }
    if !needed.is_empty() {
        SystemDisk.sync_folder(to).map_err(|error| fault::file("sync", to, &error))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let part = super::files::beside(to, ".part");
    std::fs::copy(from, &part)?;
    SystemDisk.open(&part)?.sync()?;
    SystemDisk.rename(&part, to)
}

fn broken(name: &str, what: String) -> StoreError {
    StoreError::Archive { file: name.to_owned(), what }
}
