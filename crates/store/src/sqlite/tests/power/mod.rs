//! A fixed workload on a simulated disk: the power is cut at every operation, every operation fails once, and so does every
//! read of SQLite.
//!
//! After each cut the test opens the possible images, and compares them with the answers of the workload. What was
//! acknowledged is there exactly once, what was refused is not there, and what is unknown is one of the two. Former faults
//! are planted again (`planted`), and the same runs must find them. `TALLY_SOAK` multiplies the images, `TALLY_SEED` chooses
//! them.
//!
//! Not here: the rest of the server.

mod archives;
mod cuts;
mod errors;
mod files;
mod flips;
mod follow;
mod lines;
mod planted;
mod workload;

use super::*;
use std::sync::Arc;
use tally_testkit::SimulatedDisk;
use tally_testkit::rng::Rng;

/// A store without threads on a simulated disk.
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

/// The multiple of the usual effort.
fn soak() -> u64 {
    std::env::var("TALLY_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}
