//! A network that fails when the test says so: a TCP proxy before any server.
//!
//! It passes bytes as they come and knows no protocol. It can refuse, cut, delay or hold what passes, at any moment and for
//! all connections at once, and hold answers until enough was asked; and it can cut one connection at the very point where it matters: when certain bytes have come
//! from the client, before the server has them, or when the server has them and answers. Threads and blocking sockets, two
//! threads for a connection: tests have few.
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

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server gets what came before the bytes, and never sees them whole.
    Before,
    /// The server gets them and acts on them; its answer is swallowed, which may come in parts.
    Answer,
    /// They and what follows on their connection wait until [`Proxy::pass`]; nothing is cut.
    Held,
}

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
    /// How often what was held was let go.
    released: u64,
    armed: Option<Armed>,
    /// Answers wait until the clients have sent these bytes so often.
    awaited: Option<(Vec<u8>, usize)>,
    /// Whether nobody connects any more once it is cut there.
    refuses_then: bool,
    /// Both ends of each: the client's, and the server's once there is one.
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
    /// One that passes everything on to a server, which need not run yet.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub fn start(upstream: SocketAddr) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), upstream)
    }

    /// The same at a certain address.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on new connections go to another server; those there are stay where they are.
    pub fn retarget(&self, upstream: SocketAddr) {
        self.shared.lock().upstream = upstream;
    }

    /// Passes everything on, also what was held: the end of [`Self::refuse`], [`Self::delay`], [`Self::freeze`] and what was to
    /// be cut.
    pub fn pass(&self) {
        let mut state = self.shared.lock();
        (state.refuses, state.refuses_then, state.armed, state.awaited) = (false, false, None, None);
        state.released += 1;
        drop(state);
        self.set(Mode::Pass);
    }

    /// Closes every new connection at once; those there are stay.
    pub fn refuse(&self) {
        self.shared.lock().refuses = true;
    }

    /// Closes every connection there is; new ones are taken.
    pub fn cut(&self) {
        self.shared.lock().cut_all();
    }

    /// Passes each piece on, either way, as much later.
    pub fn delay(&self, by: Duration) {
        self.set(Mode::Delay(by));
    }

    /// Takes connections and bytes, and passes nothing on until [`Self::pass`].
    pub fn freeze(&self) {
        self.set(Mode::Freeze);
    }

    /// Cuts the connection from whose client these bytes come next, once. See [`Self::is_armed`].
    ///
    /// # Panics
    ///
    /// If there are no bytes.
    pub fn cut_at(&self, pattern: &[u8], cut: Cut) {
        self.cut_after(pattern, 0, cut);
    }

    /// The same when the bytes come after they have passed so often, from any client.
    ///
    /// # Panics
    ///
    /// If there are no bytes.
    pub fn cut_after(&self, pattern: &[u8], passes: usize, cut: Cut) {
        assert!(!pattern.is_empty(), "nothing comes all the time");
        self.shared.lock().armed = Some(Armed { pattern: pattern.to_owned(), passes, cut });
    }

    /// Once it is cut where it is to be cut, every new connection is closed at once, until [`Self::pass`].
    pub fn refuse_then(&self) {
        self.shared.lock().refuses_then = true;
    }

    /// The same, and from then on every new connection is closed at once, until [`Self::pass`].
    ///
    /// # Panics
    ///
    /// If there are no bytes.
    pub fn cut_off_at(&self, pattern: &[u8], cut: Cut) {
        self.cut_at(pattern, cut);
        self.refuse_then();
    }

    /// Passes no answer on until clients have sent these bytes so often: who asks one thing after another waits for ever.
    pub fn answer_after(&self, pattern: &[u8], times: usize) {
        self.shared.lock().awaited = Some((pattern.to_owned(), times));
    }

    /// Whether the bytes of [`Self::cut_at`] are still to come.
    pub fn is_armed(&self) -> bool {
        self.shared.lock().armed.is_some()
    }

    /// How many connections there are now.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// How many there have ever been.
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
        // It waits for a connection; this is one.
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

    /// Waits until what is held now may pass.
    fn wait_for_release(&self) {
        let mut state = self.lock();
        let held = state.released;
        while !state.ended && state.released == held {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until everything has been asked that answers wait for.
    fn wait_for_requests(&self) {
        let mut state = self.lock();
        while !state.ended && state.awaited.is_some() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until something that has come now may pass.
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
    /// Counts the bytes that answers wait for in a piece of a client.
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

/// Whoever reads or writes on one of them is woken.
fn close(ends: &[TcpStream]) {
    // One that has ended by itself is closed already.
    ends.iter().for_each(|end| drop(end.shutdown(Shutdown::Both)));
}

#[cfg(test)]
mod tests;
