//! The servers, the networks between them and to their database, and what disturbs them.
//!
//! Each server has a way of its own to the database, and one on which the others reach it. A server that was taken over ends by
//! itself; it is started again, as a supervisor does.

use super::callers::{Run, SERVERS};
use super::truth::{BOARDS, WRITERS, read_page, shown_at_top, subject};
use crate::followers::{database, stopped_on};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use tally_testkit::{
    COMMIT, Client, Cut, DatabaseKind, Proxy, Request, Rng, ScratchDatabase, TestTally, rng, wait_until,
};

/// The lease: the shortest one there is for many disturbances, else one that a busy machine mostly keeps.
const LEASES: [&str; 2] = ["1s", "3s"];
/// One that no busy machine ends.
const CALM_LEASE: &str = "60s";
/// How long most disturbances last, and how long others do: shorter and longer than the lease.
const SHORT_MS: u64 = 300;
const LONG_MS: u64 = 2_500;
/// An address at which nothing listens.
const NOWHERE: ([u8; 4], u16) = ([127, 0, 0, 1], 9);
/// Bytes of what a follower sends to the leader: changes at their beginning and later, and questions for changes.
const REQUESTS: [&[u8]; 3] = [b"POST /", b"idempotency-key", b"/servers/changes?after"];

/// A server and its networks, which end after it.
struct Member {
    server: TestTally,
    /// From other servers to this one.
    front: Proxy,
    /// From this one to the database.
    database: Proxy,
    is_stopped: bool,
    ends: bool,
}

/// What happens to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Disturbance {
    Kill,
    Terminate,
    Stop,
    Front(Fault),
    Database(Fault),
}

/// What happens to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Cut,
    /// It is cut, and new connections are refused.
    Refuse,
    /// Nothing passes, and comes later.
    Hold,
    Delay,
    /// One request and what follows it are lost, or the answer to it.
    Request,
    Answer,
}

const FAULTS: [Fault; 6] =
    [Fault::Cut, Fault::Refuse, Fault::Hold, Fault::Delay, Fault::Request, Fault::Answer];

pub(super) struct World<'a> {
    run: &'a Run,
    members: Vec<Member>,
    /// How often each thing happened, and the last ones.
    counts: BTreeMap<Disturbance, usize>,
    last: Vec<String>,
}

