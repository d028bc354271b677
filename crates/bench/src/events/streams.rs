//! Subscribers: connections that receive events, or that poll once a second. One thread reads all of
//! them.

use crate::error::{During, Error};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::LocalSet;

/// What a subscriber does, and on which board.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Stream(&'static str),
    Poll(&'static str),
}

/// What all subscribers received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// Events, or responses.
    pub(super) events: u64,
    pub(super) bytes: u64,
    /// Connections that the server closed.
    pub(super) broken: u64,
}

#[derive(Default)]
struct Shared {
    events: AtomicU64,
    bytes: AtomicU64,
    broken: AtomicU64,
    over: AtomicBool,
    ended: Notify,
}

/// Open subscribers.
pub(super) struct Listeners {
    shared: Arc<Shared>,
    thread: JoinHandle<io::Result<()>>,
}

impl Listeners {
    /// Opens so many and waits until all of them are open.
    pub(super) fn open(address: SocketAddr, what: What, count: u32) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let (tell, opened) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            LocalSet::new().block_on(&runtime, async {
                let mut connections = Vec::with_capacity(count as usize);
                for _ in 0..count {
                    connections.push(TcpStream::connect(address).await?);
                }
                for (number, connection) in (0..).zip(connections) {
                    let begin = Duration::from_secs(1) * number / count;
                    tokio::task::spawn_local(listen(connection, (address, what), begin, Arc::clone(&own)));
                }
                // The caller continues when they have had the time to send a request.
                tokio::time::sleep(Duration::from_secs(1)).await;
                let _gone = tell.send(());
                own.ended.notified().await;
                Ok(())
            })
        });
        // The thread returns the error.
        if opened.recv().is_err() {
            thread.join().expect("listening does not panic").during("open streams")?;
            return Err(Error::Proof("streams ended before they were open".to_owned()));
        }
        shared.events.store(0, Ordering::SeqCst);
        shared.bytes.store(0, Ordering::SeqCst);
        Ok(Self { shared, thread })
    }

    /// Closes them; returns what they received.
    pub(super) fn close(self) -> Result<Received, Error> {
        let of = |count: &AtomicU64| count.load(Ordering::SeqCst);
        let Shared { events, bytes, broken, .. } = &*self.shared;
        let received = Received { events: of(events), bytes: of(bytes), broken: of(broken) };
        self.shared.over.store(true, Ordering::SeqCst);
        self.shared.ended.notify_one();
        self.thread.join().expect("listening does not panic").during("listen")?;
        Ok(received)
    }
}

async fn listen(
    mut connection: TcpStream,
    (address, what): (SocketAddr, What),
    begin: Duration,
    shared: Arc<Shared>,
) {
    let heard = match what {
        What::Stream(board) => stream(&mut connection, address, board, &shared).await,
        What::Poll(board) => poll(&mut connection, (address, begin), board, &shared).await,
    };
    if heard.is_err() && !shared.over.load(Ordering::SeqCst) {
        shared.broken.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts events by the empty lines that end them.
async fn stream(
    connection: &mut TcpStream,
    address: SocketAddr,
    board: &str,
    shared: &Shared,
) -> io::Result<()> {
    let request = format!("GET /v1/leaderboards/{board}/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let (mut buffer, mut line_began) = (vec![0; 64 << 10], false);
    loop {
        let read = connection.read(&mut buffer).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut events = 0;
        for &byte in &buffer[..read] {
            events += u64::from(line_began && byte == b'\n');
            line_began = byte == b'\n';
        }
        shared.events.fetch_add(events, Ordering::Relaxed);
        shared.bytes.fetch_add(read as u64, Ordering::Relaxed);
    }
}

/// Polls once a second.
async fn poll(
    connection: &mut TcpStream,
    (address, begin): (SocketAddr, Duration),
    board: &str,
    shared: &Shared,
) -> io::Result<()> {
    let request = format!("GET /v1/leaderboards/{board}/scores?limit=10 HTTP/1.1\r\nhost: {address}\r\n\r\n");
    tokio::time::sleep(begin).await;
    let mut every = tokio::time::interval(Duration::from_secs(1));
    let mut buffer = vec![0; 64 << 10];
    loop {
        every.tick().await;
        connection.write_all(request.as_bytes()).await?;
        // Ten rows fit into one read.
        let read = connection.read(&mut buffer).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        shared.events.fetch_add(1, Ordering::Relaxed);
        shared.bytes.fetch_add(read as u64, Ordering::Relaxed);
    }
}
