//! The run itself: one thread, its connections, and a queue of the iterations that wait for a connection.
//!
//! A connection that breaks or times out fails its iteration. The next iteration opens it again, so a server that comes
//! back gets requests again. A connection that the server closed while it was idle is reopened before use. Members sign
//! in before the clock starts if the journey needs their tokens.
//!
//! A run that is stopped takes no more arrivals and drops those that wait for a connection. It waits for running
//! iterations at most as long as a response may take. A second stop ends that wait.

use super::journey::{Actor, Call, Director, Scene, token};
use super::link::Link;
use super::outcome::{OpenOutcome, Second};
use super::pacer;
use super::schedule::Schedule;
use super::stolen::Ticks;
use crate::latencies::Latencies;
use crate::people::People;
use crate::run::runtime;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinSet, LocalSet};

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct OpenLimits {
    /// Connections.
    pub connections: usize,
    /// Arrivals that may wait for a connection; the next one is dropped.
    pub waiting: usize,
    /// The timeout of a response.
    pub answer: Duration,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub enum OpenProgress {
    /// The members that have signed in, and all members.
    SignedIn(u64, u64),
    /// A second is over.
    Second(Second),
}

/// Runs a schedule until its end, or until `stop` receives a signal. Blocks; must not be called from an async runtime.
///
/// # Errors
///
/// If the server is unreachable at the beginning, or rejects a sign-in; [`io::ErrorKind::Interrupted`] if the run was
/// stopped before the clock started.
pub fn run(
    scene: &Scene,
    schedule: &Schedule,
    bounds: OpenLimits,
    mut stop: mpsc::Receiver<()>,
    on_progress: &mut dyn FnMut(OpenProgress),
) -> io::Result<OpenOutcome> {
    let runtime = runtime()?;
    let driven = async {
        let (connections, tokens) = tokio::select! {
            ready = prepare(scene, bounds, on_progress) => ready?,
            Some(()) = stop.recv() => return Err(io::ErrorKind::Interrupted.into()),
        };
        drive(scene, schedule, (bounds, &mut stop), (connections, tokens), on_progress).await
    };
    LocalSet::new().block_on(&runtime, driven)
}

struct Shared {
    director: RefCell<Director>,
    outcome: RefCell<OpenOutcome>,
    /// Of the current second.
    second: RefCell<(Second, Latencies)>,
    /// At the start of the current second.
    ticks: Cell<Option<Ticks>>,
    queue: RefCell<VecDeque<Instant>>,
    busy: Cell<u64>,
    over: Cell<bool>,
    wake: Notify,
    bounds: OpenLimits,
}

/// Opens connections and signs members in, before the clock starts.
async fn prepare(
    scene: &Scene,
    bounds: OpenLimits,
    on_progress: &mut dyn FnMut(OpenProgress),
) -> io::Result<(Vec<Link>, Vec<String>)> {
    let mut connections = Vec::with_capacity(bounds.connections);
    for _ in 0..bounds.connections {
        connections.push(Link::open(scene).await?);
    }
    let tokens = match scene.journey.needs_tokens() {
        true => sign_in(scene, &mut connections, on_progress).await?,
        false => Vec::new(),
    };
    Ok((connections, tokens))
}

async fn drive(
    scene: &Scene,
    schedule: &Schedule,
    (bounds, stop): (OpenLimits, &mut mpsc::Receiver<()>),
    (connections, tokens): (Vec<Link>, Vec<String>),
    on_progress: &mut dyn FnMut(OpenProgress),
) -> io::Result<OpenOutcome> {
    let shared = Rc::new(Shared {
        director: RefCell::new(Director::new(scene.clone(), &tokens)),
        outcome: RefCell::new(OpenOutcome::new(&scene.journey.names())),
        second: RefCell::default(),
        ticks: Cell::new(Ticks::now()),
        queue: RefCell::default(),
        busy: Cell::new(0),
        over: Cell::new(false),
        wake: Notify::new(),
        bounds,
    });
    let (mut workers, scene) = (JoinSet::new(), Rc::new(scene.clone()));
    for connection in connections {
        let shared = Rc::clone(&shared);
        workers.spawn_local(work(shared, Rc::clone(&scene), Some(connection)));
    }
    let (begin, ticks) = (Instant::now(), shared.ticks.get());
    shared.outcome.borrow_mut().begun = SystemTime::now();
    let mut arrivals = pacer::start(schedule.clone(), begin)?;
    let mut seconds = tokio::time::interval_at((begin + SECOND).into(), SECOND);
    // The end of the wait for running iterations, once the run was stopped.
    let mut until: Option<Instant> = None;
    loop {
        let given_up = async {
            match until {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = seconds.tick() => on_progress(OpenProgress::Second(shared.end_second(begin.elapsed(), schedule))),
            Some(()) = stop.recv() => match until {
                None => {
                    until = Some(Instant::now() + bounds.answer);
                    shared.interrupt();
                }
                Some(_) => break,
            },
            () = given_up => break,
            due = arrivals.recv(), if !shared.over.get() => match due {
                Some(due) => shared.arrive(due),
                None => shared.end_of_arrivals(),
            },
            ended = workers.join_next(), if shared.over.get() => match ended {
                Some(ended) => ended.map_err(io::Error::other)?,
                None => break,
            },
        }
    }
    workers.shutdown().await;
    shared.give_up();
    on_progress(OpenProgress::Second(shared.end_second(begin.elapsed(), schedule)));
    let mut outcome = shared.outcome.replace(OpenOutcome::new(&[]));
    outcome.lasted = begin.elapsed();
    outcome.stolen = stolen(ticks, shared.ticks.get());
    Ok(outcome)
}

/// 0 on a system without these figures.
fn stolen(then: Option<Ticks>, now: Option<Ticks>) -> f64 {
    then.zip(now).map_or(0.0, |(then, now)| now.stolen_since(then))
}

const SECOND: Duration = Duration::from_secs(1);
/// Concurrent sign-ins before a run.
const SIGN_INS: usize = 4;

/// Signs members in, a few at a time: the server hashes at most as many passwords at once as it has processors for.
async fn sign_in(
    scene: &Scene,
    connections: &mut Vec<Link>,
    on_progress: &mut dyn FnMut(OpenProgress),
) -> io::Result<Vec<String>> {
    let director = Rc::new(RefCell::new(Director::new(scene.clone(), &[])));
    let mut tokens = vec![String::new(); scene.members as usize];
    let (mut members, mut done) = (0..scene.members, 0);
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < SIGN_INS
            && let Some(connection) = connections.pop()
        {
            let Some(member) = members.next() else {
                connections.push(connection);
                break;
            };
            let (director, people) = (Rc::clone(&director), scene.people);
            under_way.spawn_local(async move { sign_in_one(&director, people, connection, member).await });
        }
        let Some(ended) = under_way.join_next().await else { return Ok(tokens) };
        let (connection, member, token) = ended.map_err(io::Error::other)??;
        connections.push(connection);
        tokens[member as usize] = token;
        done += 1;
        on_progress(OpenProgress::SignedIn(done, scene.members));
    }
}

async fn sign_in_one(
    director: &RefCell<Director>,
    people: People,
    mut connection: Link,
    member: u64,
) -> io::Result<(Link, u64, String)> {
    let mut out = Vec::new();
    director.borrow_mut().first_sign_in(&mut out, member);
    let answer = connection.call(&out).await?;
    let token = answer.and_then(|body| token(body).ok_or_else(|| "no token in the answer".to_owned()));
    let token = token.map_err(|why| {
        let login = people.person(member).login;
        let hint = "members are those of `tally seed wallets`; --members and --of say how many there are";
        io::Error::other(format!("`{login}` cannot sign in ({hint}): {why}"))
    })?;
    Ok((connection, member, token))
}

async fn work(shared: Rc<Shared>, scene: Rc<Scene>, mut connection: Option<Link>) {
    let mut out = Vec::with_capacity(1024);
    loop {
        let next = shared.queue.borrow_mut().pop_front();
        let Some(due) = next else {
            if shared.over.get() {
                return;
            }
            shared.wake.notified().await;
            continue;
        };
        shared.busy.set(shared.busy.get() + 1);
        let mut actor = shared.director.borrow_mut().actor();
        let mut from = due;
        let mut well = true;
        let calls = shared.director.borrow_mut().calls();
        for at in calls {
            let call = scene.journey.calls()[at];
            shared.director.borrow_mut().request(&mut out, call, &actor);
            let answer = make_call(&shared, &scene, &mut connection, &out, (call, &mut actor));
            let answered = tokio::time::timeout(shared.bounds.answer, answer).await;
            let now = Instant::now();
            let mut outcome = shared.outcome.borrow_mut();
            match answered.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(()) => outcome.calls[at].latencies.record(now - from),
                Err(what) => {
                    outcome.error(at, what);
                    well = false;
                    break;
                }
            }
            from = now;
        }
        shared.end(due, well);
    }
}

