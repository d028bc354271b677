//! The readiness gate: loading, ready, unsure of the lease, reloading after lost commits, or draining.
//!
//! The listeners open before ranks are exact, so that they can serve health and progress. Everything else goes through
//! [`Readiness::ready`]. The [`Tally`] appears only when it is complete. A reload replaces it, so code that runs longer
//! than a request must release it in between.

use crate::http::forward::Forwarder;
use crate::limits::HttpLimits;
use crate::machine::Machine;
use crate::metrics::Metrics;
use crate::responses::Responses;
use crate::security::{Security, SecurityEvent};
use crate::slow_requests::SlowRequests;
use crate::streams::Streams;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tally_service::progress::Snapshot;
use tally_service::{Keys, LostCommits, Progress, Tally};
use tally_traces::Traces;
use tokio::sync::{Semaphore, watch};

/// The prefix of the credential of commands of this machine, before the token of the data directory.
pub const LOCAL_PREFIX: &str = "tally_local_";

/// The state that all listeners share.
pub struct Readiness {
    /// The progress of the start.
    pub progress: Arc<Progress>,
    /// Limits and access settings.
    pub limits: HttpLimits,
    /// The metrics of the listeners.
    pub metrics: Metrics,
    /// The slowest requests of the last minutes.
    pub(crate) slow_requests: SlowRequests,
    /// Where spans of sampled requests go, if tracing is on.
    pub traces: Option<Arc<Traces>>,
    /// KiB of bodies that are being received.
    pub(crate) bodies: Arc<Semaphore>,
    /// Large responses that clients have not read.
    pub(crate) responses: Arc<Responses>,
    /// Open event streams.
    pub(crate) streams: Arc<Streams>,
    /// Where security events go.
    pub security: Security,
    /// The credential of commands of this machine. It is in the data directory.
    pub local_token: String,
    /// The settings that `/v1/status` shows to admins.
    settings: RwLock<Value>,
    /// When the process started.
    pub started: Instant,
    /// What a scrape reads of the machine. A command that starts a server of its own sets none.
    pub machine: OnceLock<Machine>,
    /// Sends changes to the leader. Only a server that may follow another one has it.
    pub forwarder: OnceLock<Forwarder>,
    /// The last findings about what the service depends on.
    findings: RwLock<Vec<Finding>>,
    serving: RwLock<Arc<Serving>>,
    /// The number of reloads of the store, the reason of the last one, and whether it still runs.
    reloads: AtomicU64,
    /// How many of them were because of lost commits.
    losses: AtomicU64,
    lost: RwLock<Option<LostCommits>>,
    reloading: AtomicBool,
    leaving: AtomicBool,
    draining: AtomicBool,
    drained: watch::Sender<bool>,
}

/// The loaded parts of the service.
#[derive(Clone, Default)]
pub(crate) struct Serving {
    pub(crate) keys: Option<Arc<Keys>>,
    pub(crate) tally: Option<Arc<Tally>>,
}

/// Which parts of the service answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Scores, members and money, and everything else that needs only the store.
    pub(crate) store: bool,
    /// Ranks.
    pub(crate) ranking: bool,
    /// Applications for contests without an entry fee.
    pub(crate) applications: bool,
}

impl Parts {
    /// Those of the service, or none of a service that cannot answer.
    pub(crate) fn of(tally: Option<&Tally>) -> Self {
        Self {
            store: tally.is_some(),
            ranking: tally.is_some_and(|tally| tally.redis.ranking().failure.is_none()),
            applications: tally.is_some_and(|tally| tally.redis.applications().failure.is_none()),
        }
    }
}

/// A problem of something that the service depends on, such as a setting of its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it loses data or stops the service; otherwise it is a warning.
    pub wrong: bool,
    /// Its kind, for metrics.
    pub code: &'static str,
    /// What is wrong, why it matters and what to do.
    pub text: String,
}

impl Finding {
    pub(crate) fn level(&self) -> &'static str {
        if self.wrong { "wrong" } else { "warning" }
    }
}

