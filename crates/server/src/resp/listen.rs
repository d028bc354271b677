//! Connections of the Redis door: accepted within a bound, served, closed when the service goes down.

use super::buffers::Buffers;
use super::connection;
use super::counts::Counts;
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
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// What can be set.
#[derive(Clone)]
pub struct Settings {
    /// Connections at once.
    pub connections: ConnectionLimits,
    /// How long a connection may say nothing; for ever where none is given.
    pub idle_timeout: Option<Duration>,
    /// How long a connection may take to present a key, where one is needed; past it the connection closes.
    pub auth_timeout: Duration,
    /// How long an unfinished command may take for every 64 KiB, or its end; past it the connection closes.
    pub command_timeout: Duration,
    /// How long a client may take to read every 64 KiB of its replies, or the last of them; past it the connection closes.
    pub write_timeout: Duration,
    /// Bytes that the buffers of all connections may hold; past it the connection that holds most closes.
    pub buffer_bytes_max: usize,
    /// Whether writes are answered before they are durable, unless a connection asks otherwise.
    pub relaxed: bool,
    /// How connections are encrypted, if they are.
    pub tls: Option<Tls>,
    /// Threads that serve connections.
    pub threads: usize,
}

/// What all connections share.
pub(super) struct Door {
    pub(super) gate: Arc<Readiness>,
    pub(super) settings: Settings,
    /// Where it listens for TCP.
    pub(super) address: Option<SocketAddr>,
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    next: AtomicU64,
    pub(super) served: AtomicU64,
    pub(super) commands: AtomicU64,
    pub(super) buffers: Buffers,
}

/// What a client is told that has no slot.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// A door that listens.
pub struct RespServer {
    /// Where it listens for TCP, with the port the system chose.
    pub address: Option<SocketAddr>,
    /// The Unix socket where it listens.
    pub file: Option<SocketFile>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

/// Starts to listen.
pub async fn start(gate: Arc<Readiness>, listen: &Listen, settings: Settings) -> std::io::Result<RespServer> {
    let (listeners, address, file) = listen.open().await?;
    let (stop, stopped) = watch::channel(false);
    let buffers = Buffers::new(settings.buffer_bytes_max);
    let door = Arc::new(Door {
        buffers,
        gate,
        settings,
        address,
        clients: Mutex::default(),
        next: AtomicU64::new(1),
        served: AtomicU64::new(0),
        commands: AtomicU64::new(0),
    });
    let threads = Threads::start(door.settings.threads, &door, &stopped)?;
    let rejection = if door.settings.tls.is_some() { b"".as_slice() } else { FULL };
    let acceptor = Acceptor::new(listeners, door.settings.connections, false, rejection);
    let accepting = tokio::spawn(accept_all(door, threads, acceptor, stopped));
    Ok(RespServer { address, file, stop, accepting })
}

impl RespServer {
    /// Takes no more connections; those that are open answer what has arrived and close.
    pub async fn stop(self) {
        // Already gone where accepting has ended by itself.
        let _ = self.stop.send(true);
        drop(self.file);
        if self.accepting.await.is_err() {
            tracing::error!("the listener of the Redis protocol panicked");
        }
    }
}

impl Door {
    /// Its TCP port; 0 for none, as Redis says.
    pub(super) fn port(&self) -> u16 {
        self.address.map_or(0, |address| address.port())
    }

    /// Everybody who is connected, by number.
    pub(super) fn clients(&self) -> Vec<Arc<Client>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn welcome(&self, peer: PeerAddress) -> Arc<Client> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let names = Mutex::new(Names { resp: 2, ..Names::default() });
        let (heard, held, closing) = (AtomicU64::new(0), AtomicUsize::new(0), Notify::new());
        let client = Arc::new(Client { id, peer, since: Instant::now(), names, heard, held, closing });
        self.lock().insert(id, Arc::clone(&client));
        self.served.fetch_add(1, Ordering::Relaxed);
        client
    }
}

async fn accept_all(
    door: Arc<Door>,
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
    if tokio::time::timeout(door.gate.limits.drain_timeout, acceptor.ended()).await.is_err() {
        tracing::warn!("Redis connections were still open when the time to drain was over");
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(
    door: &Arc<Door>,
    counts: Arc<Counts>,
    (stream, peer): (Transport, PeerAddress),
    stopped: watch::Receiver<bool>,
) {
    let patience = Patience {
        handshake: door.gate.limits.head_timeout.min(door.settings.auth_timeout),
        write: door.settings.write_timeout,
    };
    let accept = Stream::accept(door.settings.tls.as_ref(), stream, patience, Linger::default());
    let Ok(stream) = accept.await else { return };
    let client = door.welcome(peer);
    let open = door.gate.metrics.resp_connections.clone();
    open.inc();
    let id = client.id;
    connection::serve(Session::new(Arc::clone(door), client, counts), stream, stopped).await;
    open.dec();
    door.lock().remove(&id);
}
