//! A server that follows the one that writes: it asks that one for committed changes and makes them in its rankings.
//!
//! It asks again as soon as it has an answer; the leader answers at once if there are changes, else after a moment. When the leader
//! does not answer, the database says whether its lease is over. Then this server leads if it is the first to take the lease, or
//! follows that one. Not here: what a change does (`tally_service::follow`), and the lease (`tally_store`).

use crate::client;
use crate::config::{Config, Usage};
use crate::store::{Leaderless, Opened};
use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tally_rules::Micros;
use tally_server::{CHANGES_PATH, Forwarder, ForwarderSettings, Readiness};
use tally_service::Tally;
use tally_service::follow::{Following, Handover, Message, Position, Role, apply};
use tally_service::keyring::Keyring;
use tally_service::signed_requests::{Behalf, HEADER, SignedRequest};
use tally_store::mysql::{LeaderRow, MySqlStore};
use tally_store::{Changes, Coordination};
use ureq::Agent;

/// The setting for the address on which HTTP listens.
const AUTO: &str = "auto";
/// How long ago a follower of a leader that stops has asked last.
const ASKED_MAX: Duration = Duration::from_secs(1);
/// How long a leader that stops waits for its follower, and the follower for the lease.
const HAND_OVER_MAX: Duration = Duration::from_secs(2);
const HAND_OVER_PAUSE: Duration = Duration::from_millis(2);
/// Renewals of a lease in its time.
const RENEWALS: u32 = 5;
/// The pause before a leader that did not answer is asked again, and before a failed change is tried again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a change waits for a new leader after the lease of the last one.
const TAKE_OVER_TIME: Duration = Duration::from_secs(1);
/// How long the leader may take for an answer: longer than it waits for changes.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// A message has a transaction more than the leader puts together, and that is a batch at most.
const MESSAGE_BYTES_MAX: u64 = 256 << 20;

/// The connection to the leader.
pub(super) struct Follow {
    following: Arc<Following>,
    store: Arc<MySqlStore>,
    ring: Arc<Keyring>,
    agent: Agent,
    leaderless: Arc<OnceLock<Leaderless>>,
    /// Since when the lease of the leader was found to be over.
    over_since: Cell<Option<Instant>>,
}

/// The part of a server that has the lease.
pub(super) fn role(config: &Config, databases: &[Arc<MySqlStore>], handover: Option<Handover>) -> Role {
    if may_lead(config, databases) { Role::Leads(handover) } else { Role::Alone }
}

/// Gives the place of a leader that stops to a follower, if there is one: it takes no more changes, waits until the follower has
/// all of them, and gives the lease back.
pub(super) fn hand_over(tally: &Tally, store: &Opened) {
    let Some(changes) = tally.changes.as_ref().filter(|changes| changes.is_followed(ASKED_MAX)) else {
        return;
    };
    tally.drain();
    if !store.store.may_answer() {
        return;
    }
    changes.end();
    let began = Instant::now();
    while !changes.is_read() && began.elapsed() < HAND_OVER_MAX {
        std::thread::sleep(HAND_OVER_PAUSE);
    }
    store.release();
    tracing::info!(to_follower = changes.is_read(), "does not lead any more");
}

/// What this server takes over from itself as a follower: the rankings, if what they lack can be told. `has_ended` if the leader
/// told that it ends.
pub(super) fn handover(tally: &Tally, store: &Opened, has_ended: bool) -> Option<Handover> {
    let (following, replaced) = (tally.following.as_ref()?, store.databases.first()?.replaced()?);
    // Else another server has led and written in between.
    let follows = replaced.token == following.position().token;
    let is_close = has_ended && replaced.expires_at == 0 || following.can_catch_up(replaced.expires_at);
    (follows && is_close).then(|| Handover::of(tally)).flatten()
}

/// Waits until the leader that has ended gives the lease back.
pub(super) fn wait_for_lease(store: &MySqlStore, token: u64) {
    let began = Instant::now();
    let is_held = || store.leader().is_ok_and(|leader| leader.token == token && !leader.is_over);
    while is_held() && began.elapsed() < HAND_OVER_MAX {
        std::thread::sleep(HAND_OVER_PAUSE);
    }
}

