//! Memory of a process as the system counts it.
//!
//! The own count of a structure leaves out what the allocator rounds up and keeps; the resident set does not. The
//! resident set is coarse and includes the rest of the process, so reports show both.

/// The assumed page size; machines with another one are rare enough to be noticed.
const PAGE_BYTES: u64 = 4096;

/// Resident bytes of this process; `None` on a system without `/proc`.
pub(crate) fn bytes() -> Option<u64> {
    bytes_of(std::process::id())
}

/// Resident bytes of another process.
pub(crate) fn bytes_of(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// The peak of another process so far.
pub(crate) fn peak_of(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
