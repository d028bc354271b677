//! Connections of the RESP listener: accepted within limits, served, and closed when the service drains.

use super::buffers::Buffers;
use super::connection;
use super::counts::ReplyCounts;
use super::session::{Client, Names, Session};
use super::threads::Threads;
use crate::accept::{Acceptor, ConnectionLimits};
use crate::listener::{Listen, PeerAddress, SocketFile};
use crate::progress::Linger;
use crate::readiness::Readiness;
use crate::tls::{Patience, Stream, Tls};
use crate::transport::Transport;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// Settings of the RESP listener.
#[derive(Clone)]
pub struct RespSettings {
    /// The limits of connections.
    pub connections: ConnectionLimits,
    /// How long a connection may be idle; `None` is for ever.
    pub idle_timeout: Option<Duration>,
    /// Time to present a key, if one is needed; then the connection closes.
    pub auth_timeout: Duration,
    /// Time for every 64 KiB of an unfinished command, or its end; then the connection closes.
    pub command_timeout: Duration,
    /// Time for a client to read every 64 KiB of its replies, or the last of them; then the connection closes.
    pub write_timeout: Duration,
    /// Bytes that the buffers of all connections may hold; above it, the connection with the largest buffers closes.
    pub buffer_bytes_max: usize,
    /// Whether writes are answered before they are durable, unless a connection chooses otherwise.
    pub relaxed: bool,
    /// The encryption of connections, if there is any.
    pub tls: Option<Tls>,
    /// The number of threads that serve connections.
    pub threads: usize,
}

/// The state that all connections share.
pub(super) struct RespListener {
    pub(super) readiness: Arc<Readiness>,
    pub(super) settings: RespSettings,
    /// The TCP address of the listener.
    pub(super) address: Option<SocketAddr>,
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    next: AtomicU64,
    pub(super) served: AtomicU64,
    pub(super) commands: AtomicU64,
    pub(super) buffers: Buffers,
}

/// The reply to a client without a slot.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// A running RESP listener.
pub struct RespServer {
    /// Its TCP address, with the port that the system chose.
    pub address: Option<SocketAddr>,
    /// Its Unix socket.
    pub file: Option<SocketFile>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

/// Starts the listener.
pub async fn start(
    readiness: Arc<Readiness>,
    listen: &Listen,
    settings: RespSettings,
) -> std::io::Result<RespServer> {
    let (listeners, address, file) = listen.open().await?;
    let (stop, stopped) = watch::channel(false);
    let listener = Arc::new(RespListener::new(readiness, settings, address));
    let threads = Threads::start(listener.settings.threads, &listener, &stopped)?;
    let rejection = if listener.settings.tls.is_some() { b"".as_slice() } else { FULL };
    let refused = listener.readiness.metrics.refused("resp");
    let acceptor = Acceptor::new(listeners, listener.settings.connections, false, rejection, refused);
    let accepting = tokio::spawn(accept_all(listener, threads, acceptor, stopped));
    Ok(RespServer { address, file, stop, accepting })
}

impl RespServer {
    /// Stops accepting. Open connections answer the commands that have arrived, and close.
    pub async fn stop(self) {
        // The receiver is dropped if accepting has ended by itself.
        let _ = self.stop.send(true);
        drop(self.file);
        if self.accepting.await.is_err() {
            tracing::error!("the listener of the Redis protocol panicked");
        }
    }
}

impl RespListener {
    fn new(readiness: Arc<Readiness>, settings: RespSettings, address: Option<SocketAddr>) -> Self {
        let buffers = Buffers::new(settings.buffer_bytes_max);
        let (clients, next) = (Mutex::default(), AtomicU64::new(1));
        let (served, commands) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { readiness, settings, address, clients, next, served, commands, buffers }
    }

    /// One that accepts nothing: for commands that another server has received.
    pub(super) fn without_connections(readiness: Arc<Readiness>) -> Self {
        let settings = RespSettings {
            connections: ConnectionLimits { all: 0, address: 0, loopback: None, waiting: 0 },
            idle_timeout: None,
            auth_timeout: Duration::ZERO,
            command_timeout: Duration::ZERO,
            write_timeout: Duration::ZERO,
            buffer_bytes_max: 0,
            relaxed: false,
            tls: None,
            threads: 0,
        };
        Self::new(readiness, settings, None)
    }

