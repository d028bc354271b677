//! Changed boards that are not read again yet, in an order in which none starves.
//!
//! A board of an unavailable database stays here until that is back. So each board is tried once before any is tried again.
//! Not here: reading a board (`servers`).

use std::collections::BTreeSet;
use tally_store::BoardNo;

/// The boards to read again.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// Not tried since they have changed, or since the last turn.
    left: BTreeSet<BoardNo>,
    /// Tried in this turn, and still to be read.
    tried: BTreeSet<BoardNo>,
}

impl Unread {
    /// Adds boards that have changed.
    pub(super) fn extend(&mut self, boards: impl IntoIterator<Item = BoardNo>) {
        self.left.extend(boards);
    }

    /// The next boards to try, at most so many. The newest come first: a request may wait for a name.
    pub(super) fn next(&mut self, most: usize) -> Vec<BoardNo> {
        if self.left.is_empty() {
            std::mem::swap(&mut self.left, &mut self.tried);
        }
        self.left.iter().rev().take(most).copied().collect()
    }

    /// A board was tried.
    pub(super) fn tried(&mut self, board: BoardNo, is_read: bool) {
        self.left.remove(&board);
        if is_read {
            self.tried.remove(&board);
        } else {
            self.tried.insert(board);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boards(numbers: impl IntoIterator<Item = u32>) -> Vec<BoardNo> {
        numbers.into_iter().map(BoardNo).collect()
    }

    #[test]
    fn boards_that_cannot_be_read_hold_up_no_others() {
        let mut unread = Unread::default();
        unread.extend(boards(1..=5));
        let mut read = Vec::new();
        for _ in 0..3 {
            for board in unread.next(2) {
                // The others have rows on a database that is unavailable.
                let is_read = board.0 <= 2;
                unread.tried(board, is_read);
                read.extend(is_read.then_some(board));
            }
        }
        assert_eq!(read, boards([2, 1]));
        // A new one comes first, and then the others once more.
        unread.extend(boards([9]));
        assert_eq!(unread.next(2), boards([9]));
        unread.tried(BoardNo(9), true);
        assert_eq!(unread.next(2), boards([5, 4]));
        // One that was not tried in its round stays.
        unread.tried(BoardNo(5), false);
        assert_eq!(unread.next(2), boards([4, 3]));
        // A board that changes again is read once.
        unread.extend(boards([5]));
        (3..=5).for_each(|no| unread.tried(BoardNo(no), true));
        assert_eq!(unread.next(2), boards([]));
    }
}
