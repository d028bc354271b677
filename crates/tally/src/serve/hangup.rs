//! SIGHUP: reads and reopens the files that are renewed while a server runs.
//!
//! These are the certificate with its key, for new connections, and the audit file. An unreadable file is logged, and the
//! previous one stays in use. Only a start reads settings.

use anyhow::{Context, Result};
use std::sync::Arc;
use tally_server::{Readiness, Tls};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Waits for the signal as long as the runtime lives.
pub(super) fn listen(runtime: &Runtime, tls: Option<Tls>, gate: Arc<Readiness>) -> Result<()> {
    let within = runtime.enter();
    let mut hangup = signal(SignalKind::hangup()).context("hear signals")?;
    drop(within);
    runtime.spawn(async move {
        while hangup.recv().await.is_some() {
            if let Err(error) = gate.security.reopen() {
                tracing::error!(%error, "SIGHUP: open `log.audit_file`: the open one stays in use");
            }
            match tls.as_ref().map(Tls::reload) {
                Some(Err(why)) => tracing::error!("SIGHUP: {why}: the certificate before stays in use"),
                Some(Ok(())) => tracing::info!("SIGHUP: certificate and files were read again"),
                None => tracing::info!("SIGHUP: files were opened again"),
            }
        }
    });
    Ok(())
}
