//! Arguments of the commands that work on the files of an embedded store.

use super::ReasonArgs;
use clap::Args;
use std::path::PathBuf;

/// `tally backup`
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to make
    pub(crate) file: PathBuf,
}

/// `tally restore`
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// A file that `tally backup` made
    pub(crate) file: PathBuf,
    /// Replace the store that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Why
    #[command(flatten)]
    pub(crate) why: ReasonArgs,
}
