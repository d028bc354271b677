//! A network delay in front of a server of this machine, which the loopback interface does not have.
//!
//! A relay keeps every byte for half a round trip, in either direction. Later bytes are in flight meanwhile, as on a wire,
//! so many requests at once cost no more than one. It has its port before it knows the server, because a node of a cluster
//! must announce an address. Two threads for a direction: a scenario has a handful of connections. Not here: loss,
//! bandwidth, and use outside of measurements.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pieces in flight in one direction; each is the result of one read.
const PIECES: usize = 1024;
const PIECE_BYTES: usize = 64 << 10;

/// The relay; its drop stops accepting connections.
#[derive(Debug)]
pub(crate) struct Delay {
    pub(crate) address: SocketAddr,
    server: Arc<OnceLock<SocketAddr>>,
    ended: Arc<AtomicBool>,
    taking: Option<JoinHandle<()>>,
}

impl Delay {
    /// Listens, with this round trip.
    pub(crate) fn listen(round_trip: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (server, ended) = (Arc::new(OnceLock::new()), Arc::new(AtomicBool::new(false)));
        let (to, until) = (Arc::clone(&server), Arc::clone(&ended));
        let taking = std::thread::spawn(move || take(&listener, &to, &until, round_trip / 2));
        Ok(Self { address, server, ended, taking: Some(taking) })
    }

    /// Sets the server; before that a connection fails.
    pub(crate) fn lead_to(&self, server: SocketAddr) {
        self.server.set(server).expect("there is one server");
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts connections; if that fails, it ends with the process.
        if TcpStream::connect(self.address).is_ok()
            && let Some(taking) = self.taking.take()
        {
            taking.join().expect("taking connections does not panic");
        }
    }
}

fn take(listener: &TcpListener, server: &OnceLock<SocketAddr>, ended: &AtomicBool, half: Duration) {
    for client in listener.incoming() {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        // A connection that cannot be served is closed.
        if let (Ok(client), Some(server)) = (client, server.get()) {
            let _ = relay(client, *server, half);
        }
    }
}

fn relay(client: TcpStream, server: SocketAddr, half: Duration) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        let (send, receive) = sync_channel(PIECES);
        std::thread::spawn(move || read(from, &send, half));
        std::thread::spawn(move || write(to, &receive));
    }
    Ok(())
}

/// Reads until the end of the stream, which closes the channel.
fn read(mut from: TcpStream, pieces: &SyncSender<(Instant, Vec<u8>)>, half: Duration) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        if pieces.send((Instant::now() + half, piece[..count].to_vec())).is_err() {
            return;
        }
    }
}

fn write(mut to: TcpStream, pieces: &Receiver<(Instant, Vec<u8>)>) {
    while let Ok((due, piece)) = pieces.recv() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    // The reader of the other direction ends by itself; a closed connection needs no end.
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_late_in_order_and_whole() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let delay = Delay::listen(Duration::from_millis(20)).unwrap();
        delay.lead_to(server.local_addr().unwrap());
        let sent: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let began = Instant::now();
        let mut client = TcpStream::connect(delay.address).unwrap();
        let (mut other, _) = server.accept().unwrap();
        let echo = std::thread::spawn(move || io::copy(&mut other.try_clone().unwrap(), &mut other).unwrap());
        let (mut writing, bytes) = (client.try_clone().unwrap(), sent.clone());
        let writing = std::thread::spawn(move || {
            writing.write_all(&bytes).unwrap();
            writing.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        // Never earlier; how much later depends on the machine.
        assert!(began.elapsed() >= Duration::from_millis(20));
        assert!(received == sent);
        writing.join().unwrap();
        assert_eq!(echo.join().unwrap(), sent.len() as u64);
    }

    #[test]
    fn before_there_is_a_server_connections_are_closed() {
        let delay = Delay::listen(Duration::ZERO).unwrap();
        let mut client = TcpStream::connect(delay.address).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    }
}
