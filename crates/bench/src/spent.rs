//! Resources that this process has used: processor time and bytes written to a disk.

use std::fs::read_to_string;

/// The kernel's unit of processor time, on every machine that Linux runs on today.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) cpu_seconds: f64,
    pub(crate) written_bytes: u64,
}

/// Until now; `None` on a system without `/proc`.
pub(crate) fn spent() -> Option<Spent> {
    let stat = read_to_string("/proc/self/stat").ok()?;
    // After the name: the state, and from the twelfth on user and system time.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    let written_bytes = written_by(std::process::id())?;
    Some(Spent { cpu_seconds: (ticks(11)? + ticks(12)?) / TICKS_PER_SECOND, written_bytes })
}

/// Bytes that a process has written through to a disk.
pub(crate) fn written_by(process: u32) -> Option<u64> {
    let io = read_to_string(format!("/proc/{process}/io")).ok()?;
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.trim().parse().ok()
}

/// Since then.
pub(crate) fn since(then: Option<Spent>) -> Option<Spent> {
    let (now, then) = (spent()?, then?);
    Some(Spent {
        cpu_seconds: now.cpu_seconds - then.cpu_seconds,
        written_bytes: now.written_bytes - then.written_bytes,
    })
}
