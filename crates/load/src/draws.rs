//! Which players requests are for: uniform, or skewed to a few popular ones.
//!
//! Zipf's law with the exponent of YCSB, 0.99: the player of popularity k is drawn in proportion to 1/k^0.99. Draws use
//! rejection-inversion (Hörmann and Derflinger). It needs no table and takes as long for any number of players. Popular
//! players are scattered over all names, so that they are not neighbours in a table.

use crate::random::Random;

const EXPONENT: f64 = 0.99;
/// A prime larger than any number of players of a run, so that multiplication by it is a permutation of the players.
const SCATTER: u64 = 1_000_000_007;

/// How requests spread over players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// All players equally often.
    Uniform,
    /// By Zipf's law.
    Zipf,
}

impl Skew {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "Zipf 0.99",
        }
    }
}

/// Draws of players, by number.
#[derive(Clone, Debug)]
pub struct Draws {
    count: u64,
    zipf: Option<Zipf>,
}

impl Draws {
    /// Draws from `count` players.
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    #[must_use]
    pub fn new(skew: Skew, count: u64) -> Self {
        assert!(count > 0, "there is a player to draw");
        Self { count, zipf: (skew == Skew::Zipf).then(|| Zipf::new(count)) }
    }

    /// The number of the next player.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        match &self.zipf {
            None => random.below(self.count),
            Some(zipf) => {
                ((u128::from(zipf.draw(random)) * u128::from(SCATTER)) % u128::from(self.count)) as u64
            }
        }
    }
}

/// Popularities from 0, the most popular player.
#[derive(Clone, Copy, Debug)]
struct Zipf {
    count: u64,
    first: f64,
    last: f64,
    near: f64,
}

impl Zipf {
    fn new(count: u64) -> Self {
        Self {
            count,
            first: integral(1.5) - 1.0,
            last: integral(count as f64 + 0.5),
            near: 2.0 - inverse(integral(2.5) - density(2.0)),
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let part = (random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
            let area = self.last + part * (self.first - self.last);
            let place = inverse(area);
            let nearest = place.round().clamp(1.0, self.count as f64);
            if nearest - place <= self.near || area >= integral(nearest + 0.5) - density(nearest) {
                return nearest as u64 - 1;
            }
        }
    }
}

fn density(place: f64) -> f64 {
    place.powf(-EXPONENT)
}

fn integral(place: f64) -> f64 {
    (place.powf(1.0 - EXPONENT) - 1.0) / (1.0 - EXPONENT)
}

fn inverse(area: f64) -> f64 {
    (1.0 + area * (1.0 - EXPONENT)).powf(1.0 / (1.0 - EXPONENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularities_follow_the_law() {
        const COUNT: u64 = 50;
        const DRAWS: u64 = 200_000;
        let (zipf, mut random) = (Zipf::new(COUNT), Random::new(7));
        let mut seen = [0_u64; COUNT as usize];
        (0..DRAWS).for_each(|_| seen[zipf.draw(&mut random) as usize] += 1);
        let all: f64 = (1..=COUNT).map(|place| density(place as f64)).sum();
        for (at, seen) in seen.into_iter().enumerate() {
            let expected = DRAWS as f64 * density(at as f64 + 1.0) / all;
            // Five standard deviations: with this seed it always holds.
            assert!((seen as f64 - expected).abs() < 5.0 * expected.sqrt(), "{at}: {seen} for {expected}");
        }
    }

    #[test]
    fn every_draw_is_a_player_and_one_is_drawn_most() {
        for count in [1, 2, 1_000, 10_000_000] {
            for skew in [Skew::Uniform, Skew::Zipf] {
                let (draws, mut random) = (Draws::new(skew, count), Random::new(1));
                assert!((0..10_000).all(|_| draws.draw(&mut random) < count));
            }
        }
        let (draws, mut random) = (Draws::new(Skew::Zipf, 1_000), Random::new(1));
        let mut seen = vec![0; 1_000];
        (0..100_000).for_each(|_| seen[draws.draw(&mut random) as usize] += 1);
        assert!(seen.iter().filter(|seen| **seen > 0).count() > 950, "scattering loses no player");
        assert!(seen.iter().max().unwrap() > &10_000);
    }
}
