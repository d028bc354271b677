//! Reading an embedded store beside the server that has it: a file has one process that opens it, so what is read is a
//! consistent copy, deleted at the end.
//!
//! Not here: copies that stay (`backup`).

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tally_store::sqlite::{self, SqliteStore};

/// Copies of an embedded store, one after the other.
pub(crate) struct Copies(PathBuf);

impl Copies {
    /// Copies of this process in the data directory, for the command `what`.
    pub(crate) fn new(data: &Path, what: &str) -> Self {
        Self(data.join(format!("{what}-{}.db", std::process::id())))
    }

    /// Copies a store as it is now, in place of the copy before; `progress` hears of pages done and of all.
    pub(crate) fn make(&self, from: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Arc<SqliteStore>> {
        self.remove();
        sqlite::backup(from, &self.0, progress).context("copy the store")?;
        Ok(Arc::new(SqliteStore::open(&self.0, &sqlite::Options::default()).context("open the copy")?))
    }

    /// With what a store keeps beside its file.
    fn remove(&self) {
        let (Some(folder), Some(name)) = (self.0.parent(), self.0.file_name()) else { return };
        let ours = |entry: &std::fs::DirEntry| {
            entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes())
        };
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().filter(ours) {
            // What stays is a copy, in a directory that only its owner reads.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.remove();
    }
}