impl<'a> World<'a> {
    pub(super) fn start(run: &'a Run) -> Self {
        let url = database();
        let members = (0..SERVERS).map(|_| Member::new(&url)).collect();
        let mut world = Self { run, members, counts: BTreeMap::new(), last: Vec::new() };
        for nth in 0..SERVERS {
            world.launch(nth);
        }
        world.wait_ready();
        world
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = &TestTally> {
        self.members.iter().map(|member| &member.server)
    }

    /// Disturbs once or twice at a time, ends that, and mostly waits until changes are made again. Returns how many disturbances
    /// there were.
    pub(super) fn disturb(&mut self, rng: &mut Rng) -> usize {
        let (leader, mut count) = (self.leader(), 0);
        for _ in 0..1 + usize::from(rng.percent(30)) {
            let nth = usize::try_from(rng.below(SERVERS as u64)).expect("an index fits");
            let nth = leader.filter(|_| rng.percent(50)).unwrap_or(nth);
            let what = match rng.below(100) {
                0..22 => Disturbance::Kill,
                22..32 => Disturbance::Terminate,
                32..50 => Disturbance::Stop,
                50..78 => Disturbance::Front(*rng.pick(&FAULTS)),
                _ => Disturbance::Database(*rng.pick(&FAULTS)),
            };
            if self.begin(nth, what, rng) {
                self.last.push(format!("{:?}: {what:?} of {nth}", SystemTime::now()));
                *self.counts.entry(what).or_default() += 1;
                count += 1;
            }
        }
        let long = rng.percent(20);
        std::thread::sleep(Duration::from_millis(rng.below(if long { LONG_MS } else { SHORT_MS })));
        self.heal();
        if rng.percent(75) {
            self.wait_written();
        }
        if rng.percent(30) {
            self.wait_ready();
        }
        count
    }

    /// Begins a disturbance; whether there was one. A server that has ended cannot be killed.
    fn begin(&mut self, nth: usize, what: Disturbance, rng: &mut Rng) -> bool {
        let member = &mut self.members[nth];
        let is_up = member.server.is_running() && !member.ends;
        match what {
            Disturbance::Kill if is_up => {
                self.set_down(nth);
                self.members[nth].server.kill9();
                self.members[nth].is_stopped = false;
            }
            Disturbance::Terminate if is_up && !member.is_stopped => {
                member.server.signal_end();
                member.ends = true;
            }
            Disturbance::Stop if is_up && !member.is_stopped => {
                member.server.signal("STOP");
                member.is_stopped = true;
            }
            Disturbance::Kill | Disturbance::Terminate | Disturbance::Stop => return false,
            Disturbance::Front(fault) => {
                let request: &&[u8] = rng.pick(&REQUESTS);
                disturb(&member.front, fault, request);
            }
            Disturbance::Database(fault) => disturb(&member.database, fault, COMMIT),
        }
        true
    }

    /// Ends what disturbs, and starts servers that have ended.
    fn heal(&mut self) {
        for member in &mut self.members {
            member.front.pass();
            member.database.pass();
            if std::mem::take(&mut member.is_stopped) {
                member.server.signal("CONT");
            }
        }
        self.revive();
    }

    fn revive(&mut self) {
        for nth in 0..SERVERS {
            let member = &mut self.members[nth];
            if member.server.is_running() && (member.ends || member.server.has_ended()) {
                self.set_down(nth);
                // One that was taken over ends by itself.
                let member = &mut self.members[nth];
                let code = member.server.wait_exit();
                assert!([Some(0), Some(1)].contains(&code), "server {nth} ended with {code:?}");
                member.ends = false;
            }
            if !self.members[nth].server.is_running() {
                self.launch(nth);
            }
        }
    }

    /// No caller and no server goes to its address any more: another program may get it.
    fn set_down(&self, nth: usize) {
        self.run.set_addresses(nth, None);
        self.members[nth].front.retarget(NOWHERE.into());
    }

    fn launch(&mut self, nth: usize) {
        let member = &mut self.members[nth];
        member.server.launch();
        let addresses = (member.server.address(), member.server.resp());
        member.front.retarget(addresses.0);
        self.run.set_addresses(nth, Some(addresses));
    }

    /// The one that leads, if one says so.
    fn leader(&self) -> Option<usize> {
        (0..SERVERS).find(|nth| self.ready(*nth).is_some_and(|follows| !follows))
    }

    /// Whether a server that is ready follows another one.
    fn ready(&self, nth: usize) -> Option<bool> {
        let member = self.members.get(nth).filter(|member| member.server.is_running())?;
        let mut client = member.server.client().with_patience(Duration::from_secs(2));
        let answer = client.try_send(&Request::new("GET", "/readyz")).ok()?;
        (answer.status == 200).then(|| answer.json()["follows"]["leader"].is_string())
    }

    /// Waits until each writer has made a change that was begun after now.
    pub(super) fn wait_written(&mut self) {
        let count = |run: &Run| run.written.each_ref().map(|count| count.load(Ordering::SeqCst));
        let before = count(self.run);
        self.wait("all writers go on", |world| {
            count(world.run).iter().zip(before).all(|(now, before)| *now >= before + 2)
        });
    }

    /// Waits until every server is ready, and one of them leads.
    pub(super) fn wait_ready(&mut self) {
        self.wait("all servers are ready", |world| {
            let ready: Option<Vec<bool>> = (0..SERVERS).map(|nth| world.ready(nth)).collect();
            ready.is_some_and(|follow| follow.iter().filter(|follows| !**follows).count() == 1)
        });
    }

    /// Waits until every server shows exactly what is true.
    pub(super) fn wait_shown(&mut self) {
        self.wait("every server shows everything", |world| {
            world.servers().all(|server| server.is_running() && shows_all(world.run, server).is_some())
        });
    }

    pub(super) fn wait(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        wait_until(what, || {
            self.check();
            self.revive();
            is_so(self)
        });
    }

    /// Ends all servers, and starts one with a lease that no busy machine ends: its drop compares it with the store.
    pub(super) fn calm(&mut self) {
        for nth in 0..SERVERS {
            self.set_down(nth);
            self.members[nth].server.signal_end();
            self.members[nth].server.wait_exit();
        }
        let server = &mut self.members[0].server;
        server.set("TALLY_STORE_LEASE", CALM_LEASE);
        server.restart();
    }

    /// Fails if a caller has found something wrong.
    pub(super) fn check(&self) {
        if let Some(why) = self.run.failure() {
            let last = &self.last[self.last.len().saturating_sub(8)..];
            panic!("{why}\nafter {} disturbances, the last ones: {last:#?}", self.last.len());
        }
    }

    /// What happened, as a text.
    pub(super) fn summary(&self) -> String {
        let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        let written: usize = self.run.written.iter().map(count).sum();
        let Run { read, exact, refused, .. } = self.run;
        let [read, exact, refused] = [read, exact, refused].map(count);
        format!(
            "{} disturbances {:?}; {written} changes, {read} reads ({exact} exact), {refused} failed attempts",
            self.last.len(),
            self.counts
        )
    }
}

impl Member {
    fn new(url: &str) -> Self {
        let place = ScratchDatabase::shared(DatabaseKind::MariaDb10).address();
        let (front, database) = (Proxy::start(NOWHERE.into()), Proxy::start(place));
        let mut server = stopped_on(&url.replace(&place.to_string(), &database.address().to_string()));
        let [many, few] = LEASES;
        server.set("TALLY_STORE_LEASE", if rng::soak(1) > 1 { many } else { few });
        server.set("TALLY_FOLLOW_ADVERTISE", &format!("http://{}", front.address()));
        // What a server says that loses its database, its leader or its lease.
        let said = ["it is tried again", "the store is unavailable", "a request met a fault", "the clock"];
        for text in [&said[..], &["another server has taken the store over"]].concat() {
            server.allow(text);
        }
        Self { server, front, database, is_stopped: false, ends: false }
    }
}

fn disturb(network: &Proxy, fault: Fault, pattern: &[u8]) {
    match fault {
        Fault::Cut => network.cut(),
        Fault::Refuse => {
            network.refuse();
            network.cut();
        }
        Fault::Hold => network.freeze(),
        Fault::Delay => network.delay(Duration::from_millis(30)),
        Fault::Request => network.cut_at(pattern, Cut::Before),
        Fault::Answer => network.cut_at(pattern, Cut::Answer),
    }
}

/// The scores that a page shows; nothing if the server does not answer.
fn page(client: &mut Client, target: &str) -> Option<Value> {
    let answer = client.try_send(&Request::new("GET", target)).ok()?;
    [200, 404].contains(&answer.status).then(|| answer.json())
}

/// Something if a server shows exactly the end of everything.
fn shows_all(run: &Run, server: &TestTally) -> Option<()> {
    let mut client = server.client();
    for board in (0..WRITERS).map(|nth| subject("made", nth)) {
        let page = page(&mut client, &format!("/v1/leaderboards/{board}/scores"))?;
        if shown_at_top(&page) != run.truth.last(&board) {
            return None;
        }
    }
    for (board, update, kinds) in BOARDS {
        let page = page(&mut client, &format!("/v1/leaderboards/{board}/scores?limit=1000"))?;
        let all = kinds.iter().flat_map(|kind| (0..WRITERS).map(move |nth| subject(kind, nth)));
        let wanted = all.filter_map(|name| Some((name.clone(), run.truth.last(&name)?)));
        if read_page(update, &page).ok()? != wanted.collect::<BTreeMap<_, _>>() {
            return None;
        }
    }
    Some(())
}
