//! A fixed workload on a simulated disk: the power is cut at every operation, every operation fails once, and so does every
//! read of SQLite.
//!
//! After each cut the images that it may leave are opened, and held against what the workload was answered: what was
//! acknowledged is there exactly once, what was refused is not there, and what is unknown is one of the two.
//! Faults that were once here are planted again (`planted`), and the same walks must find them.
//! `TALLY_SOAK` multiplies the images, `TALLY_SEED` chooses them.
//!
//! Not here: the rest of the server.

mod cuts;
mod errors;
mod files;
mod flips;
mod lines;
mod planted;
mod workload;

use super::*;
use std::sync::Arc;
use tally_testkit::SimulatedDisk;
use tally_testkit::rng::Rng;

/// A store without threads on a disk.
fn options(disk: &Arc<SimulatedDisk>) -> Options {
    let disk: Arc<dyn tally_disk::Disk> = Arc::clone(disk) as _;
    Options { disk, background: Background::ByHand, busy_wait: Duration::ZERO, ..Options::default() }
}

fn path_on(disk: &SimulatedDisk) -> PathBuf {
    disk.folder().join("tally.db")
}

fn open_on(disk: &Arc<SimulatedDisk>) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(&path_on(disk), &options(disk))
}

/// How many times more than usual.
fn soak() -> u64 {
    std::env::var("TALLY_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}
