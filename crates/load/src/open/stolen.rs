//! The processor time that the host of a virtual machine gave to other guests (`steal` of proc(5)).
//!
//! A pause of a third of a second by the host shows in the latencies of a run, so its reader must see it. Not here: what
//! other processes of the same machine used.

/// Processor time up to a moment, in ticks of all cores together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// Up to now; `None` on a system without `/proc/stat`.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user nice system idle iowait irq softirq steal. The columns after these are part of the first two.
    fn parse(text: &str) -> Option<Self> {
        let numbers = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
        let numbers: Vec<u64> = numbers.map_while(|number| number.parse().ok()).collect();
        Some(Self { all: numbers.iter().sum(), stolen: *numbers.get(7)? })
    }

    /// Percentage of all processor time since `then`.
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
