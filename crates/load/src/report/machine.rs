//! The machine that a report was made on, as far as it is known.
//!
//! Figures mean nothing without their machine. The load before the run shows whether the machine was idle: figures of
//! a busy one vary by tens of percent.

use serde::Serialize;
use std::fs::read_to_string;

/// The properties of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Hardware threads.
    pub cores: usize,
    /// The processor's name.
    pub cpu: String,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// The operating system and its version.
    pub kernel: String,
    /// Average number of running processes over one minute before the run.
    pub load_before: String,
    /// Whether the measuring program was built with optimizations.
    pub optimised: bool,
    /// The time, in UTC.
    pub at: String,
}

impl Machine {
    /// This machine, now.
    #[must_use]
    pub fn here() -> Self {
        let field = |file: &str, name: &str| {
            let text = read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let unknown = || "unknown".to_owned();
        let memory = field("/proc/meminfo", "MemTotal").unwrap_or_default();
        let kibibytes: u64 = memory.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
        let version = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let load = read_to_string("/proc/loadavg").unwrap_or_default();
        let now = jiff::Timestamp::now();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            memory_mib: kibibytes / 1024,
            kernel: format!("{} {}", std::env::consts::OS, version.trim()).trim_end().to_owned(),
            load_before: load.split_whitespace().next().map_or_else(unknown, str::to_owned),
            optimised: !cfg!(debug_assertions),
            at: now.round(jiff::Unit::Second).unwrap_or(now).to_string(),
        }
    }
}