/// One call; an error is a short text, equal for all errors of a kind. A connection that fails, or is given up before its
/// response has arrived, is not reused.
async fn make_call(
    shared: &Shared,
    scene: &Scene,
    connection: &mut Option<Link>,
    request: &[u8],
    (call, actor): (Call, &mut Actor),
) -> Result<(), String> {
    let kind = |error: io::Error| format!("connection: {}", error.kind());
    let mut own = match connection.take().filter(Link::is_open) {
        Some(own) => own,
        None => Link::open(scene).await.map_err(kind)?,
    };
    let done = own.call(request).await.map_err(kind)?.and_then(|body| {
        let read = shared.director.borrow().answered(call, actor, body);
        read.ok_or_else(|| "an answer that cannot be read".to_owned())
    });
    *connection = Some(own);
    done
}

impl Shared {
    fn arrive(&self, due: Instant) {
        let mut outcome = self.outcome.borrow_mut();
        outcome.arrived += 1;
        let mut queue = self.queue.borrow_mut();
        if queue.len() >= self.bounds.waiting {
            outcome.dropped += 1;
            self.second.borrow_mut().0.dropped += 1;
            return;
        }
        queue.push_back(due);
        drop(queue);
        self.wake.notify_one();
    }

    fn end_of_arrivals(&self) {
        self.over.set(true);
        self.wake.notify_waiters();
    }

