//! Connections: accepted within a bound, served, and drained when the service goes down.

use super::call::Peer;
use super::dispatch::Dispatch;
use crate::accept::{Accepted, Acceptor};
use crate::limits::{HEAD_BYTES_MAX, HEADERS_MAX, RESERVED_HEAD_TIMEOUT};
use crate::listener::{Listen, Listeners, SocketFile};
use crate::progress::Linger;
use crate::readiness::Readiness;
use crate::tls::{Patience, Stream, Tls};
use crate::way::Way;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// What a client is told that has no slot.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n";

/// A server that listens.
pub struct HttpServer {
    /// Where it listens for TCP, with the port the system chose.
    pub address: Option<SocketAddr>,
    /// The Unix socket where it listens.
    pub file: Option<SocketFile>,
    stop: oneshot::Sender<()>,
    accepting: JoinHandle<()>,
}

/// Starts to listen.
pub async fn start(gate: Arc<Readiness>, listen: &Listen, tls: Option<Tls>) -> std::io::Result<HttpServer> {
    let (listeners, address, file) = listen.open().await?;
    let (stop, stopped) = oneshot::channel();
    let accepting = tokio::spawn(accept_all(gate, (listeners, address), tls, stopped));
    Ok(HttpServer { address, file, stop, accepting })
}

impl HttpServer {
    /// Takes no more connections and lets running requests end, as long as the limits allow.
    pub async fn stop(self) {
        // Already gone where accepting has ended by itself.
        let _ = self.stop.send(());
        drop(self.file);
        if self.accepting.await.is_err() {
            tracing::error!("the HTTP listener panicked");
        }
    }
}

async fn accept_all(
    gate: Arc<Readiness>,
    (listeners, address): (Listeners, Option<SocketAddr>),
    tls: Option<Tls>,
    mut stopped: oneshot::Receiver<()>,
) {
    let dispatch = Arc::new(Dispatch::new(Arc::clone(&gate)));
    let rejection = if tls.is_some() { b"".as_slice() } else { FULL };
    let mut acceptor = Acceptor::new(listeners, gate.limits.connections, true, rejection);
    let graceful = GracefulShutdown::new();
    let patience = Patience { handshake: gate.limits.head_timeout, write: gate.limits.write_timeout };
    loop {
        let Accepted { stream, peer, slot } = tokio::select! {
            _ = &mut stopped => break,
            accepted = acceptor.next() => accepted,
        };
        let (gate, dispatch, tls) = (Arc::clone(&gate), Arc::clone(&dispatch), tls.clone());
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            let open = gate.metrics.connections.clone();
            open.inc();
            let linger = Linger::default();
            // A broken connection is the client's affair.
            let scheme = if tls.is_some() && stream.is_tcp() { "https" } else { "http" };
            if let Ok(stream) = Stream::accept(tls.as_ref(), stream, patience, linger.clone()).await {
                let cut = Arc::new(Notify::new());
                let way = Way::of(&gate, peer, address);
                let (cutting, reserved) = (Arc::clone(&cut), slot.reserved);
                let peer = Peer { address: peer, scheme, way, cut: cutting, linger, reserved };
                let served = watcher.watch(serve(&gate, dispatch, stream, peer));
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
        () = tokio::time::sleep(gate.limits.drain_timeout) => {
            tracing::warn!("connections were still open when the time to drain was over");
        }
    }
}

fn serve(
    gate: &Readiness,
    dispatch: Arc<Dispatch>,
    stream: Stream,
    peer: Peer,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + use<> {
    // On a reserved connection a client says at once what it wants, once.
    let reserved = peer.reserved;
    let head_timeout = gate.limits.head_timeout;
    let head_timeout = if reserved { head_timeout.min(RESERVED_HEAD_TIMEOUT) } else { head_timeout };
    let service = service_fn(move |request| {
        let (dispatch, peer) = (Arc::clone(&dispatch), peer.clone());
        async move { Ok::<_, Infallible>(dispatch.answer(peer, request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(!reserved)
        .header_read_timeout(head_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
}
