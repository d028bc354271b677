//! A proxy that counts bytes: the follower reaches the leader through it, as it would through a network.

use crate::error::{During, Error};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A running proxy; it accepts nothing more once the value is gone.
pub(super) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// Bytes in each direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) to_leader: u64,
    pub(super) to_follower: u64,
}

#[derive(Default)]
struct Shared {
    target: OnceLock<SocketAddr>,
    over: AtomicBool,
    to_leader: AtomicU64,
    to_follower: AtomicU64,
}

impl Proxy {
    /// Listens; connections are closed at once until it has a target.
    pub(super) fn start() -> Result<Self, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").during("listen for a proxy")?;
        let address = listener.local_addr().during("listen for a proxy")?;
        let shared = Arc::new(Shared::default());
        let accepts = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepts.over.load(Ordering::SeqCst) {
                    return;
                }
                if let Some(&target) = accepts.target.get() {
                    // A failed connection is closed, and the follower opens another one.
                    let _ = pass(stream, target, &accepts);
                }
            }
        });
        Ok(Self { address, shared })
    }

    /// The URL for others.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where connections go from now on.
    pub(super) fn set_target(&self, target: SocketAddr) {
        self.shared.target.set(target).expect("a proxy has one target");
    }

    /// Bytes so far.
    pub(super) fn counted(&self) -> Counted {
        let of = |count: &AtomicU64| count.load(Ordering::SeqCst);
        Counted { to_leader: of(&self.shared.to_leader), to_follower: of(&self.shared.to_follower) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // The thread accepts once more, and ends.
        let _ = TcpStream::connect(self.address);
    }
}

impl Counted {
    pub(super) fn since(self, then: Self) -> Self {
        Self { to_leader: self.to_leader - then.to_leader, to_follower: self.to_follower - then.to_follower }
    }
}

/// Passes bytes in both directions, on threads that end with the connection.
fn pass(follower: TcpStream, target: SocketAddr, shared: &Arc<Shared>) -> io::Result<()> {
    let leader = TcpStream::connect(target)?;
    leader.set_nodelay(true)?;
    follower.set_nodelay(true)?;
    let (from, to, counts) = (follower.try_clone()?, leader.try_clone()?, Arc::clone(shared));
    std::thread::spawn(move || copy(from, to, &counts.to_leader));
    let counts = Arc::clone(shared);
    std::thread::spawn(move || copy(leader, follower, &counts.to_follower));
    Ok(())
}

/// Until one side ends; then the other one is told.
fn copy(mut from: TcpStream, mut to: TcpStream, count: &AtomicU64) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        // Before they are seen on the other side.
        count.fetch_add(length as u64, Ordering::SeqCst);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // Both fail on a connection that is closed.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_and_are_counted_in_each_direction() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::start().unwrap();
        proxy.set_target(listener.local_addr().unwrap());
        let mut follower = TcpStream::connect(proxy.address).unwrap();
        let (mut leader, _) = listener.accept().unwrap();
        follower.write_all(b"ask").unwrap();
        let mut asked = [0; 3];
        leader.read_exact(&mut asked).unwrap();
        leader.write_all(b"answer").unwrap();
        drop(leader);
        let mut answer = String::new();
        follower.read_to_string(&mut answer).unwrap();
        assert_eq!((&asked, answer.as_str()), (b"ask", "answer"));
        let Counted { to_leader, to_follower } = proxy.counted();
        assert_eq!((to_leader, to_follower), (3, 6));
    }
}
