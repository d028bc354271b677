//! The submits of every driver, as a file, and their expected result.
//!
//! A model in memory does them, too. The result is the final rows, and the sum of all previous scores, which only a
//! read returns.

use crate::submit::{BEGIN_MICROS, Contents};
use crate::upsert::shares::{divide, streams};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tally_load::player;

/// The number of callers, and the submits of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) players: u64,
    pub(super) callers: usize,
    pub(super) of_each: u64,
    pub(super) seed: u64,
}

/// The expected result.
pub(super) struct Expected {
    pub(super) contents: Contents,
    pub(super) previous: i64,
}

impl Work {
    pub(super) fn operations(&self) -> u64 {
        self.callers as u64 * self.of_each
    }

    /// Writes the submits: caller, player, score, instant.
    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        let streams = streams(self.callers, self.players, self.seed);
        for (caller, share) in divide(streams, self.callers, self.of_each).into_iter().enumerate() {
            for one in share {
                writeln!(file, "{caller}\t{}\t{}\t{}", player(one.player), one.score, one.at_micros)?;
            }
        }
        file.flush()
    }

    /// Does the submits in memory.
    pub(super) fn expected(&self) -> Expected {
        let mut rows = vec![(0_i64, BEGIN_MICROS); self.players as usize];
        let mut previous = 0_i64;
        let streams = streams(self.callers, self.players, self.seed);
        for one in divide(streams, self.callers, self.of_each).into_iter().flatten() {
            let row = &mut rows[one.player as usize];
            previous = previous.wrapping_add(row.0);
            *row = (one.score, one.at_micros);
        }
        let mut contents = Contents::default();
        for (number, (score, at)) in (0..).zip(rows) {
            contents.add(&player(number), score, 0, at);
        }
        Expected { contents, previous }
    }
}
