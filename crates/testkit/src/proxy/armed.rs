//! At which bytes a connection is cut, and where they are in what passes.
//!
//! Bytes come in pieces, so a pattern may begin in what has passed before. Not here: cutting.

use super::Cut;

/// What the proxy waits for.
#[derive(Debug)]
pub(super) struct Armed {
    pub(super) pattern: Vec<u8>,
    /// How often it may still pass.
    pub(super) passes: usize,
    pub(super) cut: Cut,
}

impl Armed {
    /// Where to cut in a piece of a client, if there.
    pub(super) fn place(&mut self, passed: &[u8], piece: &[u8]) -> Option<(usize, Cut)> {
        let places = places(passed, piece, &self.pattern);
        let place = places.get(self.passes).map(|place| (*place, self.cut));
        if place.is_none() {
            self.passes -= places.len();
        }
        place
    }
}

/// How often a pattern ends in a piece.
pub(super) fn count(passed: &[u8], piece: &[u8], pattern: &[u8]) -> usize {
    places(passed, piece, pattern).len()
}

/// Where in a piece patterns begin, or their parts that are not in what has passed before.
fn places(passed: &[u8], piece: &[u8], pattern: &[u8]) -> Vec<usize> {
    let kept = passed.len().min(pattern.len() - 1);
    let both = [&passed[passed.len() - kept..], piece].concat();
    let windows = both.windows(pattern.len()).enumerate();
    windows.filter(|(_, window)| *window == pattern).map(|(at, _)| at.saturating_sub(kept)).collect()
}
