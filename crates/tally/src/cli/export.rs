//! Arguments of the commands that write lists to stdout.

use super::TargetArgs;
use clap::{Args, ValueEnum};

/// `tally export`
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The leaderboard
    pub(crate) board: String,
    /// A period, such as weekly or weekly:previous [default: all time]
    #[arg(long, value_name = "P")]
    pub(crate) period: Option<String>,
    /// csv has a header line; json is one object a line
    #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
    pub(crate) format: ExportFormat,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// `tally audit`
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Acts of this actor, such as key:3f9c0a1b2c3d, command_line, local or background
    #[arg(long, value_name = "A")]
    pub(crate) actor: Option<String>,
    /// Acts of this kind, such as key.created or player.banned
    #[arg(long, value_name = "KIND")]
    pub(crate) action: Option<String>,
    /// Acts on this key, leaderboard, player, member, contest or series
    #[arg(long, value_name = "ID")]
    pub(crate) subject: Option<String>,
    /// Acts from this instant on
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Acts before this instant
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// csv has a header line; json is one object a line
    #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
    pub(crate) format: ExportFormat,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// `tally ledger`
#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    /// Transfers from this instant on
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Transfers before this instant
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Go on behind this transfer, the last one of an export that was interrupted; without a header line
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
    /// csv has a header line; json is one object a line
    #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
    pub(crate) format: ExportFormat,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Comma-separated values.
    Csv,
    /// One object a line.
    Json,
}
