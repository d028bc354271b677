//! A network that fails when the test says so: a TCP proxy before any server.
//!
//! It passes bytes as they come and knows no protocol. At any moment it can refuse, cut, delay or hold all connections, or hold
//! responses until enough requests have come. It can also cut one connection at given bytes of the client: before the server has
//! them, or when the server has them and responds. It uses blocking sockets and two threads for a connection, because tests have
//! few.
//!
//! Not here: losing or changing bytes in the middle of a stream, which TCP does not do either.

mod armed;
mod pass;

use armed::{Armed, count};
use pass::accept;
use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where to cut a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server gets what came before the bytes, and never all of them.
    Before,
    /// The server gets them and acts on them; the proxy drops its response, which may come in parts.
    Answer,
    /// They and the following bytes of their connection wait until [`Proxy::pass`]; nothing is cut.
    Held,
}

/// The bytes that end a transaction of a store. `COMMIT` alone is also in the isolation level `READ COMMITTED`, which each new
/// connection sets.
pub const COMMIT: &[u8] = b"COMMIT;";

/// A running proxy; its connections end with it.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    upstream: SocketAddr,
    mode: Mode,
    refuses: bool,
    /// The number of calls of [`Proxy::pass`].
    released: u64,
    armed: Option<Armed>,
    /// Responses wait until clients have sent these bytes so many times.
    awaited: Option<(Vec<u8>, usize)>,
    /// Whether new connections are refused after that cut.
    refuses_then: bool,
    /// Both ends of each connection: the client's, and the server's once it is open.
    connections: HashMap<u64, Vec<TcpStream>>,
    connections_ever: u64,
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    Delay(Duration),
    Freeze,
}

impl Proxy {
    /// A proxy for a server, which need not run yet.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub fn start(upstream: SocketAddr) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), upstream)
    }

    /// The same at a given address.
    ///
    /// # Panics
    ///
    /// If another process listens there.
    pub fn start_at(address: SocketAddr, upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("the port is free");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(Shared::new(upstream));
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { shared, address, accepting: Some(accepting) }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// New connections go to another server from now on; open ones stay.
    pub fn retarget(&self, upstream: SocketAddr) {
        self.shared.lock().upstream = upstream;
    }

    /// Passes everything on, also what was held. It ends [`Self::refuse`], [`Self::delay`], [`Self::freeze`] and armed cuts.
    pub fn pass(&self) {
        let mut state = self.shared.lock();
        (state.refuses, state.refuses_then, state.armed, state.awaited) = (false, false, None, None);
        state.released += 1;
        drop(state);
        self.set(Mode::Pass);
    }

    /// Closes every new connection at once; open ones stay.
    pub fn refuse(&self) {
        self.shared.lock().refuses = true;
    }

    /// Closes every open connection; new ones are accepted.
    pub fn cut(&self) {
        self.shared.lock().cut_all();
    }

    /// Delays each piece by this time, in both directions.
    pub fn delay(&self, by: Duration) {
        self.set(Mode::Delay(by));
    }

    /// Accepts connections and bytes, and passes nothing on until [`Self::pass`].
    pub fn freeze(&self) {
        self.set(Mode::Freeze);
    }

    /// Cuts the next connection whose client sends these bytes, once. See [`Self::is_armed`].
    ///
    /// # Panics
    ///
    /// If the pattern is empty.
    pub fn cut_at(&self, pattern: &[u8], cut: Cut) {
        self.cut_after(pattern, 0, cut);
    }

    /// The same after the bytes have passed so many times, from any client.
    ///
    /// # Panics
    ///
    /// If the pattern is empty.
    pub fn cut_after(&self, pattern: &[u8], passes: usize, cut: Cut) {
        assert!(!pattern.is_empty(), "nothing comes all the time");
        self.shared.lock().armed = Some(Armed { pattern: pattern.to_owned(), passes, cut });
    }

    /// After the armed cut every new connection is closed at once, until [`Self::pass`].
    pub fn refuse_then(&self) {
        self.shared.lock().refuses_then = true;
    }

    /// As [`Self::cut_at`], and from the cut on every new connection is closed at once, until [`Self::pass`].
    ///
    /// # Panics
    ///
    /// If the pattern is empty.
    pub fn cut_off_at(&self, pattern: &[u8], cut: Cut) {
        self.cut_at(pattern, cut);
        self.refuse_then();
    }

    /// Holds responses until clients have sent these bytes so many times. A client that waits for each response hangs.
    pub fn answer_after(&self, pattern: &[u8], times: usize) {
        self.shared.lock().awaited = Some((pattern.to_owned(), times));
    }

    /// Whether the bytes of [`Self::cut_at`] have not come yet.
    pub fn is_armed(&self) -> bool {
        self.shared.lock().armed.is_some()
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// The number of all connections so far.
    pub fn connections_ever(&self) -> u64 {
        self.shared.lock().connections_ever
    }

    fn set(&self, mode: Mode) {
        self.shared.lock().mode = mode;
        self.shared.changed.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.ended = true;
        state.cut_all();
        drop(state);
        self.shared.changed.notify_all();
        // The thread waits for a connection; this is one.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

impl Shared {
    fn new(upstream: SocketAddr) -> Self {
        let state = State {
            upstream,
            mode: Mode::Pass,
            refuses: false,
            released: 0,
            armed: None,
            awaited: None,
            refuses_then: false,
            connections: HashMap::new(),
            connections_ever: 0,
            ended: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next call of [`Proxy::pass`].
    fn wait_for_release(&self) {
        let mut state = self.lock();
        let held = state.released;
        while !state.ended && state.released == held {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until the awaited requests have come.
    fn wait_for_requests(&self) {
        let mut state = self.lock();
        while !state.ended && state.awaited.is_some() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until a piece that has come now may pass.
    fn wait_to_pass(&self) {
        let came = Instant::now();
        let mut state = self.lock();
        while !state.ended {
            let held = match state.mode {
                Mode::Pass => return,
                Mode::Delay(by) => by.saturating_sub(came.elapsed()),
                Mode::Freeze => Duration::MAX,
            };
            if held.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, held).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
        }
    }
}

impl State {
    /// Counts the awaited bytes in a piece of a client.
    fn count(&mut self, passed: &[u8], piece: &[u8]) {
        let Some((pattern, left)) = &mut self.awaited else { return };
        *left = left.saturating_sub(count(passed, piece, pattern));
        if *left == 0 {
            self.awaited = None;
        }
    }

    fn cut_all(&mut self) {
        self.connections.drain().for_each(|(_, ends)| close(&ends));
    }

    fn cut(&mut self, id: u64) {
        close(&self.connections.remove(&id).unwrap_or_default());
    }
}

/// Wakes the threads that read or write on them.
fn close(ends: &[TcpStream]) {
    // A connection that has ended is already closed.
    ends.iter().for_each(|end| drop(end.shutdown(Shutdown::Both)));
}

#[cfg(test)]
mod tests;
