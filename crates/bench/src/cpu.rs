//! Processor time of this program and of everything else on the machine.

use std::fs::read_to_string;

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
