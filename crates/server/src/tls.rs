//! Encrypted connections, if a certificate is configured: the same for HTTP and RESP.
//!
//! A listener serves a `Stream`, encrypted or not. The handshake happens in the task of the connection and within a time
//! limit, so a silent client does not delay others. Not here: client certificates.

mod certificate_end;

use crate::progress::{Linger, Socket};
use crate::transport::Transport;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// What a listener needs to accept encrypted connections.
#[derive(Clone)]
pub struct Tls {
    files: Arc<(PathBuf, PathBuf)>,
    /// What the files had when they were last read; shared by all clones.
    read: Arc<RwLock<FromFiles>>,
}

#[derive(Clone)]
struct FromFiles {
    acceptor: TlsAcceptor,
    /// When the certificate ends, in seconds since 1970, if it says so as it must.
    end: Option<i64>,
}

impl Tls {
    /// Reads a certificate with its chain and its private key, both in PEM files.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, String> {
        let read = Arc::new(RwLock::new(read(certificate, key)?));
        Ok(Self { files: Arc::new((certificate.to_owned(), key.to_owned())), read })
    }

    /// Reads the same files again, for new connections.
    ///
    /// # Errors
    ///
    /// If they cannot be read; the previous certificate stays.
    pub fn reload(&self) -> Result<(), String> {
        let read = read(&self.files.0, &self.files.1)?;
        *self.read.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.read.read().unwrap_or_else(PoisonError::into_inner).acceptor.clone()
    }

    /// When the certificate that is served ends, in seconds since 1970.
    pub(crate) fn end(&self) -> Option<i64> {
        self.read.read().unwrap_or_else(PoisonError::into_inner).end
    }
}

fn read(certificate: &Path, key: &Path) -> Result<FromFiles, String> {
    let of = |path: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|why| of(certificate, &why))?;
    if chain.is_empty() {
        return Err(of(certificate, &"no certificate is in it"));
    }
    let end = certificate_end::of(&chain[0]);
    let private = PrivateKeyDer::from_pem_file(key).map_err(|why| of(key, &why))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|versions| versions.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|why| of(certificate, &why))?;
    Ok(FromFiles { acceptor: TlsAcceptor::from(Arc::new(config)), end })
}

/// The time limits of a client.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    /// For the handshake.
    pub(crate) handshake: Duration,
    /// To read [`crate::progress::PROGRESS_BYTES`].
    pub(crate) write: Duration,
}

/// A connection, encrypted or not.
pub(crate) enum Stream {
    Plain(Socket),
    Encrypted(Box<TlsStream<Socket>>),
}

impl Stream {
    /// Does the handshake, if connections are encrypted.
    pub(crate) async fn accept(
        tls: Option<&Tls>,
        transport: Transport,
        patience: Patience,
        linger: Linger,
    ) -> io::Result<Self> {
        transport.do_not_wait();
        let tls = tls.filter(|_| transport.is_tcp());
        let socket = Socket::new(transport, patience.write, linger);
        let Some(tls) = tls else { return Ok(Self::Plain(socket)) };
        let shaken = tokio::time::timeout(patience.handshake, tls.acceptor().accept(socket)).await;
        Ok(Self::Encrypted(Box::new(shaken.map_err(|_| io::ErrorKind::TimedOut)??)))
    }
}

macro_rules! on_stream {
    ($self:expr, $stream:ident => $body:expr) => {
        match $self.get_mut() {
            Self::Plain($stream) => $body,
            Self::Encrypted($stream) => $body,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_stream!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        on_stream!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
