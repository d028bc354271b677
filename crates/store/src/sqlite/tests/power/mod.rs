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
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
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

/// The images that were checked. A cut with little on its way leaves the same one again and again, and checking it once is
/// enough: what is expected of it must be the same as well.
#[derive(Default)]
struct Checked(RandomState, HashSet<u64>);

impl Checked {
    /// Whether no image with these files was here before.
    fn is_new(&mut self, image: &Path) -> bool {
        let mut files = BTreeMap::new();
        read_files(image, image, &mut files);
        self.1.insert(self.0.hash_one(files))
    }
}

/// The files of a folder and of those in it, by their paths below `root`.
fn read_files(root: &Path, folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_files(root, &path, into);
        } else {
            into.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap());
        }
    }
}
