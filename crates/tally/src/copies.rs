//! Consistent copies of an embedded store, deleted at the end: only the server's process can open the file.
//!
//! Not here: copies that stay (`backup`).

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tally_store::sqlite::{self, SqliteStore};

/// Copies of an embedded store, one at a time.
pub(crate) struct Copies(PathBuf);

impl Copies {
    /// Copies of this process in the data directory, for the command `what`.
    pub(crate) fn new(data: &Path, what: &str) -> Self {
        Self(data.join(format!("{what}-{}.db", std::process::id())))
    }

    /// Copies the store, in place of the previous copy, and opens it with its archives, whose folder a setting may name. `progress` gets the pages done and all pages.
    pub(crate) fn make(
        &self,
        from: &Path,
        archives: Option<PathBuf>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Arc<SqliteStore>> {
        self.remove();
        sqlite::backup(from, &self.0, progress).context("copy the store")?;
        // Files of archives never change, so they are not copied.
        let options = sqlite::Options { archives, ..sqlite::Options::default() };
        let options = sqlite::Options { archives: Some(options.archives_of(from)), ..options };
        Ok(Arc::new(SqliteStore::open(&self.0, &options).context("open the copy")?))
    }

    /// Removes the copy with the other files of its store.
    fn remove(&self) {
        let (Some(folder), Some(name)) = (self.0.parent(), self.0.file_name()) else { return };
        let ours = |entry: &std::fs::DirEntry| {
            entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes())
        };
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().filter(ours) {
            // A file that remains is a copy, in a directory that only its owner reads.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.remove();
    }
}
