//! The same submits for every way, whatever its number of callers.
//!
//! There are as many streams of submits as the way with the most callers has; each stream has its own players. A caller
//! alternates between its streams, so a player's scores come one after the other. A round does as many submits of each
//! stream, so all tables must be equal after it. Not here: doing any of it.

use crate::submit::{Operation, Operations};

/// The submits of one caller in one round.
pub(crate) struct Share {
    streams: Vec<Operations>,
    at: usize,
    left: u64,
}

/// Every stream, at its beginning.
pub(crate) fn streams(count: usize, players: u64, seed: u64) -> Vec<Operations> {
    (0..count).map(|stream| Operations::new(stream, count, players, seed)).collect()
}

/// A round: `of_each` submits of each stream, divided among callers.
pub(crate) fn divide(streams: Vec<Operations>, callers: usize, of_each: u64) -> Vec<Share> {
    let mut shares: Vec<Share> =
        (0..callers).map(|_| Share { streams: Vec::new(), at: 0, left: 0 }).collect();
    for (number, stream) in streams.into_iter().enumerate() {
        let share = &mut shares[number % callers];
        share.streams.push(stream);
        share.left += of_each;
    }
    shares
}

impl Share {
    /// The number of remaining submits.
    pub(crate) fn left(&self) -> usize {
        self.left as usize
    }

    /// The streams for the next round.
    pub(crate) fn into_streams(self) -> Vec<Operations> {
        self.streams
    }
}

impl Iterator for Share {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        self.left = self.left.checked_sub(1)?;
        let at = self.at;
        self.at = (at + 1) % self.streams.len();
        Some(self.streams[at].draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The newest record of each player after two rounds.
    fn newest(callers: usize) -> BTreeMap<u64, (i64, i64)> {
        let (mut streams, mut newest) = (streams(16, 100, 7), BTreeMap::new());
        for _ in 0..2 {
            let mut next = Vec::new();
            for mut share in divide(streams, callers, 5) {
                for one in share.by_ref() {
                    newest.insert(one.player, (one.score, one.at_micros));
                }
                next.extend(share.into_streams());
            }
            streams = next;
        }
        newest
    }

    #[test]
    fn any_number_of_callers_ends_alike() {
        let all = newest(16);
        assert!(all.len() > 50);
        assert_eq!(newest(4), all);
        assert_eq!(newest(1), all);
    }

    #[test]
    fn a_round_is_so_many_of_each_stream() {
        let shares = divide(streams(16, 100, 7), 4, 5);
        assert_eq!(shares.into_iter().map(Iterator::count).collect::<Vec<_>>(), [20; 4]);
    }
}
