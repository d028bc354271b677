//! Counts of the lines of the log, by outcome.
//!
//! A process has one log, and starts it before the listeners that show these counts. So the counts are of the process, too.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of this process.
pub static LOG_LINES: LogLines = LogLines::new();

/// Lines of a log, by outcome.
#[derive(Debug, Default)]
pub struct LogLines {
    /// Those that the reader of the log has taken.
    pub written: AtomicU64,
    /// Those that had no room, because the reader is too slow.
    pub full: AtomicU64,
    /// Those that could not be written, because the reader is gone.
    pub failed: AtomicU64,
    /// Those that only another line has counted.
    pub repeated: AtomicU64,
}

impl LogLines {
    /// All counts at zero.
    pub const fn new() -> Self {
        let [written, full, failed, repeated] = [const { AtomicU64::new(0) }; 4];
        Self { written, full, failed, repeated }
    }

    /// The lines that the reader of the log never gets.
    pub fn dropped(&self) -> u64 {
        self.full.load(Ordering::Relaxed) + self.failed.load(Ordering::Relaxed)
    }

    /// Each outcome with its count.
    pub(crate) fn all(&self) -> [(&'static str, u64); 4] {
        [
            ("written", &self.written),
            ("full", &self.full),
            ("failed", &self.failed),
            ("repeated", &self.repeated),
        ]
        .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }
}
