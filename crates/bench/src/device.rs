//! Writes of the device under a folder, as the kernel counts them: the device caused a slow sync with few bytes.
//!
//! From `/sys/dev/block/…/stat` (Documentation/block/stat.rst of Linux). It counts the writes of all programs, not only of the
//! server.

use std::fs::read_to_string;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a sector, whatever the sector size of the device.
const SECTOR_BYTES: u64 = 512;

/// The file with the counts of a device.
#[derive(Clone, Debug)]
pub(crate) struct Device(PathBuf);

/// Counts since the system started, or of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceCounts {
    pub(crate) writes: u64,
    pub(crate) bytes: u64,
    /// The waits of all writes and flushes, added up.
    wait_ms: u64,
}

impl Device {
    /// The device of a folder; `None` without one, as in memory.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let number = std::fs::metadata(folder).ok()?.st_dev();
        // As glibc's major(3) and minor(3) do.
        let major = ((number >> 8) & 0xfff) | ((number >> 32) & !0xfff);
        let minor = (number & 0xff) | ((number >> 12) & !0xff);
        let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        path.exists().then_some(Self(path))
    }

    pub(crate) fn counts(&self) -> Option<DeviceCounts> {
        DeviceCounts::parse(&read_to_string(&self.0).ok()?)
    }
}

impl DeviceCounts {
    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<u64> = stat.split_whitespace().map_while(|field| field.parse().ok()).collect();
        // Flushes are counted since Linux 5.5.
        let flush_ms = fields.get(16).copied().unwrap_or_default();
        Some(Self {
            writes: *fields.get(4)?,
            bytes: fields.get(6)? * SECTOR_BYTES,
            wait_ms: fields.get(7)? + flush_ms,
        })
    }

    pub(crate) fn since(self, then: Self) -> Self {
        Self {
            writes: self.writes.saturating_sub(then.writes),
            bytes: self.bytes.saturating_sub(then.bytes),
            wait_ms: self.wait_ms.saturating_sub(then.wait_ms),
        }
    }

    /// The mean wait of a write with its flush.
    pub(crate) fn ms_a_write(self) -> f64 {
        self.wait_ms as f64 / self.writes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let then = DeviceCounts::parse("9 0 9 9 100 7 800 50 0 40 60 0 0 0 0 10 5").unwrap();
        let now = DeviceCounts::parse("9 0 9 9 300 7 2400 450 0 40 60 0 0 0 0 30 105").unwrap();
        let both = now.since(then);
        assert_eq!(both, DeviceCounts { writes: 200, bytes: 1600 * 512, wait_ms: 500 });
        assert!((both.ms_a_write() - 2.5).abs() < 1e-9);
        assert_eq!(DeviceCounts::parse("1 2 3"), None);
        assert_eq!(DeviceCounts::parse("9 0 9 9 100 7 800 50").unwrap().wait_ms, 50, "an older kernel");
    }

    #[test]
    fn a_folder_in_memory_has_no_device() {
        assert!(Device::of(Path::new("/proc")).is_none());
        assert!(Device::of(Path::new("/nowhere")).is_none());
    }
}
