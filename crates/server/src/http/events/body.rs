//! The body of an event stream: bytes from a queue, until the sender is dropped.
//!
//! Not here: the events (`stream_task`).

use bytes::Bytes;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// The body of an event stream.
pub(in crate::http) struct EventBody {
    queue: mpsc::Receiver<Bytes>,
    /// Dropped with the body: the client has read it all, or its connection is closed.
    _open: oneshot::Sender<()>,
}

/// The sending end of a body.
pub(in crate::http) struct Queue {
    pub(in crate::http) send: mpsc::Sender<Bytes>,
    /// Ends when the body does.
    pub(in crate::http) closed: oneshot::Receiver<()>,
}

impl EventBody {
    /// Creates a body with its sending end, and a queue of at most `most` pieces.
    pub(in crate::http) fn new(most: usize) -> (Self, Queue) {
        let ((send, queue), (open, closed)) = (mpsc::channel(most), oneshot::channel());
        (Self { queue, _open: open }, Queue { send, closed })
    }

    pub(in crate::http) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.queue.poll_recv(context)
    }
}
