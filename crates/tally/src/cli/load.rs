//! Flags of `tally load`, with its help.

use super::TargetArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

pub(super) const LOAD: &str = "\
Examples:
  tally load transfers --rate 500 --stage 1m
  tally load transfers --rate 0..200..400..600..800..1000..1000..0 --stage 60s --stage 60s \\
        --stage 60s --stage 60s --stage 60s --stage 120s --stage 30s --threshold 'p95<300ms' \\
        --threshold 'errors<1%'
  tally load main-page --rate 0..2000 --stage 30s --report main-page.html
  tally load scores --board goals --rate 5000 --stage 1m
  tally load scores --board goals --reads 50 --skew zipf --rate 20000 --redis 127.0.0.1:8421
  tally load mixed --rate 50 --stage 5m --json visit.json \\
        --url http://10.0.0.5:8420 --key-file admin.key

Arrivals are due by the clock, however slow the answers, and are measured from when they were due: a
stall is not hidden. What finds neither a connection nor a place to wait is dropped, and counted.
Members are those of `tally seed wallets`; they sign in before the clock starts, except in `mixed`,
where each visit is six calls: sign in, profile, wallet, ranks, transactions, transfer.

At the end the server's trial balance is compared with that of the begin. Exit code 1 if a
threshold is not kept, or if money was made or lost. Ctrl-C ends the arrivals, waits for those
under way (a second one does not) and shows the same of what ran, with exit code 130. The server
must run: on the data directory, or at --url.";

/// `tally load`
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// What each arrival does
    pub(crate) what: LoadWhat,
    /// Arrivals a second: one rate, or the ends of stages, A..B..C
    #[arg(long, value_name = "RATES")]
    pub(crate) rate: String,
    /// How long a stage takes; given several times for one stage each, the last for all that follow. Members sign in once, before
    /// the first one: their tokens must last for all (`auth.token_ttl` of the server)
    #[arg(long = "stage", value_name = "TIME", default_value = "60s")]
    pub(crate) stages: Vec<String>,
    /// Limits that the run must keep, such as p95<300ms, transfer.p99.9<20ms, errors<1%, dropped<=0; may be given several times
    #[arg(long = "threshold", value_name = "LIMIT")]
    pub(crate) thresholds: Vec<String>,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) connections: u32,
    /// Arrivals that may wait for a connection [default: ten for each]
    #[arg(long, value_name = "N")]
    pub(crate) waiting: Option<usize>,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) answer: String,
    /// Members that send requests
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) members: u64,
    /// Members of the store; any of them may receive money
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) of: u64,
    /// Players that score and are read, those of `tally seed scores` [default: all of the leaderboard, or 100000 if it has none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) players: Option<u64>,
    /// The leaderboard of `scores`
    #[arg(long, value_name = "BOARD", default_value = "load")]
    pub(crate) board: String,
    /// Percentage of the arrivals of `scores` that read ±5 around a player instead
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) reads: u32,
    /// Send `scores` in the Redis protocol, to this address
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) redis: Option<String>,
    /// Distribution of recipients and of scoring players: uniform, or a few far more often
    #[arg(long, value_enum, default_value_t = LoadSkew::Uniform)]
    pub(crate) skew: LoadSkew,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write a page with charts into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the figures into this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// What arrivals do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadWhat {
    /// Money to a phone number.
    Transfers,
    /// A score, or with --reads a page around a player.
    Scores,
    /// Profile, wallet and ranks of a member.
    MainPage,
    /// A visit: sign in, main page, transactions, transfer.
    Mixed,
}

/// Distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadSkew {
    /// Uniform.
    Uniform,
    /// By Zipf's law, exponent 0.99.
    Zipf,
}