    /// The TCP port; 0 for none, as in Redis.
    pub(super) fn port(&self) -> u16 {
        self.address.map_or(0, |address| address.port())
    }

    /// All connected clients by number.
    pub(super) fn clients(&self) -> Vec<Arc<Client>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn welcome(&self, peer: PeerAddress) -> Arc<Client> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let names = Mutex::new(Names { resp: 2, ..Names::default() });
        let (heard, held) = (AtomicU64::new(0), AtomicUsize::new(0));
        let (doomed, closing) = (AtomicBool::new(false), Notify::new());
        let client =
            Arc::new(Client { id, peer, since: Instant::now(), names, heard, held, doomed, closing });
        self.lock().insert(id, Arc::clone(&client));
        self.served.fetch_add(1, Ordering::Relaxed);
        client
    }
}

async fn accept_all(
    listener: Arc<RespListener>,
    threads: Threads,
    mut acceptor: Acceptor,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            _ = stopped.changed() => break,
            accepted = acceptor.next() => accepted,
        };
        threads.give(accepted);
    }
    if tokio::time::timeout(listener.readiness.limits.drain_timeout, acceptor.ended()).await.is_err() {
        tracing::warn!("Redis connections were still open when the time to drain was over");
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(
    listener: &Arc<RespListener>,
    counts: Arc<ReplyCounts>,
    (stream, peer): (Transport, PeerAddress),
    stopped: watch::Receiver<bool>,
) {
    let patience = Patience {
        handshake: listener.readiness.limits.head_timeout.min(listener.settings.auth_timeout),
        write: listener.settings.write_timeout,
    };
    let accept = Stream::accept(listener.settings.tls.as_ref(), stream, patience, Linger::default());
    let Ok(stream) = accept.await else { return };
    let client = listener.welcome(peer);
    let open = listener.readiness.metrics.resp_connections.clone();
    open.inc();
    connection::serve(Session::new(Arc::clone(listener), Arc::clone(&client), counts), stream, stopped).await;
    open.dec();
    listener.lock().remove(&client.id);
    if client.doomed.load(Ordering::Relaxed) {
        // It may have been closed because of its memory, which goes back to the system.
        tally_memory::give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HttpLimits;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    /// No end in this time is a fault; no measurement.
    const GIVE_UP: Duration = Duration::from_secs(60);

    /// A listener whose keys are not loaded.
    async fn loading() -> RespServer {
        let settings = RespSettings {
            connections: ConnectionLimits { all: 10, address: 10, loopback: None, waiting: 512 },
            idle_timeout: None,
            auth_timeout: Duration::from_millis(50),
            command_timeout: 2 * GIVE_UP,
            write_timeout: 2 * GIVE_UP,
            buffer_bytes_max: 1 << 20,
            relaxed: false,
            tls: None,
            threads: 1,
        };
        let listen = Listen { tcp: Some("127.0.0.1:0".into()), unix: None };
        start(Readiness::of_test(HttpLimits::default(), ""), &listen, settings).await.unwrap()
    }

    /// A store may answer late, and then keys are loaded late.
    #[tokio::test]
    async fn a_silent_client_is_closed_also_while_keys_are_loaded() {
        let server = loading().await;
        let mut silent = TcpStream::connect(server.address.unwrap()).await.unwrap();
        let ended = tokio::time::timeout(GIVE_UP, silent.read_u8()).await.expect("it closes");
        assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
        server.stop().await;
    }

    #[tokio::test]
    async fn a_client_that_only_sends_is_closed_also_while_keys_are_loaded() {
        let server = loading().await;
        let mut stream = TcpStream::connect(server.address.unwrap()).await.unwrap();
        let sends = async {
            while stream.write_all(b"PING\r\n").await.is_ok()
                && stream.read(&mut [0; 256]).await.is_ok_and(|some| some > 0)
            {}
        };
        tokio::time::timeout(GIVE_UP, sends).await.expect("it closes");
        server.stop().await;
    }
}
