//! What the service can do right now: loading, ready, unsure whether it is still the one that writes, or draining.
//!
//! The doors open before ranks are exact, so that health and progress can be asked; everything else goes through
//! [`Gate::ready`]. There is no half-ready service behind it: the [`Tally`] appears when it is whole.

use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::streams::Streams;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;
use tally_service::progress::Snapshot;
use tally_service::{Keys, Progress, Tally};
use tally_traces::Traces;
use tokio::sync::watch;

/// What commands of this machine present, before the token of the data directory.
pub const LOCAL_PREFIX: &str = "tally_local_";

/// Shared by all doors.
pub struct Gate {
    /// How far the start has come.
    pub progress: Arc<Progress>,
    /// Bounds and access settings.
    pub limits: Limits,
    /// What is counted.
    pub metrics: Metrics,
    /// Where followed requests are told of, if they are.
    pub traces: Option<Arc<Traces>>,
    /// Streams of events that are open.
    pub(crate) streams: Arc<Streams>,
    /// Presented by commands of this machine: it stands in the data directory.
    pub local_token: String,
    /// What `/v1/status` says of the settings, for admins.
    pub settings: Value,
    /// When the process started.
    pub started: Instant,
    /// Of what the service stands on, as last looked at.
    findings: RwLock<Vec<Finding>>,
    keys: OnceLock<Arc<Keys>>,
    tally: OnceLock<Arc<Tally>>,
    draining: AtomicBool,
    drained: watch::Sender<bool>,
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
    /// It is going down.
    Draining,
}

impl Gate {
    /// A gate that is closed.
    pub fn new(
        progress: Arc<Progress>,
        limits: Limits,
        traces: Option<Arc<Traces>>,
        local_token: String,
        settings: Value,
    ) -> Arc<Self> {
        Arc::new(Self {
            progress,
            streams: Streams::new(&limits),
            limits,
            metrics: Metrics::new(),
            traces,
            local_token,
            settings,
            started: Instant::now(),
            findings: RwLock::default(),
            keys: OnceLock::new(),
            tally: OnceLock::new(),
            draining: AtomicBool::new(false),
            drained: watch::Sender::new(false),
        })
    }

    /// Credentials can be judged from now on.
    pub fn set_keys(&self, keys: Arc<Keys>) {
        assert!(self.keys.set(keys).is_ok(), "keys are loaded once");
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
        assert!(self.tally.set(tally).is_ok(), "the gate opens once");
    }

    /// Nothing new is taken from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.drained.send_replace(true);
    }

    /// Hears when nothing new is taken any more.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.drained.subscribe()
    }

    /// Who may ask, as soon as it is known.
    pub fn keys(&self) -> Option<&Arc<Keys>> {
        self.keys.get()
    }

    /// The service, if it can answer.
    pub fn ready(&self) -> Result<&Arc<Tally>, NotReady> {
        if self.draining.load(Ordering::Acquire) {
            return Err(NotReady::Draining);
        }
        let tally = self.tally.get().ok_or_else(|| NotReady::Loading(self.progress.snapshot()))?;
        if tally.may_answer() { Ok(tally) } else { Err(NotReady::Unsure) }
    }

    /// The service as soon as it is loaded, draining or not: for metrics.
    pub fn loaded(&self) -> Option<&Arc<Tally>> {
        self.tally.get()
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
            Self::Unsure => json!({"phase": "lease", "done": 0, "total": 0, "eta_s": null}),
            Self::Draining => json!({"phase": "draining", "done": 0, "total": 0, "eta_s": null}),
        }
    }
}
