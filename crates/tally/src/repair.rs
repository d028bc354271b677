//! `tally repair`: makes a store with a damaged or missing journal start again.
//!
//! It works on files without a server. Not here: what is kept and what is not (`tally_store::sqlite::repair`), and
//! databases, which have no journal of ours.

use crate::cli::{Cli, ReasonArgs};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::store;
use anyhow::{Context, Result};
use std::process::ExitCode;
use tally_rules::audit::AuditAction;
use tally_service::audit;
use tally_store::sqlite;

/// Runs `tally repair`.
pub(crate) fn run(cli: &Cli, why: &ReasonArgs) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    let data = DataDir::of(&config);
    let file = data.place(&config)?.file("repair")?;
    data.check_store(&config)?;
    let act = audit::of_command(AuditAction::StoreRepaired, "the journal", why.reason.as_deref())?;
    let repaired = sqlite::repair(&file, &store::file_options(&config)?, Some(&act))
        .with_context(|| format!("repair {}", file.display()))?;
    let Some(wrong) = repaired.wrong else {
        println!("nothing is wrong with the journal of {}; nothing was changed", file.display());
        return Ok(ExitCode::SUCCESS);
    };
    println!("{} starts again with every batch up to {}", file.display(), repaired.last);
    repaired.set_aside.iter().for_each(|path| println!("kept: {}", path.display()));
    eprintln!("It was: {wrong}");
    if repaired.partly > repaired.last {
        eprintln!(
            "Batches {} to {} may be in the tables in part: run `tally verify`.",
            repaired.last + 1,
            repaired.partly
        );
    }
    eprintln!("What was acknowledged after batch {} is not there.", repaired.last);
    Ok(ExitCode::SUCCESS)
}
