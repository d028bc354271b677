//! The submits, as a function of the seed: both ways do the same, so both must end with the same records.
//!
//! Each caller owns the players whose number leaves its remainder and has a sequence of its own. A player's scores
//! come from one caller, one after the other, each with its own instant. So the last one is the final record, whatever
//! the order of the callers.

use rusqlite::Connection;
use std::hash::{DefaultHasher, Hash, Hasher};
use tally_load::Random;

/// The instant of every score before the run; those of the run follow.
pub(crate) const BEGIN_MICROS: i64 = 1_700_000_000_000_000;

/// One submit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) player: u64,
    pub(crate) score: i64,
    pub(crate) at_micros: i64,
}

/// The submits of one caller.
pub(crate) struct Operations {
    random: Random,
    caller: u64,
    callers: u64,
    players: u64,
    done: u64,
}

impl Operations {
    pub(crate) fn new(caller: usize, callers: usize, players: u64, seed: u64) -> Self {
        let (caller, callers) = (caller as u64, callers as u64);
        Self { random: Random::new(seed ^ (caller << 32)), caller, callers, players, done: 0 }
    }

    /// The next submit. Consecutive scores of a player differ, because an equal one would keep the older instant.
    pub(crate) fn draw(&mut self) -> Operation {
        let own = (self.players - self.caller).div_ceil(self.callers);
        let player = self.random.below(own) * self.callers + self.caller;
        self.done += 1;
        let score = self.random.below(1_000_000) as i64 * 1_000_000 + (self.done % 1_000_000) as i64;
        Operation { player, score, at_micros: BEGIN_MICROS + self.done as i64 }
    }
}

/// The contents of a table: a hash of its rows in order of players, and their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    hasher: DefaultHasher,
    pub(crate) rows: u64,
}

impl Contents {
    pub(crate) fn add(&mut self, player: &str, score: i64, subscore: i64, at_micros: i64) {
        (player, score, subscore, at_micros).hash(&mut self.hasher);
        self.rows += 1;
    }

    /// From a statement that returns player, score, subscore and instant.
    pub(crate) fn of(connection: &Connection, list: &str) -> rusqlite::Result<Self> {
        let mut contents = Self::default();
        let mut statement = connection.prepare(list)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let player: String = row.get(0)?;
            contents.add(&player, row.get(1)?, row.get(2)?, row.get(3)?);
        }
        Ok(contents)
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }
}
