//! Processor time of this program and of all other programs on the machine.

use std::fs::read_to_string;

/// Processor time so far, in ticks of all cores together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    all: f64,
    idle: f64,
    ours: f64,
}

impl Cpu {
    /// Up to now; `None` on a system without `/proc/stat`.
    pub(crate) fn now() -> Option<Self> {
        let numbers =
            |text: &str| text.split_whitespace().map_while(|one| one.parse().ok()).collect::<Vec<f64>>();
        let text = read_to_string("/proc/stat").ok()?;
        // user nice system idle iowait irq softirq steal; the columns after these are part of the first two.
        let mut machine = numbers(text.lines().next()?.strip_prefix("cpu")?);
        machine.truncate(8);
        let text = read_to_string("/proc/self/stat").ok()?;
        // After the name and the state: user, system, and the same of ended children.
        let own = numbers(text.rsplit_once(')')?.1.trim_start().split_once(' ')?.1);
        let (idle, ours) = (machine.get(3..5)?, own.get(10..14)?);
        Some(Self { all: machine.iter().sum(), idle: idle.iter().sum(), ours: ours.iter().sum() })
    }

    /// The percentage of the processors that others have used since then, with the host of a virtual machine. The time
    /// of children counts as ours once they have ended.
    pub(crate) fn others_percent(self, then: Self) -> f64 {
        let all = (self.all - then.all).max(1.0);
        let used = all - (self.idle - then.idle) - (self.ours - then.ours);
        (100.0 * used / all).clamp(0.0, 100.0)
    }
}
