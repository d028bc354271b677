//! Seeded randomness: equal seeds give equal runs.
//!
//! `TALLY_SEED` sets the seed, `TALLY_SOAK` multiplies lengths. Not here: good randomness; a xorshift is enough to
//! choose operations.

/// A xorshift generator.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator of this seed.
    pub fn new(seed: u64) -> Self {
        // Zero is the one state that a xorshift never leaves; multiplying by an odd number keeps seeds apart.
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// A generator from the run's seed, independent of other purposes.
    pub fn of(purpose: &str) -> Self {
        let salt =
            purpose.bytes().fold(0u64, |salt, byte| salt.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Self::new(seed().wrapping_add(salt))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "there is no number below zero");
        (self.bits() >> 11) % end
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        assert!(least <= most, "the range is empty");
        least + i64::try_from(self.below(most.abs_diff(least) + 1)).expect("ranges of tests are small")
    }

    /// True with this probability, in percent.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let at = self.below(choices.len() as u64);
        &choices[usize::try_from(at).expect("an index fits")]
    }
}

/// The seed of this run.
pub fn seed() -> u64 {
    let text = std::env::var("TALLY_SEED").ok();
    text.map_or(20_261_121, |text| text.parse().expect("TALLY_SEED is a number"))
}

/// A length, multiplied in a soak run.
pub fn soak(length: usize) -> usize {
    let text = std::env::var("TALLY_SOAK").ok();
    length * text.map_or(1, |text| text.parse::<usize>().expect("TALLY_SOAK is a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_seeds_differ() {
        let run = |seed| {
            let mut rng = Rng::new(seed);
            (0..20).map(|_| rng.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn ranges_reach_both_ends() {
        let mut rng = Rng::new(1);
        let seen: std::collections::BTreeSet<i64> = (0..200).map(|_| rng.between(-2, 2)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
    }
}
