//! A server that a scenario started, as a process: the processor time it uses, and its end.
//!
//! Killed with the value, so a run that fails leaves nothing behind. Not here: what it serves.

use std::process::Child;

/// Clock ticks of a second, by which Linux counts the time of a process.
const TICKS: f64 = 100.0;

/// A process that ends with the value.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Seconds of processor time that all its threads have used, where the system tells.
    pub(crate) fn cpu_s(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).ok()?;
        // The name in parentheses may contain anything; user and system time are the 12th and 13th field after it.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((user + system) / TICKS)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended is left as it is.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
