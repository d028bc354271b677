//! HTTP connections: accepted within limits, served, and drained.

use super::call::Peer;
use super::dispatch::Dispatch;
use super::routes::Serves;
use crate::accept::{Accepted, Acceptor};
use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX, OPERATOR_CONNECTIONS, RESERVED_HEAD_TIMEOUT};
use crate::listener::{Listen, Listeners, SocketFile};
use crate::progress::Linger;
use crate::readiness::Readiness;
use crate::tls::{Patience, Stream, Tls};
use crate::trust::Trust;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// The response to a client without a slot.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n";

/// A running HTTP listener.
pub struct HttpServer {
    /// Its TCP address, with the port that the system chose.
    pub address: Option<SocketAddr>,
    /// Its Unix socket.
    pub file: Option<SocketFile>,
    stop: oneshot::Sender<()>,
    accepting: JoinHandle<()>,
}

/// Starts the listener.
pub async fn start(
    readiness: Arc<Readiness>,
    listen: &Listen,
    tls: Option<Tls>,
) -> std::io::Result<HttpServer> {
    let (listeners, address, file) = listen.open().await?;
    let (stop, stopped) = oneshot::channel();
    let accepting = tokio::spawn(accept_all(readiness, (listeners, address), (tls, Serves::All), stopped));
    Ok(HttpServer { address, file, stop, accepting })
}

/// A listener of operators on a thread of its own, so that no load of the others delays it.
pub struct OperatorServer {
    /// Its address, with the port that the system chose.
    pub address: Option<SocketAddr>,
    stop: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

/// Starts the listener of operators.
pub fn start_for_operators(
    readiness: Arc<Readiness>,
    address: &str,
    tls: Option<Tls>,
) -> std::io::Result<OperatorServer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (listeners, address, _) = runtime.block_on(Listen::tcp(address).open())?;
    let (stop, stopped) = oneshot::channel();
    let serving = accept_all(readiness, (listeners, address), (tls, Serves::Operators), stopped);
    let thread = std::thread::Builder::new().name("tally-operators".into());
    let thread = thread.spawn(move || runtime.block_on(serving))?;
    Ok(OperatorServer { address, stop, thread })
}

impl OperatorServer {
    /// Stops accepting, and waits for running requests as long as the limits allow. Blocks.
    pub fn stop(self) {
        let _ = self.stop.send(());
        if self.thread.join().is_err() {
            tracing::error!("the listener of operators panicked");
        }
    }
}

impl HttpServer {
    /// Stops accepting, and waits for running requests as long as the limits allow.
    pub async fn stop(self) {
        // The receiver is dropped if accepting has ended by itself.
        let _ = self.stop.send(());
        drop(self.file);
        if self.accepting.await.is_err() {
            tracing::error!("the HTTP listener panicked");
        }
    }
}

async fn accept_all(
    readiness: Arc<Readiness>,
    (listeners, address): (Listeners, Option<SocketAddr>),
    (tls, serves): (Option<Tls>, Serves),
    mut stopped: oneshot::Receiver<()>,
) {
    let dispatch = Arc::new(Dispatch::new(Arc::clone(&readiness), serves));
    let rejection = if tls.is_some() { b"".as_slice() } else { FULL };
    let (protocol, limits) = match serves {
        Serves::All => ("http", readiness.limits.connections),
        Serves::Operators => ("operators", OPERATOR_CONNECTIONS),
    };
    let refused = readiness.metrics.refused(protocol);
    let mut acceptor = Acceptor::new(listeners, limits, true, rejection, refused);
    let graceful = GracefulShutdown::new();
    loop {
        let Accepted { stream, peer, slot } = tokio::select! {
            _ = &mut stopped => break,
            accepted = acceptor.next() => accepted,
        };
        let (readiness, dispatch, tls) = (Arc::clone(&readiness), Arc::clone(&dispatch), tls.clone());
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            let open = readiness.metrics.connections.clone();
            open.inc();
            let linger = Linger::default();
            let patience = Patience {
                handshake: head_timeout(&readiness, slot.reserved),
                write: readiness.limits.write_timeout,
            };
            // The errors of a broken connection are not logged.
            let scheme = if tls.is_some() && stream.is_tcp() { "https" } else { "http" };
            if let Ok(stream) = Stream::accept(tls.as_ref(), stream, patience, linger.clone()).await {
                let cut = Arc::new(Notify::new());
                let trust = Trust::of(&readiness, peer, address);
                let (cutting, reserved) = (Arc::clone(&cut), slot.reserved);
                let peer = Peer { address: peer, scheme, trust, cut: cutting, linger, reserved };
                let served = watcher.watch(serve(&readiness, dispatch, stream, peer));
                tokio::select! {
                    _ = served => {}
                    () = cut.notified() => {}
                }
            }
            open.dec();
            drop(slot);
        });
    }
    drop(acceptor);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(readiness.limits.drain_timeout) => {
            tracing::warn!("connections were still open when the time to drain was over");
        }
    }
}

/// The time for a handshake, and for a head. A client on a reserved connection must send one request at once.
fn head_timeout(readiness: &Readiness, reserved: bool) -> Duration {
    let usual = readiness.limits.head_timeout;
    if reserved { usual.min(RESERVED_HEAD_TIMEOUT) } else { usual }
}

fn serve(
    readiness: &Readiness,
    dispatch: Arc<Dispatch>,
    stream: Stream,
    peer: Peer,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + use<> {
    let reserved = peer.reserved;
    let head_timeout = head_timeout(readiness, reserved);
    let service = service_fn(move |request| {
        let (dispatch, peer) = (Arc::clone(&dispatch), peer.clone());
        async move { Ok::<_, Infallible>(dispatch.respond(peer, request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(!reserved)
        .header_read_timeout(head_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
}
