//! `tally bench`: runs scenarios, prints their tables, writes their reports.

use crate::cli::BenchArgs;
use anyhow::Result;
use std::process::ExitCode;

/// Runs the subcommand.
pub(crate) fn run(_args: &BenchArgs) -> Result<ExitCode> {
    anyhow::bail!("not yet")
}