/// The server that runs changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    /// This one, if any.
    Here,
    /// The one with this base URL.
    At(Arc<str>),
    /// None that is known now: this server loads.
    Unknown,
}

/// Why the service cannot answer now.
#[derive(Clone, Copy, Debug)]
pub enum NotReady {
    /// Ranks are not exact yet.
    Loading(Snapshot),
    /// Another server may have written to the store, so the state of this server may be stale.
    Unsure,
    /// This server follows another one, and its state is older than it may be.
    Behind(Duration),
    /// The database has lost commits that it had acknowledged: the server reloads everything.
    Lost(Snapshot),
    /// The service drains.
    Draining,
}

impl Readiness {
    /// Creates a closed gate.
    pub fn new(
        progress: Arc<Progress>,
        limits: HttpLimits,
        traces: Option<Arc<Traces>>,
        security: Security,
        local_token: String,
        settings: Value,
    ) -> Arc<Self> {
        Arc::new(Self {
            progress,
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes_max >> 10)),
            responses: Responses::new(limits.responses_bytes_max),
            streams: Streams::new(&limits),
            limits,
            metrics: Metrics::new(),
            slow_requests: SlowRequests::default(),
            traces,
            security,
            local_token,
            settings: RwLock::new(settings),
            started: Instant::now(),
            machine: OnceLock::new(),
            forwarder: OnceLock::new(),
            findings: RwLock::default(),
            serving: RwLock::default(),
            reloads: AtomicU64::new(0),
            losses: AtomicU64::new(0),
            lost: RwLock::default(),
            reloading: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            drained: watch::Sender::new(false),
        })
    }

    /// Creates a closed gate with these limits and this token of the machine.
    #[cfg(test)]
    pub(crate) fn of_test(limits: HttpLimits, local_token: &str) -> Arc<Self> {
        Self::new(Arc::default(), limits, None, Security::default(), local_token.to_owned(), Value::Null)
    }

    /// Publishes the keys: from now on callers can be authenticated.
    pub fn set_keys(&self, keys: Arc<Keys>) {
        self.serve(|serving| serving.keys = Some(keys));
    }

    fn serve(&self, change: impl FnOnce(&mut Serving)) {
        let mut serving = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut serving));
    }

    /// Returns the loaded parts of the service.
    pub(crate) fn serving(&self) -> Arc<Serving> {
        Arc::clone(&self.serving.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the shown settings.
    pub fn set_settings(&self, settings: Value) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Returns the shown settings.
    pub(crate) fn settings(&self) -> Value {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the findings.
    pub fn set_findings(&self, findings: Vec<Finding>) {
        *self.findings.write().unwrap_or_else(PoisonError::into_inner) = findings;
    }

    /// Returns the last findings.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.findings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the gate for all requests.
    pub fn open(&self, tally: Arc<Tally>) {
        self.serve(|serving| serving.tally = Some(tally));
        self.reloading.store(false, Ordering::Release);
    }

    /// Closes the gate until it is opened again, maybe because of lost commits. Returns the service so far.
    pub fn close(&self, lost: Option<LostCommits>) -> Option<Arc<Tally>> {
        self.reloading.store(lost.is_some(), Ordering::Release);
        if lost.is_some() {
            self.losses.fetch_add(1, Ordering::AcqRel);
            *self.lost.write().unwrap_or_else(PoisonError::into_inner) = lost;
        }
        self.reloads.fetch_add(1, Ordering::AcqRel);
        let closed = self.serving();
        self.serve(|serving| *serving = Serving::default());
        closed.tally.clone()
    }

    /// The number of reloads. A caller that keeps state of the service compares it.
    pub(crate) fn reloads(&self) -> u64 {
        self.reloads.load(Ordering::Acquire)
    }

    /// How often the store was reloaded because of lost commits.
    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }

    /// The reason of the last of those.
    pub(crate) fn lost(&self) -> Option<LostCommits> {
        self.lost.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts and records a security event. `bounded` is for events that any caller can cause.
    pub(crate) fn security_event(&self, event: &SecurityEvent<'_>, bounded: bool) {
        self.metrics.security_events(event.name).inc();
        if bounded {
            self.security.note_bounded(event);
        } else {
            self.security.note(event);
        }
    }

    /// Begins to leave: balancers shall send nothing more, and what comes is served.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// Starts draining: the service accepts nothing new.
    pub fn drain(&self) {
        self.security.end();
        self.draining.store(true, Ordering::Release);
        self.drained.send_replace(true);
    }

    /// Returns a receiver that is notified when draining starts.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.drained.subscribe()
    }

    /// The API keys, as soon as they are loaded.
    pub fn keys(&self) -> Option<Arc<Keys>> {
        self.serving().keys.clone()
    }

    /// The service, if it can answer.
    pub fn ready(&self) -> Result<Arc<Tally>, NotReady> {
        self.check(self.loaded())
    }

    /// The service, if it can answer and balancers may send it more.
    pub(crate) fn ready_for_more(&self) -> Result<Arc<Tally>, NotReady> {
        if self.leaving.load(Ordering::Acquire) { Err(NotReady::Draining) } else { self.ready() }
    }

    /// The given service, if it can answer.
    pub(crate) fn check<T: AsRef<Tally>>(&self, tally: Option<T>) -> Result<T, NotReady> {
        if self.draining.load(Ordering::Acquire) {
            return Err(NotReady::Draining);
        }
        let tally = tally.ok_or_else(|| self.not_loaded())?;
        if tally.as_ref().may_answer() {
            return Ok(tally);
        }
        let tally = tally.as_ref();
        Err(match &tally.following {
            _ if tally.store.lost().is_some() => NotReady::Lost(self.progress.snapshot()),
            Some(following) => NotReady::Behind(following.age()),
            None => NotReady::Unsure,
        })
    }

    /// The server that runs changes.
    pub(crate) fn leader(&self) -> Leader {
        match self.serving().tally.as_deref() {
            None => Leader::Unknown,
            Some(tally) => match &tally.following {
                None => Leader::Here,
                Some(following) => Leader::At(following.leader()),
            },
        }
    }

    /// Whether this server reads everything anew because its leader has gone: it leads then, or follows another one.
    pub(crate) fn takes_over(&self) -> bool {
        let [drains, lost] = [&self.draining, &self.reloading].map(|flag| flag.load(Ordering::Acquire));
        !drains && !lost && self.reloads() > 0 && self.loaded().is_none()
    }

    /// Why there is no service.
    pub(crate) fn not_loaded(&self) -> NotReady {
        let at = self.progress.snapshot();
        if self.reloading.load(Ordering::Acquire) { NotReady::Lost(at) } else { NotReady::Loading(at) }
    }

    /// The service as soon as it is loaded, even while draining: for metrics.
    pub fn loaded(&self) -> Option<Arc<Tally>> {
        self.serving().tally.clone()
    }
}

impl NotReady {
    /// The JSON members with the progress.
    pub fn members(&self) -> Value {
        match self {
            Self::Loading(at) => {
                let mut members =
                    json!({"phase": at.phase, "done": at.done, "total": at.total, "eta_s": at.eta_s});
                if let Some(reason) = at.reason {
                    members["reason"] = reason.into();
                }
                members
            }
            Self::Lost(at) => json!({
                "phase": "reloading", "done": at.done, "total": at.total, "eta_s": at.eta_s, "reason": "lost_commits",
            }),
            Self::Behind(age) => {
                json!({"phase": "behind", "done": 0, "total": 0, "eta_s": null, "age_s": age.as_secs_f64()})
            }
            Self::Unsure => json!({"phase": "lease", "done": 0, "total": 0, "eta_s": null}),
            Self::Draining => json!({"phase": "draining", "done": 0, "total": 0, "eta_s": null}),
        }
    }
}
