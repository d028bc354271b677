//! Whether a request is sampled: by the flag of its caller, else by the ratio.
//!
//! The random numbers come from a small generator per thread, because a system call for every request would cost more
//! than the rest of it. Ids come from the system. Not here: what is sampled.

use std::cell::Cell;
use std::str::FromStr;

/// The ratio of sampled requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// A request is sampled if its number of 64 bits is below this.
    below: u64,
}

impl Ratio {
    /// From 0, none, to 1, all.
    pub fn new(ratio: f64) -> Option<Self> {
        let numbers = ratio * 2f64.powi(64);
        // A ratio of 1 rounds to the largest number.
        (0.0..=1.0).contains(&ratio).then_some(Self { below: numbers as u64 })
    }

    /// Whether the next request is sampled.
    pub(crate) fn draw(self) -> bool {
        self.below == u64::MAX || random() < self.below
    }
}

impl FromStr for Ratio {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().ok().and_then(Self::new).ok_or(())
    }
}

thread_local! {
    static STATE: Cell<u64> = Cell::new(getrandom::u64().unwrap_or_default());
}

/// SplitMix64.
fn random() -> u64 {
    STATE.with(|state| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_between_none_and_all() {
        for good in ["0", "0.01", "1", "1.0", "1e-3"] {
            assert!(good.parse::<Ratio>().is_ok(), "{good}");
        }
        for bad in ["", "-0.1", "1.01", "NaN", "inf", "half", "1 %"] {
            assert!(bad.parse::<Ratio>().is_err(), "{bad}");
        }
    }

    #[test]
    fn as_many_are_sampled_as_the_ratio_says() {
        let sampled = |ratio| {
            let ratio = Ratio::new(ratio).unwrap();
            (0..100_000).filter(|_| ratio.draw()).count()
        };
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 100_000));
        // Thirty times the deviation of such a draw.
        assert!((24_000 - 4_000..24_000 + 4_000).contains(&sampled(0.24)));
    }
}
