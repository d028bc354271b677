//! Random numbers from a seed: splitmix64, which costs less than any use of it.
//!
//! Not for secrets.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed; streams of neighbouring seeds have no visible relation.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// The next number below `end`. The bias of a product of 64 bits is far below what a run can show.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }
}

/// Random bits for one thing; `salt` separates the uses of it.
#[must_use]
pub fn bits_of(thing: u64, salt: u64) -> u64 {
    mix(thing.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

#[inline]
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_numbers_stay_below_their_end() {
        let (mut one, mut two) = (Random::new(7), Random::new(7));
        for _ in 0..1_000 {
            let number = one.below(10);
            assert!(number < 10);
            assert_eq!(number, two.below(10));
        }
    }
}
