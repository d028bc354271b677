//! What the service can do right now: loading, ready, unsure whether it is still the one that writes, reading everything anew
//! because its database has lost commits, or draining.
//!
//! The doors open before ranks are exact, so that health and progress can be asked; everything else goes through
//! [`Readiness::ready`]. There is no half-ready service behind it: the [`Tally`] appears when it is whole, and another one takes its
//! place when the store was read anew. So whoever holds one for longer than a request lets go of it in between.

use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::security::{Event, Security};
use crate::streams::Streams;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;
use tally_service::progress::Snapshot;
use tally_service::{Keys, LostCommits, Progress, Tally};
use tally_traces::Traces;
use tokio::sync::{Semaphore, watch};

/// What commands of this machine present, before the token of the data directory.
pub const LOCAL_PREFIX: &str = "tally_local_";

/// Shared by all doors.
pub struct Readiness {
    /// How far the start has come.
    pub progress: Arc<Progress>,
    /// Bounds and access settings.
    pub limits: Limits,
    /// What is counted.
    pub metrics: Metrics,
    /// Where followed requests are told of, if they are.
    pub traces: Option<Arc<Traces>>,
    /// KiB of bodies that are being received.
    pub(crate) bodies: Arc<Semaphore>,
    /// Streams of events that are open.
    pub(crate) streams: Arc<Streams>,
    /// Where security events go.
    pub security: Security,
    /// Presented by commands of this machine: it stands in the data directory.
    pub local_token: String,
    /// What `/v1/status` says of the settings, for admins.
    pub settings: Value,
    /// When the process started.
    pub started: Instant,
    /// Of what the service stands on, as last looked at.
    findings: RwLock<Vec<Finding>>,
    serving: RwLock<Arc<Serving>>,
    /// How often the store was to be read anew, why the last time, and whether that goes on.
    reloads: AtomicU64,
    lost: RwLock<Option<LostCommits>>,
    reloading: AtomicBool,
    draining: AtomicBool,
    drained: watch::Sender<bool>,
}

/// What answers, as far as it is there.
#[derive(Clone, Default)]
pub(crate) struct Serving {
    pub(crate) keys: Option<Arc<Keys>>,
    pub(crate) tally: Option<Arc<Tally>>,
}

/// What is not as it should be of what the service stands on, such as a setting of its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it loses data, or keeps the service from working; else it is worth a look.
    pub wrong: bool,
    /// What it is, why that matters and what to do.
    pub text: String,
}

/// Why the service cannot answer now.
#[derive(Clone, Copy, Debug)]
pub enum NotReady {
    /// Ranks are not exact yet.
    Loading(Snapshot),
    /// The store may have been written by another server: what is known here may be old.
    Unsure,
    /// The database has lost commits that it had acknowledged: everything is read anew.
    Lost(Snapshot),
    /// It is going down.
    Draining,
}

impl Readiness {
    /// A gate that is closed.
    pub fn new(
        progress: Arc<Progress>,
        limits: Limits,
        traces: Option<Arc<Traces>>,
        security: Security,
        local_token: String,
        settings: Value,
    ) -> Arc<Self> {
        Arc::new(Self {
            progress,
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes_max >> 10)),
            streams: Streams::new(&limits),
            limits,
            metrics: Metrics::new(),
            traces,
            security,
            local_token,
            settings,
            started: Instant::now(),
            findings: RwLock::default(),
            serving: RwLock::default(),
            reloads: AtomicU64::new(0),
            lost: RwLock::default(),
            reloading: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            drained: watch::Sender::new(false),
        })
    }

    /// Credentials can be judged from now on.
    pub fn set_keys(&self, keys: Arc<Keys>) {
        self.serve(|serving| serving.keys = Some(keys));
    }

    fn serve(&self, change: impl FnOnce(&mut Serving)) {
        let mut serving = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut serving));
    }

    /// What answers now.
    pub(crate) fn serving(&self) -> Arc<Serving> {
        Arc::clone(&self.serving.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// This and nothing else is found now.
    pub fn set_findings(&self, findings: Vec<Finding>) {
        *self.findings.write().unwrap_or_else(PoisonError::into_inner) = findings;
    }

    /// What was found last.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.findings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything can be asked from now on.
    pub fn open(&self, tally: Arc<Tally>) {
        self.serve(|serving| serving.tally = Some(tally));
        self.reloading.store(false, Ordering::Release);
    }

    /// Nothing is answered any more until the gate is opened again; gives what answered so far.
    pub fn close(&self, lost: LostCommits) -> Option<Arc<Tally>> {
        *self.lost.write().unwrap_or_else(PoisonError::into_inner) = Some(lost);
        self.reloading.store(true, Ordering::Release);
        self.reloads.fetch_add(1, Ordering::AcqRel);
        let closed = self.serving();
        self.serve(|serving| *serving = Serving::default());
        closed.tally.clone()
    }

    /// How often the store was to be read anew: whoever holds something of the service compares it.
    pub(crate) fn reloads(&self) -> u64 {
        self.reloads.load(Ordering::Acquire)
    }

    /// Why the store was read anew the last time.
    pub(crate) fn lost(&self) -> Option<LostCommits> {
        self.lost.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a security event and notes it; what any caller can cause is `bounded`.
    pub(crate) fn security_event(&self, event: &Event<'_>, bounded: bool) {
        self.metrics.security_events(event.name).inc();
        if bounded {
            self.security.note_bounded(event);
        } else {
            self.security.note(event);
        }
    }

    /// Nothing new is taken from now on.
    pub fn drain(&self) {
        self.security.end();
        self.draining.store(true, Ordering::Release);
        self.drained.send_replace(true);
    }

    /// Hears when nothing new is taken any more.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.drained.subscribe()
    }

    /// Who may ask, as soon as it is known.
    pub fn keys(&self) -> Option<Arc<Keys>> {
        self.serving().keys.clone()
    }

    /// The service, if it can answer.
    pub fn ready(&self) -> Result<Arc<Tally>, NotReady> {
        self.check(self.loaded())
    }

    /// A service that was loaded, if it can answer.
    pub(crate) fn check<T: AsRef<Tally>>(&self, tally: Option<T>) -> Result<T, NotReady> {
        if self.draining.load(Ordering::Acquire) {
            return Err(NotReady::Draining);
        }
        let tally = tally.ok_or_else(|| self.not_loaded())?;
        if tally.as_ref().may_answer() {
            return Ok(tally);
        }
        let is_lost = tally.as_ref().store.lost().is_some();
        Err(if is_lost { NotReady::Lost(self.progress.snapshot()) } else { NotReady::Unsure })
    }

    /// Why there is no service.
    pub(crate) fn not_loaded(&self) -> NotReady {
        let at = self.progress.snapshot();
        if self.reloading.load(Ordering::Acquire) { NotReady::Lost(at) } else { NotReady::Loading(at) }
    }

    /// The service as soon as it is loaded, draining or not: for metrics.
    pub fn loaded(&self) -> Option<Arc<Tally>> {
        self.serving().tally.clone()
    }
}

impl NotReady {
    /// The members that say how far it is.
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
            Self::Unsure => json!({"phase": "lease", "done": 0, "total": 0, "eta_s": null}),
            Self::Draining => json!({"phase": "draining", "done": 0, "total": 0, "eta_s": null}),
        }
    }
}
