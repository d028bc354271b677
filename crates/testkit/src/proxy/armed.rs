//! The bytes at which a connection is cut, and their position in the stream.
//!
//! Bytes come in pieces, so a pattern may begin in an earlier piece. Not here: cutting.

use super::Cut;

/// An armed cut.
#[derive(Debug)]
pub(super) struct Armed {
    pub(super) pattern: Vec<u8>,
    /// How many times the pattern may still pass.
    pub(super) passes: usize,
    pub(super) cut: Cut,
}

impl Armed {
    /// The position of the cut in a piece of a client, if it is there.
    pub(super) fn place(&mut self, passed: &[u8], piece: &[u8]) -> Option<(usize, Cut)> {
        let places = places(passed, piece, &self.pattern);
        let place = places.get(self.passes).map(|place| (*place, self.cut));
        if place.is_none() {
            self.passes -= places.len();
        }
        place
    }
}

/// How many times a pattern ends in a piece.
pub(super) fn count(passed: &[u8], piece: &[u8], pattern: &[u8]) -> usize {
    places(passed, piece, pattern).len()
}

/// The positions in a piece where patterns begin, or their parts that have not passed before.
fn places(passed: &[u8], piece: &[u8], pattern: &[u8]) -> Vec<usize> {
    let kept = passed.len().min(pattern.len() - 1);
    let both = [&passed[passed.len() - kept..], piece].concat();
    let windows = both.windows(pattern.len()).enumerate();
    windows.filter(|(_, window)| *window == pattern).map(|(at, _)| at.saturating_sub(kept)).collect()
}
