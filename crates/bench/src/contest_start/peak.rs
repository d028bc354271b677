//! The growth of this process' peak of resident memory during an operation.
//!
//! The kernel keeps the peak and can reset it. The figure leaves out memory that was freed below the peak, and allocations
//! that fit into memory that the process already has. It is what a machine must have in addition, to the page.

use std::fs;

/// Resets the peak; returns the resident KiB now. `None` if the system has no such reset.
pub(super) fn begin() -> Option<u64> {
    fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

/// The growth of the peak since then.
pub(super) fn grown_kib(before: u64) -> Option<u64> {
    Some(status("VmHWM:")?.saturating_sub(before))
}

fn status(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
