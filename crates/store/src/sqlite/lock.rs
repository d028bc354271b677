//! The lock that allows one process to write a store: a lock on a file beside it.
//!
//! The operating system holds the lock for as long as the process lives, so a killed server leaves nothing to clean up. The
//! file names the holder, for the message that a second process shows. It is never deleted: a file that is deleted between
//! opening and locking would let two processes lock two files of the same name. SQLite's own locks are not enough: they let
//! a second writer in between two transactions.
//!
//! An operator may delete the lock file. So on Linux the store itself is locked as well (`flock`, which does not conflict
//! with the `fcntl` locks of SQLite). Not here: a lease for stores over a network.

use super::fault;
use super::files::Files;
use crate::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The maximum length of the content that is shown. Our own content is shorter.
const CONTENT_BYTES_MAX: u64 = 256;

/// The lock is held until it is dropped, or until the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// The store itself, locked. Closing it would release SQLite's locks of this process, so it is dropped last.
    store: Option<File>,
}

impl Lock {
    /// Takes the lock of the store at `path`, at once or not at all.
    pub(super) fn take(files: &Files, store: &Path) -> Result<Self, StoreError> {
        let path = super::files::beside(store, ".lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| fault::file("open", &path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked(holder(&mut file, &path))),
            Err(TryLockError::Error(error)) => return Err(fault::file("lock", &path, &error)),
        }
        let store = if cfg!(target_os = "linux") { Some(lock_store(files, store, &path)?) } else { None };
        let mut lock = Self { file, path, store };
        lock.write(None)?;
        Ok(lock)
    }

    /// Writes the address of this process into the file, for processes that find the store locked.
    pub(super) fn write(&mut self, address: Option<&str>) -> Result<(), StoreError> {
        let mut content = format!("{}\n", std::process::id());
        if let Some(address) = address {
            content.push_str(address);
            content.push('\n');
        }
        let written = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(content.as_bytes()));
        written.map_err(|error| fault::file("write", &self.path, &error))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A message that names an ended process would mislead. Failing to empty the file is harmless.
        let _ = self.file.set_len(0);
        // Closing is not enough: a child process that is starting has a copy of the open file, and of the lock, until it
        // executes another program.
        let _ = self.file.unlock();
        if let Some(store) = &self.store {
            let _ = store.unlock();
        }
    }
}

/// Locks the file of the store, and creates it if it is missing: the lock file prevents others from doing the same.
fn lock_store(files: &Files, store: &Path, path: &Path) -> Result<File, StoreError> {
    if !store.exists() {
        files.create(store)?;
    }
    let file = OpenOptions::new().read(true).write(true).open(store);
    let file = file.map_err(|error| fault::file("open", store, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let (store, path) = (store.display(), path.display());
            Err(StoreError::Locked(format!("`{store}` is held by a process whose `{path}` was removed")))
        }
        Err(TryLockError::Error(error)) => Err(fault::file("lock", store, &error)),
    }
}

fn holder(file: &mut File, path: &Path) -> String {
    let mut bytes = Vec::new();
    // The content is only shown; an unreadable file is shown like an empty one.
    let _ = file.take(CONTENT_BYTES_MAX).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let mut who = format!("`{}` is held by ", path.display());
    match lines.next() {
        Some(pid) => who.push_str(&format!("process {pid}")),
        None => who.push_str("a process that has not said which"),
    }
    if let Some(address) = lines.next() {
        who.push_str(&format!(", which answers at {address}"));
    }
    who
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_learns_the_holder_and_the_third_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("tally.db");
        let mut first = Lock::take(&Files::default(), &store).unwrap();
        first.write(Some("127.0.0.1:7700")).unwrap();
        let StoreError::Locked(text) = Lock::take(&Files::default(), &store).unwrap_err() else {
            panic!("not locked")
        };
        let pid = std::process::id();
        assert!(text.ends_with(&format!("held by process {pid}, which answers at 127.0.0.1:7700")), "{text}");
        drop(first);
        assert_eq!(std::fs::read(folder.path().join("tally.db.lock")).unwrap(), b"");
        Lock::take(&Files::default(), &store).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_second_is_told_that_the_lock_file_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("tally.db");
        let _first = Lock::take(&Files::default(), &store).unwrap();
        std::fs::remove_file(folder.path().join("tally.db.lock")).unwrap();
        let StoreError::Locked(text) = Lock::take(&Files::default(), &store).unwrap_err() else {
            panic!("not locked")
        };
        assert!(text.contains("tally.db` is held") && text.ends_with("tally.db.lock` was removed"), "{text}");
    }

    /// A child process that is starting shares our files for a moment, so closing ours would not release the lock.
    #[test]
    fn starting_processes_meanwhile_does_not_keep_a_dropped_lock() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("tally.db");
        std::thread::scope(|scope| {
            let starting = scope.spawn(|| {
                for _ in 0..100 {
                    let test = std::env::current_exe().unwrap();
                    let output = std::process::Command::new(test).args(["--list", "no such test"]).output();
                    assert!(output.unwrap().status.success());
                }
            });
            while !starting.is_finished() {
                Lock::take(&Files::default(), &store).unwrap();
            }
        });
    }

    #[test]
    fn a_shorter_content_leaves_nothing_of_a_longer_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tally.db.lock");
        std::fs::write(&path, "9999999999\nsomewhere far away\n").unwrap();
        let _lock = Lock::take(&Files::default(), &folder.path().join("tally.db")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }
}
