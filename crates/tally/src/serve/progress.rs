//! The output of a start: progress on a terminal, and one line on stdout when the server is ready.

use super::Server;
use super::listen::place;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use tally_server::Readiness;

/// Shows the progress of the start, on a terminal only, until it is dropped.
pub(super) async fn show_progress(gate: &Readiness) -> std::convert::Infallible {
    if !std::io::stderr().is_terminal() {
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

pub(super) fn announce_ready(server: &Server, started: Instant) -> Result<()> {
    let http = server.http.as_ref().and_then(|http| place(http.address, http.file.as_ref()));
    let resp = server.resp.as_ref().and_then(|resp| place(resp.address, resp.file.as_ref()));
    let (http, resp) = (http.unwrap_or_default(), resp.unwrap_or_else(|| "off".into()));
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "ready http={http} resp={resp} store={} ranking={} in={:.3}",
        server.store.shown,
        server.ranking.shown(),
        started.elapsed().as_secs_f64()
    )?;
    out.flush()?;
    Ok(())
}