    /// Takes no more arrivals; those that wait for a connection do not count.
    fn interrupt(&self) {
        let waited = self.queue.take().len() as u64;
        let mut outcome = self.outcome.borrow_mut();
        outcome.interrupted = true;
        outcome.arrived -= waited;
        drop(outcome);
        self.end_of_arrivals();
    }

    /// Counts the iterations that are still running as failed.
    fn give_up(&self) {
        let left = self.busy.replace(0);
        self.outcome.borrow_mut().failed += left;
        self.second.borrow_mut().0.failed += left;
    }

    fn end(&self, due: Instant, well: bool) {
        let (mut outcome, mut second) = (self.outcome.borrow_mut(), self.second.borrow_mut());
        self.busy.set(self.busy.get() - 1);
        if well {
            let took = due.elapsed();
            outcome.iterations.record(took);
            second.0.done += 1;
            second.1.record(took);
        } else {
            outcome.failed += 1;
            second.0.failed += 1;
        }
    }

    fn end_second(&self, at: Duration, schedule: &Schedule) -> Second {
        let (mut second, latencies) = self.second.take();
        second.at = at.as_secs_f64();
        second.target = schedule.rate_at(at.saturating_sub(SECOND / 2));
        second.ms = [50.0, 95.0, 99.0, 100.0].map(|percent| latencies.percentile_ms(percent));
        let now = Ticks::now();
        second.stolen = stolen(self.ticks.replace(now), now);
        second.waiting = self.busy.get() + self.queue.borrow().len() as u64;
        self.outcome.borrow_mut().seconds.push(second);
        second
    }
}

#[cfg(test)]
mod tests;
