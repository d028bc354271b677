//! Arguments of the commands that read sorted sets of a Redis.

use super::{TargetArgs, files, keys};
use crate::sorted_sets::rules::BoardRule;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const IMPORT_REDIS: &str = "\
Examples:
  tally import redis redis://10.0.0.7 --pattern 'lb:*' --dry-run
  tally import redis redis://10.0.0.7 --pattern 'lb:*' --create
  tally import redis redis://10.0.0.7/2 --redis-password-file redis.password --pattern 'lb:*' \\
        --board-from 'lb:{board}:scores' --create update=best

Each sorted set becomes a leaderboard, and Redis is only read. --dry-run says what would be done and
what has no counterpart. With --create a missing leaderboard is made like a sorted set: float64,
latest, equal scores by name. A set is read into a file of --files first, and then imported.

Interrupted, the same command continues with these files. Done, it says so and changes nothing;
--again reads the sets once more. Members that cannot be taken go to FILE.rejects.csv.";

pub(super) const COMPARE_REDIS: &str = "\
Examples:
  tally compare redis redis://10.0.0.7 --pattern 'lb:*'
  tally compare redis redis://10.0.0.7 --pattern 'lb:*' --every 30s --for 1h

While your code writes to both, it shows that both rank alike. A player that differs is looked up
once more a second later. Exit code 1 if the last round has a difference.";

/// Sorted sets of a Redis.
#[derive(Debug, Args)]
pub(crate) struct SortedSetArgs {
    /// Its address without a password: redis://USER@HOST:PORT/DATABASE, or rediss:// with TLS
    #[arg(
        value_name = "REDIS_URL",
        required_unless_present = "redis_url_file",
        conflicts_with = "redis_url_file"
    )]
    pub(crate) redis: Option<String>,
    /// File with that address, which may have a password
    #[arg(long, value_name = "FILE")]
    pub(crate) redis_url_file: Option<PathBuf>,
    /// File with the password of the Redis
    #[arg(long, value_name = "FILE")]
    pub(crate) redis_password_file: Option<PathBuf>,
    /// Keys to take, as in SCAN MATCH; other types than sorted sets are counted
    #[arg(long, value_name = "GLOB")]
    pub(crate) pattern: String,
    /// The leaderboard of a key, as in 'lb:{board}' [default: the pattern with {board} for its *]
    #[arg(long, value_name = "TEMPLATE", value_parser = BoardRule::parse)]
    pub(crate) board_from: Option<BoardRule>,
}

/// `tally import redis`
#[derive(Debug, Args)]
pub(crate) struct ImportRedisArgs {
    /// From where
    #[command(flatten)]
    pub(crate) from: SortedSetArgs,
    /// Create missing leaderboards like sorted sets, or with these values: order=ascending,update=best,…
    #[arg(long, value_name = "KEY=VALUE,…", num_args = 0..=1, default_missing_value = "")]
    pub(crate) create: Option<String>,
    /// Why the leaderboards are made, for the audit log: at most 255 bytes
    #[arg(long, value_name = "TEXT", requires = "create", value_parser = keys::reason)]
    pub(crate) reason: Option<String>,
    /// Read everything, say what would be done and what has no counterpart, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Where the sets are kept as CSV files [default: ./redis-HOST-PORT-DATABASE]
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    /// Read sets once more that were read before, and import them
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) again: bool,
    /// Exit with 1 if any member was rejected, or with --dry-run would be
    #[arg(long)]
    pub(crate) strict: bool,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// `tally compare`
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// With what
    #[command(subcommand)]
    pub(crate) what: CompareWhat,
}

/// What leaderboards can be compared with.
#[derive(Debug, Subcommand)]
pub(crate) enum CompareWhat {
    /// Sorted sets of a Redis: players, scores, and the first ranks
    #[command(after_help = COMPARE_REDIS)]
    Redis(CompareRedisArgs),
}

/// `tally compare redis`
#[derive(Debug, Args)]
pub(crate) struct CompareRedisArgs {
    /// With what
    #[command(flatten)]
    pub(crate) with: SortedSetArgs,
    /// Ranks to compare, from the first
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) ranks: u16,
    /// The pause between two rounds, as 30s or 5m
    #[arg(long, value_name = "TIME", default_value = "30s", requires = "duration", value_parser = files::time)]
    pub(crate) every: Duration,
    /// Compare again and again for so long, as 1h; without it, once
    #[arg(long = "for", value_name = "TIME", value_parser = files::time)]
    pub(crate) duration: Option<Duration>,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}
