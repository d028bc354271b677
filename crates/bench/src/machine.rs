//! The machine a report was made on, as far as it tells.
//!
//! A figure without its machine is a rumour. The load before the run says whether the machine was quiet: figures of a
//! busy one drift by tens of percent.

use serde::Serialize;
use std::fs::read_to_string;

/// What is known of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Threads that run at once.
    pub cores: usize,
    /// The processor's name.
    pub cpu: String,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// The operating system and its version.
    pub kernel: String,
    /// Average number of running processes over one minute before the run.
    pub load_before: String,
    /// Whether the measuring program was optimised.
    pub optimised: bool,
    /// When, in UTC.
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
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            memory_mib: kibibytes / 1024,
            kernel: format!("{} {}", std::env::consts::OS, version.trim()).trim_end().to_owned(),
            load_before: load.split_whitespace().next().map_or_else(unknown, str::to_owned),
            optimised: !cfg!(debug_assertions),
            at: now(),
        }
    }
}

/// Processor time so far, in ticks of all cores together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    all: f64,
    idle: f64,
    ours: f64,
}

impl Cpu {
    /// Up to now; `None` where the system does not tell in the way of Linux.
    pub(crate) fn now() -> Option<Self> {
        let numbers =
            |text: &str| text.split_whitespace().map_while(|one| one.parse().ok()).collect::<Vec<f64>>();
        let text = read_to_string("/proc/stat").ok()?;
        // user nice system idle iowait irq softirq steal; what follows is counted in the first two as well.
        let mut machine = numbers(text.lines().next()?.strip_prefix("cpu")?);
        machine.truncate(8);
        let text = read_to_string("/proc/self/stat").ok()?;
        // Behind the name and the state: user, system, and the same of children that have ended.
        let own = numbers(text.rsplit_once(')')?.1.trim_start().split_once(' ')?.1);
        let (idle, ours) = (machine.get(3..5)?, own.get(10..14)?);
        Some(Self { all: machine.iter().sum(), idle: idle.iter().sum(), ours: ours.iter().sum() })
    }

    /// How many percent of the processors others have used since then, the host of a virtual machine included. Children
    /// count as ours once they have ended.
    pub(crate) fn others_percent(self, then: Self) -> f64 {
        let all = (self.all - then.all).max(1.0);
        let used = all - (self.idle - then.idle) - (self.ours - then.ours);
        (100.0 * used / all).clamp(0.0, 100.0)
    }
}

/// SQLite knows the calendar and is linked anyway.
fn now() -> String {
    rusqlite::Connection::open_in_memory()
        .and_then(|calendar| {
            calendar.query_row("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now')", [], |row| row.get(0))
        })
        .unwrap_or_else(|_| "unknown".to_owned())
}
