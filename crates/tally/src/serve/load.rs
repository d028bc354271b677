//! Loading: keys, rankings and everything else between an open store and an open readiness gate.
//!
//! The server with the lease loads as the leader, a server beside it as a follower. Not here: the store (`open`).

use super::Server;
use super::follow::{self, Follow};
use super::service::{settings, webhook_settings};
use crate::config::{Config, Usage};
use crate::demo;
use crate::lead_or_follow::may_follow;
use anyhow::{Context, Result};
use std::sync::{Arc, PoisonError};
use tally_server::WebhookClient;
use tally_service::{Keys, Settings, Tally, clock, rotation};
use tally_store::Store;

impl Server {
    /// Loads everything and opens the readiness gate, on its own thread. If the ranking is unavailable, it waits or fails,
    /// by `waits`.
    pub(crate) fn load(
        &self,
        config: &Config,
        demo: bool,
        waits: bool,
    ) -> Result<tokio::task::JoinHandle<Result<()>>> {
        let gate = Arc::clone(&self.gate);
        if may_follow(config) && gate.forwarder.get().is_none() {
            // It is set once.
            drop(gate.forwarder.set(follow::forwarder(config)?));
        }
        let lanes = self.store.lanes(config)?;
        let (ranking, applications) = (self.ranking.clone(), self.applications.clone());
        let mut settings =
            Settings { ranking, applications, lanes, waits_for_ranking: waits, ..settings(config)? };
        let store: Arc<dyn Store> = Arc::clone(&self.store.store);
        let (data, config) = (self.data.clone(), config.clone());
        let (databases, leaderless) = (self.store.databases.clone(), Arc::clone(&self.store.leaderless));
        let advertised = self.advertised.clone();
        let handover = self.handover.lock().unwrap_or_else(PoisonError::into_inner).take();
        let webhooks = WebhookClient::new(&webhook_settings(&config)?, self.runtime.handle().clone());
        let webhooks = webhooks.map_err(|why| Usage(format!("setting `webhooks.ca_file` {why}")))?;
        Ok(self.runtime.spawn_blocking(move || {
            let secrets = data.secrets(&config, &*store)?;
            let ring = Arc::new(rotation::open(&*store, &secrets)?);
            let clock = clock::system();
            let follow = Follow::begin(&config, &databases, &ring, leaderless)?;
            settings.role =
                follow.as_ref().map_or_else(|| follow::role(&config, &databases, handover), Follow::role);
            let keys = Keys::load(Arc::clone(&store), ring, clock.clone(), &settings)?;
            let keys = Arc::new(keys);
            gate.set_keys(Arc::clone(&keys));
            let tally = Tally::start(store, keys, clock, settings, &gate.progress)?;
            if let Some(follow) = follow {
                return follow.run(tally, &gate);
            }
            if demo {
                demo::fill(&tally, &gate.progress)?;
            }
            tally.start_webhooks(Arc::new(webhooks))?;
            follow::lead(&config, &databases, &advertised)?;
            gate.open(tally);
            Ok(())
        }))
    }

    /// Waits until everything is loaded.
    pub(crate) fn load_now(&self, config: &Config) -> Result<()> {
        let loading = self.load(config, false, false)?;
        self.runtime.block_on(loading).context("load")?
    }
}
