//! The output of a start: progress on a terminal, one line on stdout when the server is ready, and what to try on a demo.

use super::Server;
use super::listen::place;
use crate::config::Config;
use crate::demo::{self, Reach};
use crate::log;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use tally_server::{KeysRequired, Readiness};

/// Shows the progress of the start, on a terminal only, until it is dropped.
pub(super) async fn show_progress(gate: &Readiness) -> std::convert::Infallible {
    if !std::io::stderr().is_terminal() || log::is_json() {
        return std::future::pending().await;
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) =
        ProgressStyle::with_template("{msg:10} {bar:40} {human_pos}/{human_len} rows, {eta} left")
    {
        bar.set_style(style);
    }
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let at = gate.progress.snapshot();
        bar.set_message(at.phase);
        bar.set_length(at.total);
        bar.set_position(at.done);
    }
}

/// Says that the server is ready, on stdout and in the log.
pub(super) fn announce_ready(server: &Server, started: Instant) {
    let http = server.http.as_ref().and_then(|http| place(http.address, http.file.as_ref()));
    let resp = server.resp.as_ref().and_then(|resp| place(resp.address, resp.file.as_ref()));
    let (http, resp) = (http.unwrap_or_default(), resp.unwrap_or_else(|| "off".into()));
    let (store, ranking) = (&server.store.shown, server.ranking.shown());
    let seconds = started.elapsed().as_secs_f64();
    let admin = server.admin.as_ref().and_then(|admin| admin.address);
    let admin = admin.map(|address| format!(" admin={address}")).unwrap_or_default();
    tracing::info!(http, resp, store, ranking = %ranking, seconds, "ready{admin}");
    let mut out = std::io::stdout().lock();
    let line =
        format!("ready http={http} resp={resp} store={store} ranking={ranking}{admin} in={seconds:.3}\n");
    // The server serves even if the reader of its output has gone.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

/// Says what to try, if the store has the demo. `file` is the configuration file.
pub(super) fn announce_demo(server: &Server, config: &Config, file: Option<&Path>) -> Result<()> {
    let Some(http) = server.address() else { return Ok(()) };
    if !demo::is_filled(&*server.store.store)? {
        return Ok(());
    }
    let resp = server.resp_address();
    let has_no_key = server.gate.keys().is_some_and(|keys| keys.protected_mode());
    let is_here = [Some(http), resp].into_iter().flatten().all(|at| at.ip().to_canonical().is_loopback());
    let is_open = has_no_key && is_here && server.gate.limits.keys_required == KeysRequired::Never;
    log::notice(&Reach::new((http, resp), config, file, !is_open).commands());
    Ok(())
}
