//! Load in the Redis protocol: connections that send a chunk of commands, wait for its replies, and send the next.
//!
//! A closed loop like that over HTTP, on one thread, with the same clock and latencies. It measures chunks, because its
//! caller waits for a chunk. A generator appends a chunk to a buffer and returns its number of replies, so a chunk may be
//! a pipeline or a transaction. Replies are counted and not parsed, except for errors.
//!
//! Not here: what the replies contain (a test checks that), and rates kept by a clock. Other machines neither: the
//! generator sends only to loopback, because it would harm the servers of others.

mod connection;

use crate::arrivals::Closed;
use crate::latencies::Latencies;
use crate::run::runtime;
pub(crate) use connection::Connection;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Pipelines {
    /// The number of connections.
    pub connections: usize,
    /// Commands that each connection sends first, one by one; none may fail.
    pub opening: Vec<Vec<u8>>,
    /// The time before anything is measured.
    pub warm_up: Duration,
    /// The measured time.
    pub duration: Duration,
    /// The run also ends after this many commands, with those of the warm-up.
    pub commands_max: u64,
}

/// The figures of a run, without its warm-up.
#[derive(Clone, Debug, Default)]
pub struct Replied {
    /// The duration in seconds, up to the last reply.
    pub seconds: f64,
    /// Replies without an error.
    pub succeeded: u64,
    /// Replies with an error, with those of the warm-up.
    pub refused: u64,
    /// The first error, or why the first connection broke.
    pub first_fault: Option<String>,
    /// Connections that broke.
    pub broken: u64,
    /// From sending a chunk to the last byte of its replies.
    pub latencies: Latencies,
}

impl Replied {
    /// Successes per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.succeeded as f64 / self.seconds } else { 0.0 }
    }
}

/// Runs the plan. `chunk` gets the number of a connection and appends its next commands; it returns their number. Blocks;
/// must not be called from an async runtime.
///
/// # Errors
///
/// If the address is not loopback, or a connection cannot be opened. Later failures of connections are in the result.
pub fn run_pipelines(
    address: SocketAddr,
    plan: &Pipelines,
    chunk: impl FnMut(u64, &mut Vec<u8>) -> u64 + 'static,
) -> io::Result<Replied> {
    if !address.ip().is_loopback() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "load is sent to this machine only"));
    }
    let run = Run { chunk, left: plan.commands_max, replied: Replied::default() };
    let run = Rc::new(RefCell::new(run));
    let seconds = LocalSet::new().block_on(&runtime()?, drive(address, plan, &run))?.as_secs_f64();
    let replied = std::mem::take(&mut run.borrow_mut().replied);
    Ok(Replied { seconds, ..replied })
}

/// The state that the connections of a run share.
struct Run<C> {
    chunk: C,
    left: u64,
    replied: Replied,
}

async fn drive<C: FnMut(u64, &mut Vec<u8>) -> u64 + 'static>(
    address: SocketAddr,
    plan: &Pipelines,
    run: &Rc<RefCell<Run<C>>>,
) -> io::Result<Duration> {
    let mut connections = Vec::with_capacity(plan.connections);
    for _ in 0..plan.connections {
        let mut connection = Connection::open(address).await?;
        for command in &plan.opening {
            connection.out().extend_from_slice(command);
            if let Some(error) = connection.exchange(1).await?.first_error {
                return Err(io::Error::other(error));
            }
        }
        connections.push(connection);
    }
    let arrivals = Closed::new(Instant::now(), plan.warm_up, plan.duration);
    let mut tasks = Vec::with_capacity(plan.connections);
    for (number, connection) in (0..).zip(connections) {
        tasks.push(tokio::task::spawn_local(run_caller(arrivals, number, connection, Rc::clone(run))));
    }
    for task in tasks {
        task.await.map_err(io::Error::other)?;
    }
    Ok(Instant::now().saturating_duration_since(arrivals.counts_from()))
}

async fn run_caller<C: FnMut(u64, &mut Vec<u8>) -> u64>(
    arrivals: Closed,
    number: u64,
    mut connection: Connection,
    run: Rc<RefCell<Run<C>>>,
) {
    let mut idle = Instant::now();
    while let Some(slot) = arrivals.next(idle) {
        let Some(commands) = run.borrow_mut().next(number, connection.out()) else { return };
        let exchanged = connection.exchange(commands).await;
        idle = Instant::now();
        let replied = &mut run.borrow_mut().replied;
        match exchanged {
            Ok(exchanged) => {
                replied.refused += exchanged.errors;
                if slot.counts {
                    replied.succeeded += commands - exchanged.errors;
                    replied.latencies.record(idle.saturating_duration_since(slot.due));
                }
                if replied.first_fault.is_none() {
                    replied.first_fault = exchanged.first_error;
                }
            }
            // A broken connection is not reopened: a server that drops connections must not look fast.
            Err(error) => {
                replied.broken += 1;
                replied.first_fault.get_or_insert_with(|| error.to_string());
                return;
            }
        }
    }
}

impl<C: FnMut(u64, &mut Vec<u8>) -> u64> Run<C> {
    /// Makes the next chunk of a connection, unless all have been sent.
    fn next(&mut self, connection: u64, out: &mut Vec<u8>) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        let commands = (self.chunk)(connection, out);
        assert!(commands > 0, "a chunk that asks for nothing would never be answered");
        self.left = self.left.saturating_sub(commands);
        Some(commands)
    }
}
