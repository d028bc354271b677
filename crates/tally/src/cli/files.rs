//! Arguments of the commands that work on the files of an embedded store.

use super::ReasonArgs;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tally_rules::Micros;

/// `tally backup`
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to make
    #[arg(required_unless_present = "follow", conflicts_with = "follow")]
    pub(crate) file: Option<PathBuf>,
    /// Follow the store into this directory until the end of the process, for `tally restore DIR --at`
    #[arg(long, value_name = "DIR")]
    pub(crate) follow: Option<PathBuf>,
    /// How far back every instant can be restored: older files of the directory are removed
    #[arg(long, value_name = "TIME", default_value = "168h", requires = "follow", value_parser = time)]
    pub(crate) keep: Duration,
    /// The age at which a new base is made: a restore reads one base, and the frames after it
    #[arg(long, value_name = "TIME", default_value = "24h", requires = "follow", value_parser = time)]
    pub(crate) base_every: Duration,
}

/// Reads a time such as `24h`.
pub(super) fn time(text: &str) -> Result<Duration, &'static str> {
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    let positive = parsed.and_then(|parsed| Duration::try_from(parsed).ok()).filter(|time| !time.is_zero());
    positive.ok_or("must be a time such as 90s, 30m or 24h")
}

/// `tally restore`
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// A file that `tally backup` made, or the directory of `tally backup --follow`
    pub(crate) file: PathBuf,
    /// Restore the directory as it was at this instant, as 2026-11-27T14:04:59Z; without it, the newest
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub(crate) at: Option<Micros>,
    /// Replace the store that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Why
    #[command(flatten)]
    pub(crate) why: ReasonArgs,
}

/// Reads an instant.
fn instant(text: &str) -> Result<Micros, &'static str> {
    tally_wire::time::parse(text).ok_or("must be an instant such as 2026-11-27T14:04:59Z")
}
