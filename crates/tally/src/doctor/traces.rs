//! The collector of traces: whether it takes spans.
//!
//! The check sends a message without spans, with the settings and the client of the server. An unavailable collector loses
//! only traces, so that is a warning. Not here: the counts of spans, which are in the metrics of the server.

use super::DoctorReport;
use crate::config::Config;
use crate::trace_settings;
use anyhow::{Context, Result};

pub(super) fn examine(report: &mut DoctorReport, config: &Config) -> Result<()> {
    let Some(settings) = trace_settings::traces(config)? else {
        report.ok("traces: off");
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("start the check of the collector")?;
    let address = &settings.address;
    match runtime.block_on(tally_traces::probe(&settings)) {
        Ok(()) => report.ok(&format!("traces {address}: the collector takes them")),
        Err(why) => {
            report.warn(
                "traces_unavailable",
                &format!("traces {address}: {why}: they are counted and dropped"),
            );
        }
    }
    Ok(())
}
