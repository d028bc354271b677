//! The threads that serve RESP connections, each with its own runtime.
//!
//! A command takes about a microsecond, and moving a connection to another thread several. So a connection stays on its
//! thread, which serves its connections one after the other. Runtimes that share their tasks wake each other for every
//! command. That costs a third more processor time for each command, measured with one command per round trip. The price is
//! that a long command delays the other connections of its thread, as in Redis. A long run of commands does not, see `budget.rs`.
//!
//! Not here: accepting, limits, and commands.

use super::counts::ReplyCounts;
use super::listen::{RespListener, serve};
use crate::accept::Accepted;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{mpsc, watch};

/// The name of the connection threads: a panic there ends a connection, and not the process.
pub const CONNECTION_THREADS: &str = "connections";

/// All threads. Dropping this ends them and closes the open connections.
pub(super) struct Threads(Vec<OneThread>);

struct OneThread {
    /// Bounded by the number of slots.
    give: mpsc::UnboundedSender<Accepted>,
    open: Arc<AtomicUsize>,
}

/// The default number of threads: half of the machine, because lanes, store and clients of this machine need the rest.
pub fn threads_of_this_machine() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

impl Threads {
    pub(super) fn start(
        count: usize,
        listener: &Arc<RespListener>,
        stopped: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let threads = (0..count.max(1)).map(|_| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (give, mut given) = mpsc::unbounded_channel();
            let (listener, stopped, open) =
                (Arc::clone(listener), stopped.clone(), Arc::<AtomicUsize>::default());
            let counted = Arc::clone(&open);
            let counts = listener.readiness.metrics.resp_counts.of_thread();
            let run = move || {
                runtime.block_on(async move {
                    while let Some(accepted) = given.recv().await {
                        tokio::spawn(one(
                            (Arc::clone(&listener), Arc::clone(&counts)),
                            accepted,
                            stopped.clone(),
                            Open(Arc::clone(&counted)),
                        ));
                    }
                });
            };
            std::thread::Builder::new().name(CONNECTION_THREADS.into()).spawn(run)?;
            Ok(OneThread { give, open })
        });
        threads.collect::<io::Result<_>>().map(Self)
    }

    /// Gives a connection to the thread with the fewest connections.
    pub(super) fn give(&self, accepted: Accepted) {
        let fewest = self.0.iter().min_by_key(|thread| thread.open.load(Ordering::Relaxed));
        let thread = fewest.expect("there is at least one thread");
        thread.open.fetch_add(1, Ordering::Relaxed);
        // This fails only if the thread has ended with the process. Then the connection closes.
        drop(thread.give.send(accepted));
    }
}

/// Counts a connection as open until it is dropped, even by a panic.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn one(
    (listener, counts): (Arc<RespListener>, Arc<ReplyCounts>),
    accepted: Accepted,
    stopped: watch::Receiver<bool>,
    open: Open,
) {
    let Accepted { stream, peer, slot } = accepted;
    // It was accepted under another runtime.
    if let Ok(stream) = stream.here() {
        serve(&listener, counts, (stream, peer), stopped).await;
    }
    drop((slot, open));
}
