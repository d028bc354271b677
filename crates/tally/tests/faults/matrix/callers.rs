//! Callers of the matrix: each has a server that it prefers, and goes to another when that does not answer. It measures
//! this time.
//!
//! A request has an idempotency key, so a caller may send it again. By chance a caller does not: then the request was refused, or
//! its outcome is unknown. Not here: the requests of callers (`money.rs`, `boards.rs`, `contests.rs`).

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};
use tally_testkit::{Client, GIVE_UP, Request, Response, Rng};

/// The time in which it prefers others to a server that did not answer.
const AVOIDED: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(20);
/// Of so many percent of its requests a caller does not try again what failed.
const IMPATIENT: u64 = 40;

/// The addresses of servers; a standby is added when it starts.
#[derive(Debug, Default)]
pub(crate) struct Addresses(RwLock<Vec<SocketAddr>>);

impl Addresses {
    pub(crate) fn add(&self, address: SocketAddr) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(address);
    }

    fn all(&self) -> Vec<SocketAddr> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It is done.
    Done(Response),
    /// It is not done.
    Refused,
    /// It is done or not.
    Unknown,
}

/// The reply of a server to one attempt.
enum ServerReply {
    Done(Response),
    Refused,
    Unknown,
    /// Something else, which depends on the request.
    Other(Response),
}

/// One caller.
#[derive(Debug)]
pub(crate) struct Caller<'a> {
    addresses: &'a Addresses,
    home: usize,
    client: Option<(SocketAddr, Client)>,
    avoided: HashMap<SocketAddr, Instant>,
    /// The number of consecutive attempts without a reply of a server.
    silent: HashMap<SocketAddr, u32>,
    /// The time since which it has sent requests without an acknowledgement.
    since: Option<Instant>,
    longest: Duration,
    /// The time limit of a reply before it goes to another server.
    patience: Duration,
    /// Whether the database may lose acknowledged commits.
    may_lose: bool,
    rng: Rng,
    /// The last rejection: it explains a cell that fails.
    last: String,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(
        addresses: &'a Addresses,
        home: usize,
        (patience, may_lose): (Duration, bool),
        purpose: &str,
    ) -> Self {
        Self {
            addresses,
            home,
            client: None,
            avoided: HashMap::new(),
            silent: HashMap::new(),
            since: None,
            longest: Duration::ZERO,
            patience,
            may_lose,
            rng: Rng::of(purpose),
            last: String::new(),
        }
    }

    /// The longest time in which every request failed.
    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.rng.below(end)
    }

    /// Sends, and by chance gives up a failing request.
    #[track_caller]
    pub(crate) fn ask(&mut self, request: &Request) -> Outcome {
        let impatient = self.rng.percent(IMPATIENT);
        self.send(request, impatient)
    }

    /// Repeats until it is done. Nothing for a missing target, which only a database with losses may report.
    #[track_caller]
    pub(crate) fn insist(&mut self, request: &Request) -> Option<Response> {
        match self.send(request, false) {
            Outcome::Done(answer) => Some(answer),
            Outcome::Refused if self.may_lose => None,
            outcome => panic!("a patient caller gave up: {outcome:?}"),
        }
    }

    #[track_caller]
    fn send(&mut self, request: &Request, impatient: bool) -> Outcome {
        let (begun, mut unknown) = (Instant::now(), false);
        loop {
            match self.attempt(request) {
                ServerReply::Done(answer) => return Outcome::Done(answer),
                ServerReply::Refused => {}
                ServerReply::Unknown => unknown = true,
                ServerReply::Other(answer) if self.may_lose && answer.status == 404 => {
                    return Outcome::Refused;
                }
                ServerReply::Other(answer) => {
                    panic!(
                        "{} {}: {}",
                        request.method,
                        String::from_utf8_lossy(&request.target),
                        answer.text()
                    )
                }
            }
            match (impatient, unknown) {
                (true, true) => return Outcome::Unknown,
                (true, false) => return Outcome::Refused,
                (false, _) => {}
            }
            assert!(begun.elapsed() < GIVE_UP, "no acknowledgement in {GIVE_UP:?}: {}", self.last);
            std::thread::sleep(AGAIN);
        }
    }

    fn attempt(&mut self, request: &Request) -> ServerReply {
        let begun = Instant::now();
        let since = *self.since.get_or_insert(begun);
        let address = self.choose();
        if self.client.as_ref().is_none_or(|(other, _)| *other != address) {
            self.client = Some((address, Client::new(address).with_patience(self.patience)));
        }
        let (_, client) = self.client.as_mut().expect("it was just made");
        let answered = client.try_send(request);
        let silent = answered.as_ref().is_err_and(|error| error.kind() != ErrorKind::ConnectionRefused);
        let times = self.silent.entry(address).or_default();
        *times = if silent { *times + 1 } else { 0 };
        let said = match answered {
            Ok(answer) if answer.status < 300 => {
                self.longest = self.longest.max(since.elapsed());
                self.since = None;
                return ServerReply::Done(answer);
            }
            Ok(answer) => {
                self.last = answer.text();
                match (answer.status, &*answer.code()) {
                    (503, "outcome_unknown") | (409, "idempotency_in_progress") => ServerReply::Unknown,
                    (503, _) => ServerReply::Refused,
                    _ => return ServerReply::Other(answer),
                }
            }
            Err(error) => {
                self.last = error.to_string();
                if error.kind() == ErrorKind::ConnectionRefused {
                    ServerReply::Refused
                } else {
                    ServerReply::Unknown
                }
            }
        };
        self.client = None;
        self.avoided.insert(address, Instant::now());
        said
    }

    /// The preferred server, or another while that is avoided.
    fn choose(&mut self) -> SocketAddr {
        self.avoided.retain(|_, at| at.elapsed() < AVOIDED);
        let all = self.addresses.all();
        let order = (0..all.len()).map(|at| all[(self.home + at) % all.len()]);
        let first = order.clone().find(|address| !self.avoided.contains_key(address));
        // All of them: the one that was silent least, and of these the one that failed first.
        let last =
            |address: &SocketAddr| (self.silent.get(address).copied(), self.avoided.get(address).copied());
        first.or_else(|| order.min_by_key(last)).expect("a server")
    }
}
