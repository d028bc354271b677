//! How much of the processors the host of a virtual machine gave to others, as the system counts it (`steal` of proc(5)).
//!
//! A run on a machine that was taken away for a third of a second shows that in its latencies. A reader of them has to know.
//! Not here: what other processes of the same machine used.

/// Processor time up to a moment, in ticks of all cores together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// Up to now; `None` where the system does not tell in the way of Linux.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user nice system idle iowait irq softirq steal; what follows is counted in the first two as well.
    fn parse(text: &str) -> Option<Self> {
        let numbers = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
        let numbers: Vec<u64> = numbers.map_while(|number| number.parse().ok()).collect();
        Some(Self { all: numbers.iter().sum(), stolen: *numbers.get(7)? })
    }

    /// Percent of all processor time since then.
    pub(super) fn stolen_since(self, then: Self) -> f64 {
        let all = self.all.saturating_sub(then.all).max(1);
        100.0 * self.stolen.saturating_sub(then.stolen) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Ticks;

    #[test]
    fn it_is_the_eighth_number_of_what_went_by() {
        let then = Ticks::parse("cpu  10 0 10 60 0 0 0 20 0 0\ncpu0 1 2").expect("eight numbers");
        let now = Ticks::parse("cpu  30 0 30 110 0 0 0 30 7 7\n").expect("eight numbers");
        assert_eq!((then.all, now.all), (100, 200));
        assert!((now.stolen_since(then) - 10.0).abs() < 1e-9);
        assert!(now.stolen_since(now).abs() < 1e-9);
        assert_eq!(Ticks::parse("cpu  1 2 3 4 5 6 7"), None);
        assert_eq!(Ticks::parse("intr 5"), None);
    }
}
