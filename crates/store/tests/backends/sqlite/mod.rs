//! SQLite under the contract, and the tests of a single file.

pub(crate) mod fixtures;
mod kill;

use crate::contract::{Backend, store_contract};
use std::path::PathBuf;
use std::time::Duration;
use tally_store::Store;
use tally_store::sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// A file in a folder that is deleted with it.
struct File {
    folder: TempDir,
}

impl File {
    fn path(&self) -> PathBuf {
        self.folder.path().join("tally.db")
    }
}

impl Backend for File {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn another(&self) -> Box<dyn Backend> {
        Box::new(fresh())
    }

    fn open(&self) -> Box<dyn Store> {
        // Small limits and a small log, so that they are flushed and started over within a test.
        let options = Options {
            wal_bytes_max: 64 << 10,
            memtable_bytes_max: 32 << 10,
            journal_bytes_max: 128 << 10,
            flush_idle: Duration::from_millis(5),
            readers: 2,
            ..Options::default()
        };
        Box::new(SqliteStore::open(&self.path(), &options).unwrap())
    }
}

fn fresh() -> File {
    File { folder: tempfile::tempdir().unwrap() }
}

store_contract!(fresh);
