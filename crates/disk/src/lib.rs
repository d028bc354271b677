//! The changes that the store makes to files by itself, without SQLite, as one trait.
//!
//! A power cut keeps what was synced and any part of the rest. Only a simulated disk can produce every such state. So the
//! store creates, extends, syncs, renames and removes files through [`Disk`]. It opens its SQLite files through the VFS that
//! the disk names. [`SystemDisk`] is the operating system. The simulation keeps its files in a real folder, too.
//! So reading needs no abstraction: the store reads with `std::fs`.
//!
//! Not here: what the files contain, and retries.

mod system;

pub use system::SystemDisk;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file system, as far as the store changes it.
pub trait Disk: Debug + Send + Sync + 'static {
    /// The VFS that SQLite opens files of this disk with; `None` is SQLite's own.
    fn vfs(&self) -> Option<&str> {
        None
    }

    /// Makes an empty file; a file that exists is emptied. Its name is durable after [`sync_folder`](Self::sync_folder).
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens an existing file. Each call gives a descriptor of its own: Linux reports a failed write-back once per
    /// descriptor, so two threads that sync the same file must not share one.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, in the place of a file that has it. Durable after `sync_folder`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name. Durable after `sync_folder`.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// The folder of a path, whose sync makes its name durable. That of a name alone is the current one.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// An open file.
pub trait DiskFile: Debug + Send + Sync {
    /// Writes all bytes at a position, beyond the end if need be.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;

    /// Returns when the contents and the length are on the disk.
    fn sync(&self) -> io::Result<()>;

    /// The length in bytes.
    fn length(&self) -> io::Result<u64>;
}
