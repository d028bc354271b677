//! How much the peak of this process' resident memory grows while something is done.
//!
//! The kernel keeps the peak and forgets it when it is told to. What was allocated and given back below the peak is not seen,
//! nor what fits into memory that the process has already: a figure is what a machine must have more, to the page.

use std::fs;

/// Forgets the peak; resident KiB now. `None` where the system cannot.
pub(super) fn begin() -> Option<u64> {
    fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

/// How much more than that was resident at most since.
pub(super) fn grown_kib(before: u64) -> Option<u64> {
    Some(status("VmHWM:")?.saturating_sub(before))
}

fn status(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
