//! The threads that serve connections of the Redis door, each with a runtime of its own.
//!
//! A command takes about a microsecond, and handing a connection to another thread several. So a connection stays on the
//! thread that it was given to, and that thread takes in turn whatever has arrived on all of its connections. Runtimes that
//! share their tasks wake each other for every command: a third more processor time for each, measured with one command
//! per round trip. The price is that a long command keeps the other connections of its thread waiting, as in Redis itself.
//!
//! Not here: accepting, bounds, and what a connection says.

use super::counts::Counts;
use super::listen::{Door, serve};
use crate::accept::Accepted;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{mpsc, watch};

/// The name of every thread that serves connections: a panic there ends a connection, and not the process.
pub const CONNECTION_THREADS: &str = "connections";

/// All threads. They end, and cut what is still open, when this is dropped.
pub(super) struct Threads(Vec<OneThread>);

struct OneThread {
    /// Bounded by the slots.
    give: mpsc::UnboundedSender<Accepted>,
    open: Arc<AtomicUsize>,
}

/// How many serve if nobody says: half of the machine, because lanes, store and clients of this machine want to run too.
pub fn threads_of_this_machine() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

impl Threads {
    pub(super) fn start(count: usize, door: &Arc<Door>, stopped: &watch::Receiver<bool>) -> io::Result<Self> {
        let threads = (0..count.max(1)).map(|_| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (give, mut given) = mpsc::unbounded_channel();
            let (door, stopped, open) = (Arc::clone(door), stopped.clone(), Arc::<AtomicUsize>::default());
            let counted = Arc::clone(&open);
            let counts = door.gate.metrics.resp_counts.of_thread();
            let run = move || {
                runtime.block_on(async move {
                    while let Some(accepted) = given.recv().await {
                        tokio::spawn(one(
                            (Arc::clone(&door), Arc::clone(&counts)),
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

    /// Gives a connection to the thread that has the fewest.
    pub(super) fn give(&self, accepted: Accepted) {
        let fewest = self.0.iter().min_by_key(|thread| thread.open.load(Ordering::Relaxed));
        let thread = fewest.expect("there is at least one thread");
        thread.open.fetch_add(1, Ordering::Relaxed);
        // Refused only when the thread is gone, with the process: the connection closes then.
        drop(thread.give.send(accepted));
    }
}

/// Counts a connection as open until it is dropped, by a panic too.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn one(
    (door, counts): (Arc<Door>, Arc<Counts>),
    accepted: Accepted,
    stopped: watch::Receiver<bool>,
    open: Open,
) {
    let Accepted { stream, peer, slot } = accepted;
    // It was accepted under another runtime.
    if let Ok(stream) = stream.here() {
        serve(&door, counts, (stream, peer), stopped).await;
    }
    drop((slot, open));
}
