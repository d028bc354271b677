//! The socket of a connection, TCP or Unix, with what both can do.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

pub(crate) enum Transport {
    Tcp(TcpStream),
    Unix(UnixStream),
}

macro_rules! on_socket {
    ($self:expr, $socket:ident => $body:expr) => {
        match $self {
            Self::Tcp($socket) => $body,
            Self::Unix($socket) => $body,
        }
    };
}

impl Transport {
    /// Whether it may be encrypted: a Unix socket does not leave the machine.
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Turns off Nagle's algorithm: responses are small and written whole, so waiting to fill a packet only delays them.
    pub(crate) fn do_not_wait(&self) {
        if let Self::Tcp(tcp) = self {
            let _ = tcp.set_nodelay(true);
        }
    }

    /// Writes what the system takes without waiting.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        on_socket!(self, socket => socket.try_write(bytes))
    }

    /// Registers the socket with the runtime of the caller.
    pub(crate) fn here(self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(tcp) => Self::Tcp(TcpStream::from_std(tcp.into_std()?)?),
            Self::Unix(unix) => Self::Unix(UnixStream::from_std(unix.into_std()?)?),
        })
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_socket!(self.get_mut(), socket => Pin::new(socket).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        on_socket!(self.get_mut(), socket => Pin::new(socket).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_socket!(self.get_mut(), socket => Pin::new(socket).poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        on_socket!(self, socket => socket.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_socket!(self.get_mut(), socket => Pin::new(socket).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_socket!(self.get_mut(), socket => Pin::new(socket).poll_shutdown(cx))
    }
}
