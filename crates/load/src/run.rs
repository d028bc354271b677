//! A closed-loop run: connections that send requests until the time is over.
//!
//! One thread drives all connections as tasks that share their counters without a lock. A broken connection is counted and
//! not reopened: a server that drops connections under load must not look fast.

use crate::acknowledged::Acknowledged;
use crate::arrivals::Closed;
use crate::connection::Connection;
use crate::draws::Skew;
use crate::outcome::LoadOutcome;
use crate::workload::{LoadTarget, RequestKind, Requests, Sent};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// The plan of a run.
#[derive(Clone, Copy, Debug)]
pub struct LoadPlan {
    /// The kind of request.
    pub kind: RequestKind,
    /// How requests spread over players.
    pub skew: Skew,
    /// The number of connections.
    pub connections: usize,
    /// The time before anything is measured.
    pub warm_up: Duration,
    /// The measured time.
    pub duration: Duration,
    /// Equal seeds give equal requests; their number depends on the server.
    pub seed: u64,
}

/// Runs the plan and records its submits in `acknowledged`. Blocks; must not be called from an async runtime.
///
/// # Errors
///
/// If a connection cannot be opened. Later failures of connections are in the outcome.
pub fn run(target: &LoadTarget, plan: &LoadPlan, acknowledged: &mut Acknowledged) -> io::Result<LoadOutcome> {
    let runtime = runtime()?;
    let shared = Rc::new(RefCell::new(Shared {
        outcome: LoadOutcome::new(plan.kind, plan.connections),
        acknowledged: std::mem::replace(acknowledged, Acknowledged::new(0)),
    }));
    let done = LocalSet::new().block_on(&runtime, drive(target, plan, &shared));
    let mut shared = shared.borrow_mut();
    *acknowledged = std::mem::replace(&mut shared.acknowledged, Acknowledged::new(0));
    shared.outcome.seconds = done?.as_secs_f64();
    Ok(shared.outcome.clone())
}

/// The runtime of this crate: one thread.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()
}

struct Shared {
    outcome: LoadOutcome,
    acknowledged: Acknowledged,
}

async fn drive(target: &LoadTarget, plan: &LoadPlan, shared: &Rc<RefCell<Shared>>) -> io::Result<Duration> {
    let mut connections = Vec::with_capacity(plan.connections);
    for _ in 0..plan.connections {
        connections.push(Connection::open(target.address).await?);
    }
    let arrivals = Closed::new(Instant::now(), plan.warm_up, plan.duration);
    let mut tasks = Vec::with_capacity(plan.connections);
    for (number, connection) in (0_u64..).zip(connections) {
        let own = (number, plan.connections as u64);
        let requests = Requests::new(target, (plan.kind, plan.skew), own, plan.seed);
        tasks.push(tokio::task::spawn_local(run_caller(arrivals, connection, requests, Rc::clone(shared))));
    }
    for task in tasks {
        task.await.map_err(io::Error::other)?;
    }
    Ok(Instant::now().saturating_duration_since(arrivals.counts_from()))
}

async fn run_caller(
    arrivals: Closed,
    mut connection: Connection,
    mut requests: Requests,
    shared: Rc<RefCell<Shared>>,
) {
    let mut idle = Instant::now();
    while let Some(slot) = arrivals.next(idle) {
        let sent = requests.next();
        let answered = connection.call(requests.bytes()).await.map(|answer| answer.status);
        idle = Instant::now();
        let mut shared = shared.borrow_mut();
        shared.note(sent, answered.as_ref().copied().unwrap_or(0));
        match answered {
            Ok(200..300) if slot.counts => {
                shared.outcome.succeeded += 1;
                let outcome = &mut shared.outcome;
                let latencies = if sent.is_some() { &mut outcome.submits } else { &mut outcome.reads };
                latencies.record(idle.saturating_duration_since(slot.due));
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

impl Shared {
    /// Records what a response of this status means for a submit, and counts failures; 0 is a missing response.
    fn note(&mut self, sent: Option<Sent>, status: u16) {
        let succeeded = (200..300).contains(&status);
        if !succeeded {
            *self.outcome.errors.entry(status).or_default() += 1;
        }
        match sent {
            Some(sent) if succeeded => self.acknowledged.promise(sent.player, sent.score),
            // A rejection (4xx) and a full queue (503) promise that nothing was done, but the check must not rely on that.
            Some(sent) => self.acknowledged.forget(sent.player),
            None => {}
        }
    }
}
