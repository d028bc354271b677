//! The limit for large responses of all clients together.
//!
//! The server holds a response until its client has read it, which a client may delay for `http.write_timeout` and longer. So
//! the bytes of each large response count until the last piece of it is in the buffer of its connection. Above the limit the
//! server refuses to answer a read. It never replaces the response of a change that was made: that one counts only.
//! Not here: small responses, which cost no count, and event streams, which have limits of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The counted bytes of all responses, and their limit.
#[derive(Debug)]
pub(crate) struct Responses {
    most: usize,
    held: AtomicUsize,
}

/// The counted bytes of one response. Dropping it releases them.
#[derive(Debug)]
pub(crate) struct ResponseShare {
    responses: Arc<Responses>,
    bytes: usize,
}

impl Responses {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: AtomicUsize::new(0) })
    }

    /// Counts a response. Returns `None` if it exceeds the limit and may be refused.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize, refusable: bool) -> Option<ResponseShare> {
        let held = self.held.fetch_add(bytes, Relaxed) + bytes;
        let share = ResponseShare { responses: Arc::clone(self), bytes };
        (held <= self.most || !refusable).then_some(share)
    }
}

impl Drop for ResponseShare {
    fn drop(&mut self) {
        self.responses.held.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_may_be_refused_has_room_or_counts_nothing() {
        let responses = Responses::new(100);
        let held = |responses: &Arc<Responses>| responses.held.load(Relaxed);
        let first = responses.hold(60, true);
        assert!(first.is_some() && responses.hold(41, true).is_none());
        assert_eq!(held(&responses), 60, "a refused one does not count");
        let change = responses.hold(41, false);
        assert!(
            change.is_some() && responses.hold(1, true).is_none(),
            "a change counts and is never refused"
        );
        drop(first);
        assert!(responses.hold(59, true).is_some());
        drop(change);
        assert_eq!(held(&responses), 0);
    }
}
