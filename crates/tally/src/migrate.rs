//! `tally migrate`: bring the store to this version's schema.
//!
//! Opening an embedded store migrates it, after a copy is kept; a database on a server is migrated by this command alone,
//! because others may be working on it.

use crate::cli::Cli;
use crate::config::Config;
use crate::data_dir::DataDir;
use anyhow::Result;
use std::process::ExitCode;

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    let data = DataDir::open(&config)?;
    let opened = data.place(&config)?.open(&config, data.path(), true)?;
    println!("the store {} has the schema of this version", opened.shown);
    Ok(ExitCode::SUCCESS)
}
