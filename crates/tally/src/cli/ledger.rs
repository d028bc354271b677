//! Flags of the commands for members and money, with their help.

use super::TargetArgs;
use crate::csv_records;
use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(super) const IMPORT_MEMBERS: &str = "\
Examples:
  tally import members members.csv
  tally import members members.csv --url http://10.0.0.5:8420 --key-file admin.key

The columns are named login_id, password or password_hash, pin, phone_number, name, player and
balance; all but login_id may be missing, and so may their values. password_hash is an argon2
digest in PHC form; a password takes some 20 ms of a processor to digest. balance is in minor
units and is deposited.

Interrupted, the same command continues. The same file again says so and changes nothing. Lines
that cannot be taken go to members.rejects.csv (for members.csv) with their number, the field
and the reason.";

pub(super) const SEED: &str = "\
Examples:
  tally seed wallets
  tally seed wallets --members 1000 --transactions 10000
  tally seed scores goals --players 1000000

Interrupted, the same command continues; with a greater number it goes on from there. A data
directory without a store gets a new one.";

const SEED_WALLETS: &str = "\
Examples:
  tally seed wallets
  tally seed wallets --members 1000 --transactions 10000

Each member begins with a deposit; each transaction moves money between two of them and has an
entry in both wallets. What to sign in with is printed. `tally verify` proves that it is in
balance. A data directory without a store gets a new one.";

const SEED_SCORES: &str = "\
Example:
  tally seed scores goals --players 1000000

A missing leaderboard is made, and so is a missing store.";

/// `tally import members`
#[derive(Debug, Args)]
pub(crate) struct ImportMembersArgs {
    /// A CSV file with a header line
    pub(crate) file: PathBuf,
    /// What divides the columns: one character, or \t for a tab
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = csv_records::delimiter)]
    pub(crate) delimiter: u8,
    /// Exit with 1 if any line was rejected
    #[arg(long)]
    pub(crate) strict: bool,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// `tally seed`
#[derive(Debug, Args)]
pub(crate) struct SeedArgs {
    /// With what
    #[command(subcommand)]
    pub(crate) what: SeedWhat,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// What the store can be filled with.
#[derive(Debug, Subcommand)]
pub(crate) enum SeedWhat {
    /// Members with wallets, and money that moved between them
    #[command(after_help = SEED_WALLETS)]
    Wallets(SeedWalletsArgs),
    /// Scores of one leaderboard
    #[command(after_help = SEED_SCORES)]
    Scores(SeedScoresArgs),
}

/// `tally seed wallets`
#[derive(Debug, Args)]
pub(crate) struct SeedWalletsArgs {
    /// Number of members
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    pub(crate) members: u64,
    /// Number of transfers between them
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    pub(crate) transactions: u64,
}

/// `tally seed scores`
#[derive(Debug, Args)]
pub(crate) struct SeedScoresArgs {
    /// The leaderboard
    pub(crate) board: String,
    /// Number of players
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) players: u64,
}
