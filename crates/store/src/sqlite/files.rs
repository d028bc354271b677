//! Files beside the store: their names, and making the names durable.

use super::fault;
use crate::StoreError;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tally_disk::{Disk, DiskFile, SystemDisk, folder_of};

/// The suffixes of SQLite's write-ahead log and of its index.
pub(super) const LOG: &str = "-wal";
pub(super) const LOG_INDEX: &str = "-shm";
/// The suffix of SQLite's rollback journal, which undoes a transaction without a write-ahead log.
pub(super) const ROLLBACK: &str = "-journal";
/// The suffix of a file before its final name.
pub(super) const UNFINISHED: &str = ".new";
/// The suffix of the sync-failure marker.
pub(super) const UNSYNCED: &str = ".unsynced";
const JOURNAL: &str = ".journal-";

/// The number of bytes that are copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// A path with a suffix.
pub(super) fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}

/// The path of a journal file of a store.
pub(super) fn journal(store: &Path, number: u32) -> PathBuf {
    beside(store, &format!("{JOURNAL}{number}"))
}

/// Every journal file of a store, and leftovers with the same prefix: of files that were being created or deleted.
pub(super) fn journals(store: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), StoreError> {
    let Some(name) = store.file_name() else { return Ok((Vec::new(), Vec::new())) };
    let prefix = format!("{}{JOURNAL}", name.to_string_lossy());
    let folder = folder_of(store);
    let failed = |error| fault::file("list", folder, &error);
    let (mut whole, mut others) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&prefix)) else { continue };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        match rest.split_at(digits) {
            ("", _) => {}
            (_, "") => whole.push(entry.path()),
            (_, more) if is_left_over(more) => others.push(entry.path()),
            _ => {}
        }
    }
    let has_journal = |path: &PathBuf| {
        whole
            .iter()
            .any(|whole| path.to_string_lossy().starts_with(&*format!("{}-", whole.to_string_lossy())))
    };
    others.retain(|path| !has_journal(path));
    whole.sort();
    Ok((whole, others))
}

/// The number of journal files of a store, and their total length.
pub(super) fn size_of_journal(store: &Path) -> (usize, u64) {
    let files = journals(store).map(|(whole, _)| whole).unwrap_or_default();
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    (files.len(), files.iter().map(|path| length(path) + length(&beside(path, LOG))).sum())
}

/// The number in the name of a journal file.
pub(super) fn number(journal: &Path) -> Option<u32> {
    journal.to_string_lossy().rsplit_once('-')?.1.parse().ok()
}

/// Whether there is a store at this path, or a part of one: opening the path makes no new store then.
#[must_use]
pub fn is_there(store: &Path) -> bool {
    let has_more =
        || restore_mark(store).exists() || journals(store).is_ok_and(|(journals, _)| !journals.is_empty());
    match std::fs::metadata(store) {
        Ok(file) => file.len() > 0 || has_more(),
        Err(error) if error.kind() == ErrorKind::NotFound => has_more(),
        // Opening it says why it cannot be read.
        Err(_) => true,
    }
}

/// The marker of a restore that has begun to replace a store.
pub(super) fn restore_mark(store: &Path) -> PathBuf {
    beside(store, ".restoring")
}

/// Refuses a store whose replacement by a restore was interrupted.
pub(super) fn check_no_restore(store: &Path) -> Result<(), StoreError> {
    if restore_mark(store).exists() {
        let store = store.display();
        let text =
            format!("a restore of `{store}` was interrupted; run `tally restore` with the same copy again");
        return Err(StoreError::Layout(text));
    }
    Ok(())
}

fn is_left_over(more: &str) -> bool {
    let more = more.strip_prefix(UNFINISHED).unwrap_or(more);
    ["", LOG, LOG_INDEX, ROLLBACK].contains(&more)
}

/// The disk of a store: all changes of files, with errors that name the file.
#[derive(Clone, Debug)]
pub(super) struct Files(Arc<dyn Disk>);

impl Default for Files {
    fn default() -> Self {
        Self(Arc::new(SystemDisk))
    }
}

