//! The body of an answer that goes on: bytes from a queue, until whoever fills it lets go.
//!
//! Not here: what is in it (`pump`).

use bytes::Bytes;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// What is sent, as it comes.
pub(in crate::http) struct EventBody {
    queue: mpsc::Receiver<Bytes>,
    /// Dropped with the body: all of it has been taken, or nobody takes it any more.
    _gone: oneshot::Sender<()>,
}

/// The other end of a body.
pub(super) struct Queue {
    pub(super) send: mpsc::Sender<Bytes>,
    /// Ends when the body does.
    pub(super) gone: oneshot::Receiver<()>,
}

impl EventBody {
    /// A body with its other end; so many pieces wait in between.
    pub(super) fn new(most: usize) -> (Self, Queue) {
        let ((send, queue), (said, gone)) = (mpsc::channel(most), oneshot::channel());
        (Self { queue, _gone: said }, Queue { send, gone })
    }

    pub(in crate::http) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.queue.poll_recv(context)
    }
}
