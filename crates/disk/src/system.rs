//! The operating system's files.

use crate::{Disk, DiskFile};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenFile(File::create(path)?)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenFile(OpenOptions::new().read(true).write(true).open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    /// Only Unix lets a folder be synced.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
    }
}

#[derive(Debug)]
struct OpenFile(File);

impl DiskFile for OpenFile {
    #[cfg(unix)]
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, at)
    }

    #[cfg(not(unix))]
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        use std::io::{Seek, Write};
        let mut file = &self.0;
        file.seek(io::SeekFrom::Start(at))?;
        file.write_all(bytes)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    /// The length is part of it; times of access are not.
    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_renamed_and_removed() {
        let folder = std::env::temp_dir().join(format!("tally-disk-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (first, second) = (folder.join("first"), folder.join("second"));
        let file = SystemDisk.create(&first).unwrap();
        file.write_at(3, b"abc").unwrap();
        file.set_len(5).unwrap();
        file.sync().unwrap();
        assert_eq!(file.length().unwrap(), 5);
        SystemDisk.rename(&first, &second).unwrap();
        SystemDisk.sync_folder(&folder).unwrap();
        SystemDisk.open(&second).unwrap().write_at(0, b"x").unwrap();
        assert_eq!(std::fs::read(&second).unwrap(), b"x\0\0ab");
        assert!(SystemDisk.open(&first).is_err());
        SystemDisk.remove(&second).unwrap();
        std::fs::remove_dir(&folder).unwrap();
    }
}