/// Stores the address of a server that leads.
pub(super) fn lead(config: &Config, databases: &[Arc<MySqlStore>], advertised: &str) -> Result<()> {
    if may_lead(config, databases) {
        databases[0].lead(advertised).context("store the address of the leader")?;
        tracing::info!(address = advertised, "leading: other servers may follow this one");
    }
    Ok(())
}

/// The address at which other servers reach this one: that of the setting, or the one on which HTTP listens.
pub(super) fn advertised(config: &Config, listens: Option<SocketAddr>) -> Result<String, Usage> {
    let wrong = || {
        config.wrong(
            "follow.advertise",
            "a URL such as `http://10.0.0.5:8420`, or `auto` if HTTP listens on such an address",
        )
    };
    let scheme = if config.text("tls.certificate").is_empty() { "http" } else { "https" };
    match config.text("follow.advertise") {
        "" => Ok(String::new()),
        AUTO => {
            let at = listens.filter(|at| !at.ip().is_unspecified()).ok_or_else(wrong)?;
            Ok(format!("{scheme}://{at}"))
        }
        url => {
            let is_url = ["http://", "https://"]
                .iter()
                .any(|scheme| url.starts_with(scheme) && url.len() > scheme.len());
            if is_url { Ok(url.trim_end_matches('/').to_owned()) } else { Err(wrong()) }
        }
    }
}

/// What sends changes to the leader while this server follows.
pub(super) fn forwarder(config: &Config) -> Result<Forwarder, Usage> {
    let patience = config.duration("store.lease")? + TAKE_OVER_TIME;
    let ca_file = ca_file(config).map(str::to_owned);
    let forwarder = Forwarder::new(&ForwarderSettings { ca_file, patience });
    forwarder.map_err(|why| Usage(format!("setting `follow.ca_file` {why}")))
}

/// The file of authorities that sign the certificates of the other servers.
fn ca_file(config: &Config) -> Option<&str> {
    Some(config.text("follow.ca_file")).filter(|file| !file.is_empty())
}

fn may_lead(config: &Config, databases: &[Arc<MySqlStore>]) -> bool {
    databases.len() == 1 && crate::store::ranks_in_memory(config) && crate::lead_or_follow::may_follow(config)
}

impl Follow {
    /// Waits for the leader, and asks where it is. `None` if this server does not follow.
    pub(super) fn begin(
        config: &Config,
        databases: &[Arc<MySqlStore>],
        ring: &Arc<Keyring>,
        leaderless: Arc<OnceLock<Leaderless>>,
    ) -> Result<Option<Self>> {
        let Some(store) = databases.first().filter(|store| store.follows()) else { return Ok(None) };
        let agent = client::quick_agent(ca_file(config).map(Path::new), ANSWER_MAX)
            .map_err(|why| Usage(format!("setting `follow.ca_file`: {why:#}")))?;
        let age_max = config.duration("follow.age_max")?;
        let (store, ring) = (Arc::clone(store), Arc::clone(ring));
        let unknown = Following::new("", Position::default(), age_max);
        let over_since = Cell::default();
        let mut follow = Self { following: Arc::new(unknown), store, ring, agent, leaderless, over_since };
        let mut said = String::new();
        let mut say = |why: String| {
            if said != why {
                tracing::info!("waits for the server that writes: {why}");
                said = why;
            }
        };
        loop {
            let LeaderRow { token, address, is_over, .. } = follow.store.leader()?;
            if is_over {
                follow.set_leaderless("no server has the lease".into(), false);
                bail!("no server has the lease");
            }
            match address.as_ref().map(|address| (address, follow.ask(address, None))) {
                None => say("it has not told its `follow.advertise`".into()),
                Some((address, Err(error))) => say(format!("{address}: {error:#}")),
                Some((address, Ok(message))) if message.newest.token == token => {
                    tracing::info!(leader = address, from = %message.newest, "following the server that writes");
                    follow.following = Arc::new(Following::new(address, message.newest, age_max));
                    return Ok(Some(follow));
                }
                Some(_) => say("another one writes by now".into()),
            }
            std::thread::sleep(PAUSE);
        }
    }

    pub(super) fn role(&self) -> Role {
        Role::Follows(Arc::clone(&self.following))
    }

