//! The reload of everything, after the database has lost acknowledged commits or the leader has gone.
//!
//! After a loss the process cannot tell which of its cached data is still true. So the service ends with all of its caches, and
//! another one begins by the code of a start. It opens the store, takes the lease under a new fencing token and loads. After a leader
//! it may take over the rankings of the follower that it was. The listeners stay, and reject requests meanwhile. Failed steps are
//! retried, for as long as it takes.
//!
//! Not here: how a loss is detected (the store), and its messages (the readiness gate).

use super::open::{LogOnce, PAUSE};
use super::{End, Server, follow};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::store::{Leaderless, Opened, Opening, StoreLoss, holder};
use anyhow::{Context, Result};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tally_service::{LostCommits, Tally};
use tally_store::Coordination;
use tokio::signal::unix::Signal;

/// How long old requests may keep the old service alive: its memory is needed.
const HELD_MAX: Duration = Duration::from_secs(30);
const CHECK_PAUSE: Duration = Duration::from_millis(10);
/// The failed step, in the log.
const STEP: &str = "read the store anew";

/// Why everything is read anew.
pub(super) enum Reason {
    /// The database has lost commits.
    Lost(LostCommits),
    /// The server that this one follows does not lead any more.
    Leaderless(Leaderless),
}

impl Server {
    /// Reloads the store; returns how the server ends if that is impossible.
    pub(super) fn reload(
        &mut self,
        config: &Config,
        why: Reason,
        signals: &mut (Signal, Signal),
    ) -> Result<Option<End>> {
        let began = Instant::now();
        let mut why = Some(why);
        let mut log = LogOnce::default();
        loop {
            if let Some(end) = why.take().map_or(Ok(None), |why| self.reopen(config, why, signals))? {
                return Ok(Some(end));
            }
            let loading = self.load(config, false, true)?;
            let loaded = self.runtime.block_on(async {
                tokio::select! {
                    _ = signals.0.recv() => None,
                    _ = signals.1.recv() => None,
                    loaded = loading => Some(loaded),
                }
            });
            let Some(loaded) = loaded else { return Ok(Some(End::Early)) };
            let Err(error) = loaded.context("load")? else { break };
            why = self.store.leaderless.get().cloned().map(Reason::Leaderless);
            if why.is_some() {
                continue;
            }
            log.warn(STEP, &error);
            if let Some(holder) = self.store.databases.iter().find_map(|store| store.taken_by()) {
                return Ok(Some(End::StoreLost(StoreLoss::Taken(holder))));
            }
            why = self.store.store.lost().map(Reason::Lost);
            // Another server has begun anew meanwhile: its generation is there, so this one joins it at once.
            if why.is_none() {
                std::thread::sleep(PAUSE);
            }
        }
        tracing::info!(seconds = began.elapsed().as_secs_f64(), "ready again");
        Ok(None)
    }

    /// Ends the service and opens the store again.
    fn reopen(
        &mut self,
        config: &Config,
        why: Reason,
        signals: &mut (Signal, Signal),
    ) -> Result<Option<End>> {
        match &why {
            Reason::Lost(lost) if lost.by_others => tracing::warn!("{lost}"),
            Reason::Lost(lost) => tracing::error!("{lost}"),
            Reason::Leaderless(how) => tracing::info!("{}: leading, or following another server", how.why),
        }
        let (lost, has_all) = match why {
            Reason::Lost(lost) => (Some(lost), false),
            Reason::Leaderless(how) => (None, how.has_all),
        };
        // After another server has begun a new generation, this one joins it. The number of a generation is the time at which it
        // began, so the newest one of all databases is older than any that begins after the loss.
        let opening = if lost.as_ref().is_none_or(|lost| lost.by_others) {
            Opening::AsItIs
        } else {
            Opening::Anew(self.store.databases.iter().map(|store| store.generation()).max().unwrap_or(0))
        };
        let closed = self.gate.close(lost);
        // The rankings of a follower may stay.
        let former = closed.clone().filter(|tally| tally.following.is_some());
        let followed = former.as_ref().filter(|_| has_all).and_then(|tally| tally.following.clone());
        let token = followed.map(|following| following.position().token);
        let is_follower = former.is_some();
        let (config, data, databases) = (config.clone(), self.data.clone(), self.store.databases.clone());
        let opening = self.runtime.spawn_blocking(move || {
            // A follower has nothing to make durable, so it leads without waiting for its requests.
            match closed {
                Some(tally) if is_follower => drop(std::thread::spawn(move || end(tally))),
                Some(tally) => end(tally),
                None => {}
            }
            if let Some(token) = token {
                databases.first().into_iter().for_each(|store| follow::wait_for_lease(store, token));
            }
            databases.iter().rev().for_each(|store| store.release());
            drop(databases);
            open(&config, &data, opening)
        });
        let opened = self.runtime.block_on(async {
            tokio::select! {
                _ = signals.0.recv() => None,
                _ = signals.1.recv() => None,
                opened = opening => Some(opened),
            }
        });
        let Some(opened) = opened else { return Ok(Some(End::Early)) };
        self.store = match opened.context("open the store")?? {
            Ok(opened) => opened,
            Err(holder) => return Ok(Some(End::StoreLost(StoreLoss::Taken(holder)))),
        };
        let handover = former.as_deref().and_then(|tally| follow::handover(tally, &self.store, has_all));
        if let (None, Some(former)) = (&handover, former) {
            wait_for_release(former);
        }
        if handover.is_some() {
            tracing::info!(has_all, "leads with the ranks that it has followed");
        }
        *self.handover.lock().unwrap_or_else(PoisonError::into_inner) = handover;
        // A failure only makes the message of a second server less precise.
        drop(self.store.announce(&self.found));
        Ok(None)
    }
}

/// Ends a service, and waits until requests have released it.
fn end(tally: Arc<Tally>) {
    tally.drain();
    wait_for_release(tally);
}

fn wait_for_release(tally: Arc<Tally>) {
    let (began, weak) = (Instant::now(), Arc::downgrade(&tally));
    drop(tally);
    while weak.strong_count() > 0 && began.elapsed() < HELD_MAX {
        std::thread::sleep(CHECK_PAUSE);
    }
}

/// Opens the store as soon as possible, or returns the server that has it.
fn open(config: &Config, data: &DataDir, opening: Opening) -> Result<Result<Opened, String>> {
    match super::open::open(STEP, (config, data, opening), |error| holder(error).is_none()) {
        Ok(opened) => Ok(Ok(opened)),
        Err(error) => holder(&error).map(Err).ok_or(error),
    }
}
