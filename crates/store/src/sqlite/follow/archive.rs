//! The archives of the ledger: their files never change once the store names them, so a copy reads each once.
//!
//! They are copied before the frames that name them: a file is complete before a batch names it, and the batch was read
//! before this. Not here: what the files contain, and bringing them back (`archive_copies`).

use super::folder::Folder;
use crate::StoreError;
use crate::archive::UNFINISHED;
use crate::sqlite::files::beside;
use crate::sqlite::{Options, fault};
use std::io::ErrorKind;
use std::path::Path;

/// Copies the files of archives that the copy does not have.
pub(super) fn copy_new(folder: &Folder, options: &Options, store: &Path) -> Result<(), StoreError> {
    let from = options.archives_of(store);
    let to = folder.archive();
    let entries = match std::fs::read_dir(&from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fault::file("list", &from, &error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| fault::file("list", &from, &error))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let length =
            |path: &Path| std::fs::metadata(path).ok().filter(|file| file.is_file()).map(|file| file.len());
        let Some(bytes) = length(&path) else { continue };
        // A file that was still being written when it was copied has another length now.
        if length(&target) == Some(bytes) || path.to_string_lossy().ends_with(UNFINISHED) {
            continue;
        }
        std::fs::create_dir_all(&to).map_err(|error| fault::file("make", &to, &error))?;
        let unfinished = beside(&target, UNFINISHED);
        folder.files.copy(&path, &unfinished)?;
        folder.files.rename(&unfinished, &target)?;
        folder.files.sync_folder(&target)?;
    }
    Ok(())
}
