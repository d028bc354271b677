//! Memory of a process as the system counts it.
//!
//! What a structure says of itself leaves out what the allocator rounds up and keeps; the resident set does not. It is
//! coarse and includes the rest of the process, so it is printed beside the structure's own count, not instead.

/// Pages are read as this large; machines where they are not are rare enough to be noticed.
const PAGE_BYTES: u64 = 4096;

/// Resident bytes of this process; `None` where the system does not tell in the way of Linux.
pub(crate) fn bytes() -> Option<u64> {
    bytes_of(std::process::id())
}

/// The same of another.
pub(crate) fn bytes_of(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// The most that another had so far.
pub(crate) fn peak_of(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
