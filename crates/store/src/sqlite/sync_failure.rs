//! A mark that a sync has failed, for a start on the same machine without a reboot.
//!
//! After a failed sync the system may show bytes that are not on the disk, and a later sync says nothing of them. The store
//! mends that while it runs, from what is in memory. A process that ends before has only the files: it leaves this mark,
//! `<store>.unsynced`, and the next start writes the bytes of every log once more and syncs them, before it believes
//! them. The mark needs no sync and no working disk: after a reboot what the system shows is what the disk has.
//!
//! Not here: mending in a running process (`run`, `tables`).

use super::files::{self, Files, beside};
use crate::StoreError;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The mark of a store.
#[derive(Debug)]
pub(super) struct SyncFailure {
    path: PathBuf,
    marked: AtomicBool,
}

impl SyncFailure {
    pub(super) fn of(store: &Path) -> Self {
        Self { path: beside(store, files::UNSYNCED), marked: AtomicBool::new(false) }
    }

    /// A sync failed.
    pub(super) fn mark(&self) {
        if !self.marked.swap(true, Ordering::Relaxed)
            && let Err(error) = File::create(&self.path)
        {
            tracing::error!(%error, path = %self.path.display(), "failed to mark that a sync failed");
        }
    }

    /// For a start: makes sure that the logs of the store are on the disk as they can be read.
    pub(super) fn write_logs_again(&self, files: &Files, store: &Path) -> Result<(), StoreError> {
        if !self.path.exists() {
            return Ok(());
        }
        let journals = files::journals(store)?.0;
        let logs = journals.iter().map(PathBuf::as_path).chain([store]).map(|path| beside(path, files::LOG));
        for path in logs.chain(journals.iter().cloned()).filter(|path| path.exists()) {
            files.write_again(&path)?;
        }
        Ok(())
    }

    /// For a start that has flushed all logs.
    pub(super) fn clear(&self) {
        // One that stays costs the next start some time.
        let _ = std::fs::remove_file(&self.path);
        self.marked.store(false, Ordering::Relaxed);
    }
}
