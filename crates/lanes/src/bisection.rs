//! Bisection: finds the poison request of a batch in pieces, in order of arrival.
//!
//! A piece that the store refuses because of some row is cut into two halves. The earlier half is on top of the stack, so
//! the rest is always tried in order of arrival. One poison request among n costs at most 2·log₂ n + 1 commits, rounded up.
//! Several, k, cost at most k times that, and never more than 2·n − 1.
//! A request fails only after the store has refused it alone.

use crate::batch::Batch;

/// The pieces of a batch that are left, in order.
pub(crate) struct Pieces<Q, R> {
    /// The last piece is next. Holds one piece for each halving: about log₂ n.
    stack: Vec<Batch<Q, R>>,
}

impl<Q, R> Pieces<Q, R> {
    pub(crate) fn whole(batch: Batch<Q, R>) -> Self {
        Self { stack: vec![batch] }
    }

    /// The earliest remaining piece.
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
