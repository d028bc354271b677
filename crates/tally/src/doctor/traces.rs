//! The collector of traces: whether it takes what it is sent.
//!
//! It is asked with a message that has no spans, with the same settings and the same client as the server's. Nothing is lost
//! where it is away but traces, so that is worth a look and not wrong. Not here: what became of spans, which is in the
//! metrics of the server.

use super::Report;
use crate::config::Config;
use crate::trace_settings;
use anyhow::{Context, Result};

/// Asks it.
pub(super) fn examine(report: &mut Report, config: &Config) -> Result<()> {
    let Some(settings) = trace_settings::traces(config)? else {
        report.ok("traces: off");
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("start what asks the collector")?;
    let address = &settings.address;
    match runtime.block_on(tally_traces::probe(&settings)) {
        Ok(()) => report.ok(&format!("traces {address}: the collector takes them")),
        Err(why) => report.warn(&format!("traces {address}: {why}: they are counted and gone")),
    }
    Ok(())
}
