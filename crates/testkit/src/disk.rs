//! A disk that loses power and fails when the test says so, for stores on files and for SQLite.
//!
//! [`SimulatedDisk`] keeps its files in a real folder, the live folder, where readers see every change at once, as in a page
//! cache. It records which changes were synced. [`SimulatedDisk::image`] writes into another folder what a power cut may leave;
//! [`SimulatedDisk::at`] is the disk after it. SQLite changes the same files through a VFS of its own name. It wraps SQLite's
//! default VFS, which keeps doing locks, shared memory and reads.
//!
//! The model is strict where POSIX is: a name needs its folder synced, and a change needs a sync of its own file.
//! Not here: changed bytes, failing reads outside SQLite, and changes past the disk ([`SimulatedDisk::unrecorded`] finds them).

mod contents;
mod fault;
mod image;
mod names;
mod state;
#[cfg(test)]
mod tests;
mod vfs;

pub use fault::{DiskError, DiskFault, Operation};
pub use image::{ImageStats, PowerCut};

use crate::rng::Rng;
use image::Choice;
use state::{Core, Handle};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tally_disk::{Disk, DiskFile, SystemDisk};
use tempfile::TempDir;
use vfs::Vfs;

/// Linux keeps files here in memory: images take a fifth of the time.
const MEMORY: &str = "/dev/shm";

/// A folder for images, in memory if the system has one.
///
/// # Panics
///
/// If no folder can be made.
pub fn scratch_folder() -> TempDir {
    let made = tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir());
    made.expect("a temporary folder can be made")
}

/// A disk for one test.
#[derive(Debug)]
pub struct SimulatedDisk {
    core: Arc<Core>,
    vfs: Vfs,
}

impl SimulatedDisk {
    /// An empty disk in its own folder, which is removed when the disk and its files are closed.
    ///
    /// # Panics
    ///
    /// As [`scratch_folder`].
    pub fn new() -> Arc<Self> {
        let own = scratch_folder();
        let folder = own.path().to_owned();
        Self::of(Core::new(&folder, Some(own)))
    }

    /// The disk of a folder, such as an image. Everything in it counts as synced, and changes are made there.
    ///
    /// # Panics
    ///
    /// If the folder cannot be read.
    pub fn at(folder: &Path) -> Arc<Self> {
        Self::of(Core::new(folder, None))
    }

    fn of(core: io::Result<Core>) -> Arc<Self> {
        let core = Arc::new(core.expect("the folder of the disk can be read"));
        let vfs = Vfs::register(&core);
        Arc::new(Self { core, vfs })
    }

    /// The live folder.
    pub fn folder(&self) -> &Path {
        &self.core.folder
    }

    /// The number of operations that changed the disk, or tried to. Shared memory and temporary files do not count.
    pub fn operations(&self) -> u64 {
        self.core.lock().operations.number()
    }

    /// The number of reads by SQLite.
    pub fn reads(&self) -> u64 {
        self.core.lock().operations.reads()
    }

    /// The number of operations of a kind.
    pub fn count(&self, kind: Operation) -> u64 {
        self.history().iter().filter(|(operation, _)| *operation == kind).count() as u64
    }

    /// The number of file syncs.
    pub fn syncs(&self) -> u64 {
        self.count(Operation::Sync)
    }

    /// Each operation with its file or folder, in order: number 1 is first.
    pub fn history(&self) -> Vec<(Operation, Arc<Path>)> {
        self.core.lock().operations.done().to_vec()
    }

    /// Arms a fault.
    pub fn fail(&self, fault: DiskFault) {
        self.core.lock().operations.arm(fault);
    }

    /// Disarms all faults. Their effects stay.
    pub fn heal(&self) {
        self.core.lock().operations.heal();
    }

    /// The number of operations that a fault failed.
    pub fn injected(&self) -> u64 {
        self.core.lock().operations.injected()
    }

    /// Cuts the power at the operation of this number. It and all later ones fail, and change nothing.
    pub fn stop_at(&self, number: u64) {
        self.core.lock().operations.stop_at(number);
    }

    /// Whether the power was cut.
    pub fn stopped(&self) -> bool {
        self.core.lock().operations.stopped()
    }

    /// The files of the live folder that were made, changed or removed past the disk. Images do not show such changes, so a test
    /// of code that should use the disk requires that there are none.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn unrecorded(&self) -> io::Result<Vec<PathBuf>> {
        self.core.lock().unrecorded(&self.core.folder)
    }

    /// Writes what a power cut now may leave into an empty folder, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// When the folder is not empty or cannot be written.
    pub fn image(&self, rng: &mut Rng, into: &Path) -> io::Result<ImageStats> {
        image::write(&self.core.lock(), Choice::Any, rng, into)
    }

    /// Writes the least or the most that a power cut now may leave.
    ///
    /// # Errors
    ///
    /// As [`Self::image`].
    pub fn image_of(&self, mode: PowerCut, into: &Path) -> io::Result<ImageStats> {
        image::write(&self.core.lock(), Choice::One(mode), &mut Rng::new(0), into)
    }
}

impl Disk for SimulatedDisk {
    fn vfs(&self) -> Option<&str> {
        Some(self.vfs.name())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let Some(name) = self.core.name(path) else { return SystemDisk.create(path) };
        let (handle, file) = self.core.create(&name, || SystemDisk.create(path))?;
        Ok(Arc::new(OpenFile { handle, file }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = SystemDisk.open(path)?;
        let Some(name) = self.core.name(path) else { return Ok(file) };
        let handle = self.core.open(&name).ok_or_else(|| past_the_disk(path))?;
        Ok(Arc::new(OpenFile { handle, file }))
    }

    /// Within a folder: no part of the store moves files between folders.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match (self.core.name(from), self.core.name(to)) {
            (None, None) => SystemDisk.rename(from, to),
            (Some(old), Some(new)) if names::folder_of(&old) == names::folder_of(&new) => {
                if !self.core.has(&old) {
                    return Err(past_the_disk(from));
                }
                self.core.rename(&old, &new, || SystemDisk.rename(from, to))
            }
            _ => Err(io::Error::other("the simulated disk renames within one folder")),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let known = self.core.name(path).filter(|name| self.core.has(name));
        let Some(name) = known else { return SystemDisk.remove(path) };
        self.core.remove(&name, || SystemDisk.remove(path))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match self.core.relative(folder) {
            Some(folder) => Ok(self.core.sync_folder(&folder)?),
            None => SystemDisk.sync_folder(folder),
        }
    }
}

fn past_the_disk(path: &Path) -> io::Error {
    let missing = !path.exists();
    let kind = if missing { io::ErrorKind::NotFound } else { io::ErrorKind::Other };
    io::Error::new(kind, format!("`{}` is not a file of the simulated disk", path.display()))
}

#[derive(Debug)]
struct OpenFile {
    handle: Handle,
    file: Arc<dyn DiskFile>,
}

impl DiskFile for OpenFile {
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.handle.write(at, bytes, |bytes| self.file.write_at(at, bytes))
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.handle.set_len(bytes, || self.file.set_len(bytes))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(self.handle.sync(false)?)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
}
