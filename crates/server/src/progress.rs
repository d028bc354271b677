//! A socket that limits how slowly a client may read, and that can close in two steps.
//!
//! The server keeps in memory what a client does not read. So a client must read [`PROGRESS_BYTES`], or all there is,
//! within each period of `patience`. The time runs only while the system takes no bytes, so it never affects a client that
//! reads.
//!
//! A server that closes while a client still sends resets the connection, and the client never reads the response with the
//! reason. So after an early response the socket first shuts down its own direction. Then it reads and discards input for a
//! while ([`Linger`]).

use crate::transport::Transport;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The minimum number of bytes that counts as progress within the given time.
pub(crate) const PROGRESS_BYTES: usize = 64 << 10;
/// How long a closing socket reads on.
const LINGER: Duration = Duration::from_secs(10);
/// The maximum number of bytes that it reads meanwhile.
const LINGER_BYTES: usize = 64 << 20;

/// Requests that a socket closes in two steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Linger(Arc<AtomicBool>);

impl Linger {
    pub(crate) fn ask(&self) {
        self.0.store(true, Relaxed);
    }
}

/// A deadline, and the bytes transferred before it.
struct ProgressDeadline {
    end: Pin<Box<Sleep>>,
    bytes: usize,
}

impl ProgressDeadline {
    fn new(time: Duration) -> Self {
        Self { end: Box::pin(sleep(time)), bytes: 0 }
    }
}

pub(crate) struct Socket {
    transport: Transport,
    patience: Duration,
    stalled: Option<ProgressDeadline>,
    linger: Linger,
    lingering: Option<ProgressDeadline>,
}

impl Socket {
    /// Creates a socket whose client may take this long for each [`PROGRESS_BYTES`].
    pub(crate) fn new(transport: Transport, patience: Duration, linger: Linger) -> Self {
        Self { transport, patience, stalled: None, linger, lingering: None }
    }

    /// Passes on the result of a write of `wanted` bytes, or times out.
    fn judge(
        &mut self,
        cx: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
        wanted: usize,
    ) -> Poll<io::Result<usize>> {
        match (&wrote, &mut self.stalled) {
            (Poll::Ready(Ok(some)), Some(stalled)) => {
                stalled.bytes += some;
                if *some == wanted || stalled.bytes >= PROGRESS_BYTES {
                    self.stalled = None;
                }
                wrote
            }
            (Poll::Ready(_), _) => wrote,
            (Poll::Pending, stalled) => {
                let stalled = stalled.get_or_insert_with(|| ProgressDeadline::new(self.patience));
                ready!(stalled.end.as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.transport).poll_write(cx, bytes);
        self.judge(cx, wrote, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.transport).poll_write_vectored(cx, parts);
        self.judge(cx, wrote, parts.iter().map(|part| part.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = &mut *self;
        ready!(Pin::new(&mut socket.transport).poll_shutdown(cx))?;
        if !socket.linger.0.load(Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let lingering = socket.lingering.get_or_insert_with(|| ProgressDeadline::new(LINGER));
        while lingering.bytes < LINGER_BYTES {
            let mut room = [0; 16 << 10];
            let mut buffer = ReadBuf::new(&mut room);
            match Pin::new(&mut socket.transport).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    lingering.bytes += buffer.filled().len()
                }
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return lingering.end.as_mut().poll(cx).map(Ok),
            }
        }
        Poll::Ready(Ok(()))
    }
}
