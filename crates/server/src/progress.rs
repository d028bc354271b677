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
    pub(crate) fn request(&self) {
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
    fn check_progress(
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
        self.check_progress(cx, wrote, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.transport).poll_write_vectored(cx, parts);
        self.check_progress(cx, wrote, parts.iter().map(|part| part.len()).sum())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    /// No answer in this time is a fault; no measurement.
    const GIVE_UP: Duration = Duration::from_secs(60);
    /// What a client is sent that has more to read than the system takes.
    const MUCH: usize = 1 << 20;

    fn socket(patience: Duration) -> (Socket, Linger, UnixStream) {
        let ((ours, theirs), linger) = (UnixStream::pair().unwrap(), Linger::default());
        (Socket::new(Transport::Unix(ours), patience, linger.clone()), linger, theirs)
    }

    /// The system takes so many bytes of many, and then no more for now.
    async fn takes(socket: &mut Socket, bytes: usize) -> Poll<io::Result<usize>> {
        poll_fn(|cx| {
            assert!(socket.check_progress(cx, Poll::Ready(Ok(bytes)), MUCH).is_ready());
            Poll::Ready(socket.check_progress(cx, Poll::Pending, MUCH))
        })
        .await
    }

    #[tokio::test]
    async fn a_byte_now_and_then_is_no_progress() {
        let (mut socket, _, _client) = socket(Duration::from_millis(50));
        for _ in 0..5_000 {
            if let Poll::Ready(ended) = takes(&mut socket, 1).await {
                return assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
            }
            sleep(Duration::from_millis(1)).await;
        }
        panic!("a client that takes a byte now and then keeps its connection");
    }

    #[tokio::test]
    async fn the_time_begins_again_with_64_kib_or_all_there_is() {
        let (mut socket, _, _client) = socket(GIVE_UP);
        assert!(takes(&mut socket, 0).await.is_pending());
        let begun = socket.stalled.as_ref().unwrap().end.deadline();
        let deadline = |socket: &Socket| socket.stalled.as_ref().unwrap().end.deadline();
        sleep(Duration::from_millis(5)).await;
        assert!(takes(&mut socket, PROGRESS_BYTES - 1).await.is_pending());
        assert_eq!(deadline(&socket), begun, "one byte less is no progress");
        assert!(takes(&mut socket, 1).await.is_pending());
        assert!(deadline(&socket) > begun, "bytes of one stretch count together");
        let wrote = poll_fn(|cx| Poll::Ready(socket.check_progress(cx, Poll::Ready(Ok(10)), 10))).await;
        assert!(wrote.is_ready() && socket.stalled.is_none(), "nothing is left to be taken");
    }

    /// Writes until the other end is closed, or so much; what was written.
    async fn write(client: &mut UnixStream, most: usize) -> usize {
        let (chunk, mut wrote) = ([0; 16 << 10], 0);
        while wrote < most {
            match client.write(&chunk).await {
                Ok(some) => wrote += some,
                Err(_) => break,
            }
        }
        wrote
    }

    async fn close(mut socket: Socket) {
        tokio::time::timeout(GIVE_UP, socket.shutdown()).await.expect("it closes").unwrap();
    }

    #[tokio::test]
    async fn a_socket_that_lingers_reads_what_is_still_sent() {
        let (mut socket, linger, mut client) = socket(GIVE_UP);
        socket.write_all(b"why").await.unwrap();
        linger.request();
        let sends = async {
            let wrote = write(&mut client, MUCH).await;
            client.shutdown().await.unwrap();
            let mut received = String::new();
            client.read_to_string(&mut received).await.unwrap();
            (wrote, received)
        };
        let ((), (wrote, received)) = tokio::join!(close(socket), sends);
        assert_eq!((wrote, received.as_str()), (MUCH, "why"));
    }

    #[tokio::test]
    async fn a_socket_lingers_only_if_it_was_asked_to() {
        let (mut socket, _, _client) = socket(GIVE_UP);
        // It would be too long, because the client neither sends nor closes.
        socket.lingering = Some(ProgressDeadline::new(2 * GIVE_UP));
        close(socket).await;
    }

    #[tokio::test]
    async fn a_client_that_never_stops_sending_is_cut() {
        let (mut socket, linger, mut client) = socket(GIVE_UP);
        linger.request();
        // The time is not what ends it here.
        socket.lingering = Some(ProgressDeadline::new(GIVE_UP));
        let ((), wrote) = tokio::join!(close(socket), write(&mut client, 4 * LINGER_BYTES));
        assert!((LINGER_BYTES..2 * LINGER_BYTES).contains(&wrote), "{wrote}");
    }

    #[tokio::test]
    async fn a_client_that_neither_sends_nor_closes_is_cut() {
        let (mut socket, linger, _client) = socket(GIVE_UP);
        linger.request();
        // As if the time had begun almost `LINGER` ago.
        socket.lingering = Some(ProgressDeadline::new(Duration::from_millis(20)));
        close(socket).await;
    }
}
