//! The sync-failure marker, for a start on the same machine without a reboot.
//!
//! After a failed sync the system may show bytes that are not on the disk, and a later sync does not report them. A running
//! store repairs that from memory. A process that ends before leaves only files and this marker, `<store>.unsynced`. The
//! next start then writes the bytes of every log again and syncs them, before it trusts them. The marker needs no sync and
//! no working disk: after a reboot the system shows what the disk has.
//!
//! Not here: the repair in a running process (`run`, `tables`).

use super::files::{self, Files, beside};
use crate::StoreError;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The marker of a store.
#[derive(Debug)]
pub(super) struct SyncFailure {
    path: PathBuf,
    marked: AtomicBool,
}

impl SyncFailure {
    pub(super) fn of(store: &Path) -> Self {
        Self { path: beside(store, files::UNSYNCED), marked: AtomicBool::new(false) }
    }

    /// Records that a sync failed.
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
        // A marker that stays costs the next start some time.
        let _ = std::fs::remove_file(&self.path);
        self.marked.store(false, Ordering::Relaxed);
    }
}
