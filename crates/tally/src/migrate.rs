//! `tally migrate`: bring the store to this version's schema.
//!
//! Opening an embedded store migrates it, after a copy is kept; this command does that and nothing else.

use crate::cli::Cli;
use crate::config::Config;
use crate::data_dir::DataDir;
use anyhow::Result;
use std::process::ExitCode;

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    let data = DataDir::open(&config)?;
    let store = data.store(&config)?;
    println!("the store {} has the schema of this version", store.path().display());
    Ok(ExitCode::SUCCESS)
}
