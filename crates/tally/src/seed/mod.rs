//! `tally seed`: realistic data, as the first lines of an endless file.
//!
//! A line depends only on its number, and the server stores the progress. So an interrupted command continues, and a
//! larger number adds lines. Not here: load (`tally load` measures), and names of real people.

mod bulk;
pub(crate) mod scores;
pub(crate) mod wallets;

use crate::cli::{Cli, SeedArgs, SeedWhat};
use crate::config::Config;
use crate::member_settings;
use crate::target::TargetServer;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &SeedArgs) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    let cost = member_settings::members(&config)?.cost;
    if let SeedWhat::Scores(scores) = &args.what
        && bulk::seed(&config, cli, &args.target, scores)?
    {
        return Ok(ExitCode::SUCCESS);
    }
    let target = TargetServer::find_or_make(cli, &args.target)?;
    let seeded = match &args.what {
        SeedWhat::Wallets(args) => wallets::seed(&target.client, args, cost),
        SeedWhat::Scores(args) => scores::seed(&target.client, args),
    };
    target.finish();
    seeded.map(|()| ExitCode::SUCCESS)
}

/// Progress, on a terminal only.
fn bar(what: &'static str, done: u64, all: u64) -> Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let template = "{msg:12} {bar:40} {human_pos}/{human_len}, {per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).context("show progress")?;
    let bar = ProgressBar::new(all).with_style(style).with_message(what);
    bar.set_position(done);
    bar.reset_eta();
    Ok(bar)
}
