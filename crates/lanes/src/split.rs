//! Finds the guilty request: the batch in pieces, first things first.
//!
//! A piece that the store refuses because of some row is cut into two halves, the earlier one on top, so
//! whatever is left is always tried in the order of arrival. One guilty request among n costs at most
//! 2·log₂ n + 1 commits, rounded up; k of them at most k times that, and never more than 2·n − 1.
//! It does not guess: a request fails only after the store has refused it alone.

use crate::batch::Batch;

/// What is left of a batch, in order.
pub(crate) struct Pieces<Q, R> {
    /// Last is next. Holds one piece per halving on the way down: about log₂ n.
    stack: Vec<Batch<Q, R>>,
}

impl<Q, R> Pieces<Q, R> {
    pub(crate) fn whole(batch: Batch<Q, R>) -> Self {
        Self { stack: vec![batch] }
    }

    /// The earliest piece that is left.
    pub(crate) fn next(&mut self) -> Option<Batch<Q, R>> {
        self.stack.pop()
    }

    /// Puts a piece of at least two requests back as two halves.
    pub(crate) fn halve(&mut self, mut piece: Batch<Q, R>) {
        assert!(piece.requests.len() >= 2, "a single request cannot be split");
        assert!(piece.requests.len() == piece.replies.len(), "every request has one reply");
        let middle = piece.requests.len() / 2;
        let later =
            Batch { requests: piece.requests.split_off(middle), replies: piece.replies.split_off(middle) };
        self.stack.push(later);
        self.stack.push(piece);
    }
}
