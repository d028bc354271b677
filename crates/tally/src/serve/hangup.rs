//! SIGHUP: reads and reopens what is renewed while a server runs.
//!
//! These are the certificate with its key, for new connections, the audit file, and the log level. What cannot be read is logged,
//! and the previous one stays in use. Only a start reads other settings; changed ones are named.

use crate::cli::Cli;
use crate::config::Config;
use crate::log;
use anyhow::{Context, Result};
use clap::Parser;
use std::sync::Arc;
use tally_server::{Readiness, Tls};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Waits for the signal as long as the runtime lives.
pub(super) fn listen(
    runtime: &Runtime,
    mut config: Config,
    tls: Option<Tls>,
    gate: Arc<Readiness>,
) -> Result<()> {
    let within = runtime.enter();
    let mut hangup = signal(SignalKind::hangup()).context("hear signals")?;
    drop(within);
    runtime.spawn(async move {
        while hangup.recv().await.is_some() {
            if let Err(error) = gate.security.reopen() {
                tracing::error!(%error, "SIGHUP: open `log.audit_file`: the open one stays in use");
            }
            if let Err(error) = read_level(&mut config) {
                tracing::error!("SIGHUP: {error:#}: the settings before stay in use");
            }
            gate.set_settings(config.to_json());
            match tls.as_ref().map(Tls::reload) {
                Some(Err(why)) => tracing::error!("SIGHUP: {why}: the certificate before stays in use"),
                Some(Ok(())) => tracing::info!("SIGHUP: certificate and files were read again"),
                None => tracing::info!("SIGHUP: files were opened again"),
            }
        }
    });
    Ok(())
}

/// Reads the settings again, and takes the level of the log over.
fn read_level(config: &mut Config) -> Result<()> {
    let new = Config::load(&Cli::try_parse()?)?;
    log::set_level(&new)?;
    config.take("log.level", &new);
    let changed = config.differences(&new);
    if !changed.is_empty() {
        tracing::warn!("SIGHUP: only a restart reads the changed settings {}", changed.join(", "));
    }
    Ok(())
}
