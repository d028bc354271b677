//! The limits of a store, and its disk and threads.

use super::ARCHIVES;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tally_disk::{Disk, SystemDisk};
use tally_rules::Micros;

/// The limits of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory of the writer for pages that it reads. Pages that do not fit are read again, usually from the memory of the
    /// operating system. Default: 64 MiB.
    pub cache_bytes: u64,
    /// Memory of the flush for pages: it reads them in order, so little is enough. Default: 8 MiB.
    pub flush_cache_bytes: u64,
    /// Memory of each reader for pages. Default: 4 MiB.
    pub reader_cache_bytes: u64,
    /// How long the write-ahead log of the tables may grow before writes wait until it can start over. Default: 256 MiB.
    pub wal_bytes_max: u64,
    /// Memory for changes that are not in the tables yet. The flush begins at a quarter of it, commits are slowed from half
    /// of it on, and wait when it is full. Default: 256 MiB.
    pub memtable_bytes_max: u64,
    /// How long a journal file may grow before it is flushed. There are two, and rarely a third. Each batch takes at least a
    /// page, so many small batches fill it fast. At 1 GiB, the batches of a fast disk are still flushed by age, when more
    /// rows share a page of the tables. Default: 1 GiB.
    pub journal_bytes_max: u64,
    /// Changes are flushed when none came for this time. Default: 2 s.
    pub flush_idle: Duration,
    /// Changes are flushed when the oldest has this age. Default: 30 s.
    pub flush_age_max: Duration,
    /// Connections for reading, at least one; more concurrent reads wait. Default: 4.
    pub readers: usize,
    /// How long to wait for a lock that another program (a shell, a backup) holds before it is a conflict. Default: 5 s.
    pub busy_wait: Duration,
    /// The folder of the archives of the ledger. Default: `archive` beside the file.
    pub archives: Option<PathBuf>,
    /// The disk of the files. Default: this machine's.
    pub disk: Arc<dyn Disk>,
    /// The clock of the instants in the journal, by which a followed copy is restored. Default: this machine's.
    pub now: fn() -> Micros,
    /// What runs the background work. Default: threads.
    pub background: Background,
}

/// What runs the background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of the store.
    Threads,
    /// The caller, by `SqliteStore::work`. So a simulation decides when it runs, and one seed always gives the same run.
    ByHand,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 64 << 20,
            flush_cache_bytes: 8 << 20,
            reader_cache_bytes: 4 << 20,
            wal_bytes_max: 256 << 20,
            memtable_bytes_max: 256 << 20,
            journal_bytes_max: 1 << 30,
            flush_idle: Duration::from_secs(2),
            flush_age_max: Duration::from_secs(30),
            readers: 4,
            busy_wait: Duration::from_secs(5),
            archives: None,
            disk: Arc::new(SystemDisk),
            now: wall_clock,
            background: Background::Threads,
        }
    }
}

impl Options {
    /// The folder of the archives of a store in this file.
    pub fn archives_of(&self, store: &Path) -> PathBuf {
        self.archives.clone().unwrap_or_else(|| store.with_file_name(ARCHIVES))
    }
}

fn wall_clock() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
