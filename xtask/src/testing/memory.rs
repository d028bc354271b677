//! The folder of what tests write: in memory, where the system has room for it.
//!
//! Servers of a run sync every commit, and a disk takes milliseconds for each of them. A test that kills a process needs no disk,
//! because the system keeps what it wrote, and a test of a power cut simulates the disk. A `TMPDIR` that is set stays as it is.
//!
//! Not here: full disks, which tests mount for themselves.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Linux keeps files here in memory.
const MEMORY: &str = "/dev/shm";

/// A run holds less than half a GiB there at once, beside what it does with the rest of the memory.
const ROOM_KIB: u64 = 4 << 20;

/// The variable that names the folder of temporary files.
pub(super) const VARIABLE: &str = "TMPDIR";

/// The folder; it is removed with the value, beside what killed tests left.
pub(super) struct MemoryFolder(Option<PathBuf>);

impl MemoryFolder {
    /// An empty folder, or none.
    pub(super) fn new() -> Self {
        let folder = Path::new(MEMORY).join(format!("tally-test-{}", std::process::id()));
        let wanted =
            std::env::var_os(VARIABLE).is_none() && free_kib(MEMORY).is_some_and(|free| free >= ROOM_KIB);
        Self((wanted && std::fs::create_dir(&folder).is_ok()).then_some(folder))
    }

    /// The variable of a test binary, if there is a folder.
    pub(super) fn variable(&self) -> Option<(&'static str, OsString)> {
        self.0.as_ref().map(|folder| (VARIABLE, folder.clone().into_os_string()))
    }
}

impl Drop for MemoryFolder {
    fn drop(&mut self) {
        if let Some(folder) = &self.0
            && let Err(error) = std::fs::remove_dir_all(folder)
        {
            eprintln!("xtask: {} stays: {error}", folder.display());
        }
    }
}

/// The free KiB of a file system, if `df` knows it.
fn free_kib(folder: &str) -> Option<u64> {
    let output =
        Command::new("df").args(["-Pk", folder]).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_with_what_is_in_it() {
        let folder = std::env::temp_dir().join(format!("xtask-memory-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("left")).unwrap();
        let kept = MemoryFolder(Some(folder.clone()));
        assert_eq!(kept.variable(), Some((VARIABLE, folder.clone().into_os_string())));
        drop(kept);
        assert!(!folder.exists());
        assert_eq!(MemoryFolder(None).variable(), None);
        assert_eq!(free_kib("/nowhere at all"), None);
    }
}