    /// Makes the changes since the start, opens the gate, and follows on a thread of its own.
    ///
    /// What was read of the store may have transactions that the leader had not told yet, or a part of one. So the first answer comes
    /// when everything that had begun until then is among the changes that were made.
    pub(super) fn run(self, tally: Arc<Tally>, gate: &Readiness) -> Result<()> {
        let loaded = Instant::now();
        loop {
            let asked = Instant::now();
            match self.step(&tally) {
                Ok(Some(pending)) if pending.is_zero() || pending < asked - loaded => break,
                Ok(_) => {}
                Err(error) if self.leaderless.get().is_some() => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        gate.open(Arc::clone(&tally));
        let weak = Arc::downgrade(&tally);
        let thread = std::thread::Builder::new().name("follow".into());
        thread.spawn(move || self.follow(&weak)).map(drop).context("start the thread that follows the leader")
    }

    /// Follows until the service ends or the leader is gone.
    fn follow(self, tally: &Weak<Tally>) {
        while let Some(tally) = tally.upgrade() {
            if let Err(error) = self.step(&tally) {
                if self.leaderless.get().is_some() {
                    return;
                }
                tracing::debug!(%error, "follow the leader");
                drop(tally);
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Asks once, and makes the changes. If there are no more, returns how long ago the oldest transaction began that is not among them;
    /// zero if there is none.
    fn step(&self, tally: &Tally) -> Result<Option<Duration>> {
        let (asked, position) = (Instant::now(), self.following.position());
        let message = match self.ask(&self.following.leader(), Some(position)) {
            Ok(message) => message,
            Err(error) => {
                self.check_lease()?;
                return Err(error);
            }
        };
        self.following.hear(message.leading);
        if message.newest.token != position.token || message.first != position.number + 1 {
            let why = format!("the leader does not have the changes after {position} any more");
            self.set_leaderless(why, false);
            bail!("a gap in the changes of the leader");
        }
        let mut number = position.number;
        for changes in &message.changes {
            let changes = Changes::decode(changes).context("the leader's changes cannot be read")?;
            self.following.begin(number + 1);
            apply(tally, &changes)?;
            number += 1;
            self.following.advance(number);
        }
        let is_last = number == message.newest.number;
        if is_last {
            self.following.reached(asked);
        }
        if is_last && message.ends {
            // The leader waits until a follower says that it has everything.
            drop(self.ask(&self.following.leader(), Some(self.following.position())));
            self.set_leaderless(format!("the server at {} stops leading", self.following.leader()), true);
            bail!("the leader has ended");
        }
        Ok(is_last.then_some(Duration::from_micros(message.pending)))
    }

    /// Whether the leader that does not answer has still the lease.
    fn check_lease(&self) -> Result<()> {
        let LeaderRow { token, is_over, is_released, .. } = self.store.leader()?;
        // A database that was away for some seconds finds the lease over before its holder can renew it: that one goes first.
        let over_since = is_over.then(|| self.over_since.get().unwrap_or_else(Instant::now));
        self.over_since.set(over_since);
        let is_long_over =
            over_since.is_some_and(|since| since.elapsed() >= self.store.lease_time() / RENEWALS);
        if is_released || is_long_over || token != self.following.position().token {
            let why = format!("the server at {} does not lead any more", self.following.leader());
            self.set_leaderless(why, false);
            bail!("the leader is gone");
        }
        Ok(())
    }

    fn set_leaderless(&self, why: String, has_all: bool) {
        // The first reason counts.
        drop(self.leaderless.set(Leaderless { why, has_all }));
    }

    fn sign(&self, target: &str) -> String {
        let now = Timestamp::now().as_microsecond();
        let itself = (Behalf::Server, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        SignedRequest { method: "GET", target, headers: &[] }.sign(&self.ring, b"", itself, Micros(now))
    }

    fn ask(&self, leader: &str, after: Option<Position>) -> Result<Message> {
        let after = after.map_or_else(String::new, |after| format!("?after={after}"));
        let target = format!("{CHANGES_PATH}{after}");
        let request = ureq::http::Request::builder().uri(format!("{leader}{target}"));
        let request = request.header(HEADER, self.sign(&target)).body(())?;
        let mut response = self.agent.run(request)?;
        if !response.status().is_success() {
            bail!("the leader answered {}", response.status());
        }
        let bytes = response.body_mut().with_config().limit(MESSAGE_BYTES_MAX).read_to_vec()?;
        Ok(Message::decode(&bytes)?)
    }
}
