//! What a scrape reads of the machine: free space, the last backup, and the end of the certificate.
//!
//! Each is a system call or a value in memory. Not here: figures that tools of the machine have already, such as load and memory.

use crate::tls::Tls;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The parts of the machine that belong to this server.
pub struct Machine {
    /// The data directory.
    pub data: PathBuf,
    /// The file that `tally backup` writes when a copy is complete, if the store is a file. A database has tools of its own for
    /// backups, of which a server knows nothing.
    pub backup: Option<PathBuf>,
    /// The file that `tally backup --follow` touches when its copy has everything, if the store is a file.
    pub followed: Option<PathBuf>,
    /// The certificate of the listeners.
    pub tls: Option<Tls>,
}

impl Machine {
    /// The free and all bytes of the file system of the data directory.
    pub(crate) fn disk(&self) -> Option<(u64, u64)> {
        let found = rustix::fs::statvfs(&self.data).ok()?;
        Some((found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize))
    }

    /// When the last backup was complete, in seconds since 1970; 0 is never.
    pub(crate) fn last_backup(&self) -> Option<f64> {
        Some(modified(self.backup.as_ref()?).unwrap_or(0.0))
    }

    /// When a followed copy last had everything, in seconds since 1970; 0 is never.
    pub(crate) fn last_followed(&self) -> Option<f64> {
        Some(modified(self.followed.as_ref()?).unwrap_or(0.0))
    }

    /// When the certificate ends, in seconds since 1970.
    pub(crate) fn certificate_end(&self) -> Option<i64> {
        self.tls.as_ref()?.end()
    }
}

/// When a file was written, in seconds since 1970.
fn modified(file: &Path) -> Option<f64> {
    let written = std::fs::metadata(file).and_then(|found| found.modified()).ok()?;
    Some(written.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}
