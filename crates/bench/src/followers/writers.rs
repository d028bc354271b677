//! Clients that write during takeovers: each adds 1 to the sum of one of its players, again and again.
//!
//! A change has an idempotency key and is sent until it is acknowledged, to the other server after each failure. So the sum of a
//! player is the number of its changes, unless one was lost or counted twice.

use super::fleet::Addresses;
use super::{PATIENCE, SUMS};
use crate::error::{Error, prove};
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tally_load::Client;

/// Clients.
const WRITERS: usize = 8;
/// Players of each of them.
const PLAYERS: usize = 50;
/// Between two changes of one client.
const PAUSE: Duration = Duration::from_millis(2);
/// Before a change is sent again.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
/// A request without an answer is sent again.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Running clients.
pub(super) struct Writers {
    label: String,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Vec<i64>>>,
}

/// What the clients did.
pub(super) struct Written {
    /// Players, and the sum that each must have.
    pub(super) sums: Vec<(String, i64)>,
    pub(super) requests: u64,
    /// Changes that were sent more than once, and more than twice.
    pub(super) retried: u64,
    pub(super) retried_again: u64,
    /// How often a change was sent at most.
    pub(super) tries_max: u64,
}

struct Shared {
    addresses: Addresses,
    over: AtomicBool,
    longest_us: AtomicU64,
    /// Acknowledged changes of each client.
    done: [AtomicU64; WRITERS],
    retried: AtomicU64,
    retried_again: AtomicU64,
    tries_max: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Writers {
    /// Starts them; `label` is a word of this run, which begins the names of players.
    pub(super) fn start(addresses: Addresses, label: &str) -> Self {
        let shared = Arc::new(Shared {
            addresses,
            over: AtomicBool::new(false),
            longest_us: AtomicU64::new(0),
            done: Default::default(),
            retried: AtomicU64::new(0),
            retried_again: AtomicU64::new(0),
            tries_max: AtomicU64::new(0),
            failure: Mutex::default(),
        });
        let start = |number| {
            let (shared, label) = (Arc::clone(&shared), label.to_owned());
            std::thread::spawn(move || shared.write(number, &label))
        };
        let threads = (0..WRITERS).map(start).collect();
        Self { label: label.to_owned(), shared, threads }
    }

    /// Forgets the waits so far.
    pub(super) fn begin(&self) {
        self.shared.longest_us.store(0, Ordering::SeqCst);
    }

    /// The longest wait for an acknowledgement since then. Each client must have had a request of its own in between.
    pub(super) fn longest(&self) -> Result<Duration, Error> {
        let done = || self.shared.done.iter().map(|done| done.load(Ordering::SeqCst));
        // The first one may have been sent before.
        let wanted: Vec<u64> = done().map(|done| done + 2).collect();
        while done().zip(&wanted).any(|(done, wanted)| done < *wanted) {
            let ended = self.threads.iter().any(JoinHandle::is_finished);
            // A client that has failed says why before it ends.
            self.prove_well()?;
            prove(!ended, || "a client has ended before its time".to_owned())?;
            std::thread::sleep(PAUSE);
        }
        Ok(Duration::from_micros(self.shared.longest_us.load(Ordering::SeqCst)))
    }

    /// Ends them; all of their changes are acknowledged.
    pub(super) fn stop(mut self) -> Result<Written, Error> {
        self.shared.over.store(true, Ordering::SeqCst);
        let mut sums = Vec::with_capacity(WRITERS * PLAYERS);
        for (number, thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            let counts = thread.join().expect("a client does not panic");
            let named = counts.into_iter().enumerate();
            sums.extend(named.map(|(player, sum)| (name(&self.label, number, player), sum)));
        }
        self.prove_well()?;
        let of = |count: &AtomicU64| count.load(Ordering::SeqCst);
        let shared = &self.shared;
        Ok(Written {
            sums: sums.into_iter().filter(|(_, sum)| *sum > 0).collect(),
            requests: shared.done.iter().map(of).sum(),
            retried: of(&shared.retried),
            retried_again: of(&shared.retried_again),
            tries_max: of(&shared.tries_max),
        })
    }

    fn prove_well(&self) -> Result<(), Error> {
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
        prove(failure.is_none(), || failure.clone().unwrap_or_default())
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        // A failed run leaves none behind.
        self.shared.over.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    /// One client, until the end; the number of changes of each of its players.
    fn write(&self, number: usize, label: &str) -> Vec<i64> {
        let (mut sums, mut client) = (vec![0; PLAYERS], Retrying { at: number, client: None });
        for change in 0_usize.. {
            if self.over.load(Ordering::SeqCst) {
                break;
            }
            let player = change % PLAYERS;
            let (name, key) = (name(label, number, player), format!("{label}-{number}-{change}"));
            let began = Instant::now();
            match client.add(&self.addresses, &self.over, (&name, &key)) {
                Ok(tries) => {
                    self.note(tries, began.elapsed());
                    sums[player] += 1;
                    self.done[number].fetch_add(1, Ordering::SeqCst);
                }
                Err(why) => {
                    let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                    *failure = Some(format!("a change of {name} was not acknowledged: {why}"));
                    break;
                }
            }
            std::thread::sleep(PAUSE);
        }
        sums
    }

    fn note(&self, tries: u64, took: Duration) {
        self.longest_us.fetch_max(took.as_micros() as u64, Ordering::SeqCst);
        self.tries_max.fetch_max(tries, Ordering::SeqCst);
        self.retried.fetch_add(u64::from(tries > 1), Ordering::SeqCst);
        self.retried_again.fetch_add(u64::from(tries > 2), Ordering::SeqCst);
    }
}

/// A client of several servers.
struct Retrying {
    /// The server that answered last.
    at: usize,
    client: Option<Client>,
}

impl Retrying {
    /// Adds 1 to a sum; returns how often the change was sent.
    fn add(
        &mut self,
        addresses: &Addresses,
        over: &AtomicBool,
        (player, key): (&str, &str),
    ) -> Result<u64, String> {
        let began = Instant::now();
        let (path, body) = (format!("/v1/leaderboards/{SUMS}/scores"), json!({"player": player, "score": 1}));
        let mut tries = 0;
        loop {
            tries += 1;
            let all = addresses.all();
            let address = all[self.at % all.len()];
            let sent = match self.client.take().filter(|client| client.address() == address) {
                Some(client) => Ok(client),
                None => Client::new(address, ANSWER_MAX),
            };
            let sent = sent.and_then(|mut client| {
                let answer = client.send("POST", &path, Some(key), &body);
                self.client = Some(client);
                answer
            });
            let why = match sent {
                Ok((200..300, _)) => return Ok(tries),
                Ok((status, body)) => format!("{status}: {body}"),
                Err(error) => error.to_string(),
            };
            // Without an end a failed run would wait for servers that are gone.
            if began.elapsed() > PATIENCE || over.load(Ordering::SeqCst) && began.elapsed() > 6 * ANSWER_MAX {
                return Err(why);
            }
            self.at += 1;
            std::thread::sleep(RETRY_PAUSE);
        }
    }
}

fn name(label: &str, number: usize, player: usize) -> String {
    format!("{label}-{number}-{player}")
}
