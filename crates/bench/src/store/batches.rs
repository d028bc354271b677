//! The batches, as a function of the seed: every way writes the same rows in the same order.

use tally_load::{Random, player};
use tally_rules::{Micros, PlayerId, Record};

/// The instant of every row before the run; those of the run follow.
pub(super) const BEGIN_MICROS: i64 = 1_700_000_000_000_000;

/// Batches of random rows, each in order of keys and without duplicates.
pub(super) struct Batches {
    random: Random,
    pub(super) players: u64,
    size: usize,
    done: i64,
}

impl Batches {
    pub(super) fn new(players: u64, size: usize, seed: u64) -> Self {
        Self { random: Random::new(seed), players, size, done: 0 }
    }

    /// The next batch.
    pub(super) fn draw(&mut self) -> Vec<(PlayerId, Record)> {
        self.done += 1;
        let mut players: Vec<u64> = (0..self.size).map(|_| self.random.below(self.players)).collect();
        // Names have leading zeros, so they are in the order of their numbers.
        players.sort_unstable();
        players.dedup();
        let at = Micros(BEGIN_MICROS + self.done);
        let row = |number| (name(number), Record { score: self.done, subscore: 0, at });
        players.into_iter().map(row).collect()
    }
}

/// A player's name.
pub(super) fn name(number: u64) -> PlayerId {
    PlayerId::new(&player(number)).expect("a name of 16 letters and digits")
}

/// The initial value of each row.
pub(super) fn before() -> Record {
    Record { score: 0, subscore: 0, at: Micros(BEGIN_MICROS) }
}
