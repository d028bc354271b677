//! What can be typed: subcommands, flags and their help.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Leaderboards, contests and wallets for games, in one binary.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = "\
Examples:
  tally serve --demo                        try it: boards of real football results
  tally serve                               serve ./tally-data on 127.0.0.1:8420
  tally import scores goals goals.csv --player scorer --score-value 1 --create update=sum
  tally keys create --role server --name game-1")]
pub struct Cli {
    /// Configuration file; every setting has a default
    #[arg(long, global = true, value_name = "FILE", env = "TALLY_CONFIG")]
    pub config: Option<PathBuf>,
    /// Data directory [default: ./tally-data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Store URL: sqlite:PATH [default: sqlite:<data>/tally.db]
    #[arg(long, global = true, value_name = "URL")]
    pub store: Vec<String>,
    /// File with the secret of the store [default: <data>/secret]
    #[arg(long, global = true, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Logs on stderr as text or JSON
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub log: Option<LogFormat>,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// Formats of the log.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve over HTTP until SIGTERM
    #[command(after_help = "\
Examples:
  tally serve
  tally serve --demo
  tally serve --data /var/lib/tally --http 0.0.0.0:8420")]
    Serve(ServeArgs),
    /// Import a CSV file, each line once
    #[command(after_help = "\
Examples:
  tally import scores goals goalscorers.csv --player scorer --score-value 1 --at date \\
        --where own_goal=FALSE --missing NA --create update=sum
  tally import scores speedrun runs.csv --player name --score millis --create order=ascending")]
    Import(ImportArgs),
    /// Write a leaderboard to stdout, best first
    #[command(after_help = "\
Examples:
  tally export goals > goals.csv
  tally export goals --format json")]
    Export(ExportArgs),
    /// Create, list and revoke API keys
    #[command(after_help = "\
Examples:
  tally keys create --role server --name game-1
  tally keys list
  tally keys revoke 3f9c0a1b2c3d")]
    Keys(KeysArgs),
    /// Bring the store to this version's schema, after keeping a copy
    #[command(after_help = "\
Examples:
  tally migrate
  tally migrate --data /var/lib/tally")]
    Migrate,
    /// Measure, beside the naive way in the same run
    #[command(after_help = "\
Examples:
  tally bench index
  tally bench submit --report out
  tally bench all --small")]
    Bench(BenchArgs),
}

/// `tally serve`
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen for HTTP [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// Fill an empty data directory with football results first
    #[arg(long)]
    pub demo: bool,
}

/// Where a command works: the server of the data directory, or another place.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// Address of a server elsewhere, such as http://10.0.0.5:8420
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Key for that server
    #[arg(long, value_name = "KEY", env = "TALLY_KEY", hide_env_values = true)]
    pub key: Option<String>,
}

/// `tally import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// What to import
    #[command(subcommand)]
    pub what: ImportWhat,
}

/// What can be imported.
#[derive(Debug, Subcommand)]
pub enum ImportWhat {
    /// Scores of one leaderboard
    #[command(after_help = "\
Examples:
  tally import scores goals goalscorers.csv --player scorer --score-value 1 --at date \\
        --where own_goal=FALSE --missing NA --create update=sum
  tally import scores speedrun runs.csv --player name --score millis --create order=ascending

Interrupted, the same command continues. The same file into the same leaderboard again says so and
changes nothing. Lines that cannot be taken go to FILE.rejects.csv with their number and the reason.")]
    Scores(ImportScoresArgs),
}

/// `tally import scores`
#[derive(Debug, Args)]
pub struct ImportScoresArgs {
    /// The leaderboard
    pub board: String,
    /// A CSV file with a header line
    pub file: PathBuf,
    /// Column of the player
    #[arg(long, value_name = "COL")]
    pub player: String,
    /// Column of the score
    #[arg(long, value_name = "COL", required_unless_present = "score_value", conflicts_with = "score_value")]
    pub score: Option<String>,
    /// The same score for every line
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub score_value: Option<String>,
    /// Column that says when: RFC 3339 or a date
    #[arg(long, value_name = "COL")]
    pub at: Option<String>,
    /// Take only lines with (or without) this value; may be given several times
    #[arg(long = "where", value_name = "COL=VALUE|COL!=VALUE")]
    pub filters: Vec<String>,
    /// Text that stands for a missing value; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub missing: Vec<String>,
    /// Create the leaderboard if it is not there: order=descending,update=sum,…
    #[arg(long, value_name = "KEY=VALUE,…", num_args = 0..=1, default_missing_value = "")]
    pub create: Option<String>,
    /// Import the same file once more
    #[arg(long)]
    pub again: bool,
    /// Exit with 1 if any line was rejected
    #[arg(long)]
    pub strict: bool,
    /// Where
    #[command(flatten)]
    pub target: TargetArgs,
}

/// `tally export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The leaderboard
    pub board: String,
    /// Which period
    #[arg(long, value_name = "P")]
    pub period: Option<String>,
    /// csv has a header line; json is one object a line
    #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
    pub format: ExportFormat,
    /// Where
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Comma-separated values.
    Csv,
    /// One object a line.
    Json,
}

/// `tally keys`
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// What to do
    #[command(subcommand)]
    pub what: KeysWhat,
    /// Where
    #[command(flatten)]
    pub target: TargetArgs,
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub enum KeysWhat {
    /// Make a key; it is shown once
    #[command(after_help = "Example:\n  tally keys create --role server --name game-1")]
    Create {
        /// admin, server or reader
        #[arg(long)]
        role: String,
        /// What you call it
        #[arg(long, default_value = "")]
        name: String,
    },
    /// Show all keys, without their secrets
    #[command(after_help = "Example:\n  tally keys list")]
    List,
    /// End a key at once
    #[command(after_help = "Example:\n  tally keys revoke 3f9c0a1b2c3d")]
    Revoke {
        /// The id between the underscores of the key
        id: String,
    },
}

/// `tally bench`
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// A scenario, or all
    pub scenario: String,
    /// Sizes for a quick check instead of a measurement
    #[arg(long)]
    pub small: bool,
    /// Write report.json and report.html into this directory
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