impl Files {
    pub(super) fn on(disk: &Arc<dyn Disk>) -> Self {
        Self(Arc::clone(disk))
    }

    /// The VFS of this disk for SQLite, if it is not the default one.
    pub(super) fn vfs(&self) -> Option<&str> {
        self.0.vfs()
    }

    /// Creates an empty file.
    pub(super) fn create(&self, path: &Path) -> Result<Arc<dyn DiskFile>, StoreError> {
        self.0.create(path).map_err(|error| fault::file("create", path, &error))
    }

    /// Opens an existing file with a separate descriptor.
    pub(super) fn open(&self, path: &Path) -> Result<Arc<dyn DiskFile>, StoreError> {
        self.0.open(path).map_err(|error| fault::file("open", path, &error))
    }

    /// Copies a file, and waits until the copy is on the disk.
    pub(super) fn copy(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        let copied = self.0.create(to).and_then(|target| write_all(from, &*target));
        copied.map_err(|error| fault::file("copy to", to, &error))
    }

    /// Overwrites a file with its own bytes, and waits until they are on the disk.
    pub(super) fn write_again(&self, path: &Path) -> Result<(), StoreError> {
        let written = self.0.open(path).and_then(|target| write_all(path, &*target));
        written.map_err(|error| fault::file("write again", path, &error))
    }

    /// Removes a file that may be missing.
    pub(super) fn remove(&self, path: &Path) -> Result<(), StoreError> {
        match self.0.remove(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(fault::file("remove", path, &error)),
            _ => Ok(()),
        }
    }

    /// Waits until a file is on the disk.
    pub(super) fn sync(&self, path: &Path) -> Result<(), StoreError> {
        let synced = self.0.open(path).and_then(|file| file.sync());
        synced.map_err(|error| fault::file("sync", path, &error))
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        self.0.rename(from, to).map_err(|error| fault::file("rename", from, &error))
    }

    /// Syncs the folder of a file, which makes its name durable.
    pub(super) fn sync_folder(&self, path: &Path) -> Result<(), StoreError> {
        let folder = folder_of(path);
        self.0.sync_folder(folder).map_err(|error| fault::file("sync", folder, &error))
    }
}

/// Copies all bytes of a file into another, or into itself.
fn write_all(from: &Path, to: &dyn DiskFile) -> std::io::Result<()> {
    let mut source = File::open(from)?;
    let mut piece = vec![0; COPY_BYTES];
    let mut at = 0;
    loop {
        match source.read(&mut piece)? {
            0 => return to.sync(),
            bytes => to.write_at(at, &piece[..bytes])?,
        }
        at = source.stream_position()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_store_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("t.db");
        assert!(!is_there(&store) && !is_there(&folder.path().join("missing/t.db")));
        std::fs::write(&store, "").unwrap();
        assert!(!is_there(&store), "an empty file is a new store");
        for part in ["t.db.journal-1", "t.db.restoring", "t.db"] {
            let part = folder.path().join(part);
            std::fs::write(&part, "x").unwrap();
            assert!(is_there(&store), "{part:?}");
            std::fs::remove_file(part).unwrap();
        }
    }

    #[test]
    fn journals_are_told_from_their_left_overs_and_from_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "t.db",
            "t.db-wal",
            "t.db.lock",
            "t.db.journal-1",
            "t.db.journal-1-wal",
            "t.db.journal-1-shm",
            "t.db.journal-2-wal",
            "t.db.journal-3.new",
            "t.db.journal-3.new-journal",
            "t.db.journal-",
            "t.db.journal-x",
            "t.db.journal-10",
            "t.db.journal-4.txt",
            "u.db.journal-5",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let (whole, others) = journals(&folder.path().join("t.db")).unwrap();
        let names = |paths: Vec<PathBuf>| -> Vec<String> {
            let mut names: Vec<_> =
                paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(whole), ["t.db.journal-1", "t.db.journal-10"]);
        assert_eq!(names(others), ["t.db.journal-2-wal", "t.db.journal-3.new", "t.db.journal-3.new-journal"]);
    }
}
