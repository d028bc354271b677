//! The command line: subcommands, flags and their help.

mod export;
mod files;
mod keys;
mod ledger;
mod load;
mod redis;
mod secret;

pub(crate) use export::{AuditArgs, ExportArgs, ExportFormat, LedgerArgs};
pub(crate) use files::{BackupArgs, RestoreArgs};
pub(crate) use keys::{ArchiveArgs, KeysArgs, KeysWhat, ReasonArgs};
pub(crate) use ledger::{ImportMembersArgs, SeedArgs, SeedScoresArgs, SeedWalletsArgs, SeedWhat};
pub(crate) use load::{LoadArgs, LoadSkew, LoadWhat};
pub(crate) use redis::{CompareArgs, CompareRedisArgs, CompareWhat, ImportRedisArgs, SortedSetArgs};
pub(crate) use secret::{SecretArgs, SecretWhat};

use crate::csv_records;
use crate::verify::VerifyArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// The heading of options that many commands have: it stands below the options of the command itself.
const COMMON: &str = "Common options";

/// Leaderboards, contests and wallets for games, in one binary.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  tally serve --demo                        try it: boards of real football results
  tally serve                               serve ./tally-data on 127.0.0.1:8420
  tally import scores goals goals.csv --player scorer --score-value 1 --create update=sum
  tally keys create --role server --name game-1
  tally --version --verbose                 commit, compiler and dependencies of this binary"
)]
pub(crate) struct Cli {
    /// Configuration file; every setting has a default
    #[arg(long, global = true, help_heading = COMMON, value_name = "FILE", env = "TALLY_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Data directory [default: ./tally-data]
    #[arg(long, global = true, help_heading = COMMON, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Store URL: sqlite:PATH or mysql://USER:PASSWORD@HOST:PORT/DATABASE [default: sqlite:DATA/tally.db]
    #[arg(long, global = true, help_heading = COMMON, value_name = "URL")]
    pub(crate) store: Vec<String>,
    /// File with the secret of the store [default: DATA/secret]
    #[arg(long, global = true, help_heading = COMMON, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Logs on stderr as text or JSON
    #[arg(long, global = true, help_heading = COMMON, value_enum, value_name = "FORMAT")]
    pub(crate) log: Option<LogFormat>,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Formats of the log.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve over HTTP and the Redis protocol until SIGTERM
    #[command(after_help = "\
Examples:
  tally serve
  tally serve --demo
  tally serve --data /var/lib/tally --http 0.0.0.0:8420
  tally serve --resp 0.0.0.0:8421 --resp-durability relaxed

A data directory without a store gets a new one. Other commands refuse it, but for seed and
restore.")]
    Serve(ServeArgs),
    /// Import a CSV file, each line once, or sorted sets of a Redis
    #[command(after_help = "\
Examples:
  tally import scores goals goalscorers.csv --player scorer --score-value 1 --at date \\
        --where own_goal=FALSE --missing NA --create update=sum
  tally import scores speedrun runs.csv --player name --score millis --create order=ascending
  tally import members members.csv
  tally import redis redis://10.0.0.7 --pattern 'lb:*' --dry-run")]
    Import(ImportArgs),
    /// Compare leaderboards with the sorted sets of a Redis that they replace
    #[command(after_help = redis::COMPARE_REDIS)]
    Compare(CompareArgs),
    /// Fill the store with realistic data
    #[command(after_help = ledger::SEED)]
    Seed(SeedArgs),
    /// Write a leaderboard to stdout, best first
    #[command(after_help = "\
Examples:
  tally export goals > goals.csv
  tally export goals --format json")]
    Export(ExportArgs),
    /// Write the audit log to stdout, newest first
    #[command(after_help = "\
Examples:
  tally audit > audit.csv
  tally audit --actor key:3f9c0a1b2c3d --from 2026-11-01T00:00:00Z --format json")]
    Audit(AuditArgs),
    /// Write transfers to stdout, newest first, and totals of accounts to stderr
    #[command(after_help = "\
Examples:
  tally ledger > ledger.csv
  tally ledger --from 2026-11-01T00:00:00Z --until 2026-12-01T00:00:00Z --format json
  tally ledger --after 019d5a10-7c21-7e0c-a100-6b1d2c3e4f50 >> ledger.csv

Without --from, --until and --after, the totals are compared with the trial balance. Exit code 1 if
they do not agree.")]
    Ledger(LedgerArgs),
    /// Archive past months of the ledger, or list those that are archived
    #[command(after_help = "\
Examples:
  tally archive
  tally archive --before 2026-01
  tally archive --before 2026-01 --reason 'the year is audited'

The server moves transfers of these months from tables into files, and reads both. The command waits
until it is done; cut short, the server goes on.")]
    Archive(ArchiveArgs),
    /// Create, list and revoke API keys
    #[command(after_help = "\
Examples:
  tally keys create --role server --name game-1
  tally keys list
  tally keys revoke 3f9c0a1b2c3d --reason 'left the studio'")]
    Keys(KeysArgs),
    /// Print a configuration file with every setting, its default and its explanation
    #[command(after_help = "Example:\n  tally config > tally.toml")]
    Config,
    /// Print the completions of a shell
    #[command(
        after_help = "Examples:\n  tally completions bash > /etc/bash_completion.d/tally\n  tally completions zsh > ~/.zfunc/_tally"
    )]
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Check the durability of settings, the number of connections, and every rank
    #[command(after_help = "\
Examples:
  tally doctor
  tally doctor --data /var/lib/tally
  tally doctor --target-rate 50000

Beside a running server it compares what that serves; without one it loads the store itself. An
embedded store is copied for it. Exit code 1 if something is wrong.")]
    Doctor(DoctorArgs),
    /// Verify the store: whether balances, movements, scores, archives, periods and applications agree
    #[command(after_help = "\
Examples:
  tally verify
  tally verify --data /var/lib/tally
  tally verify --ranks
  tally verify --since latest
  tally verify --checkpoint proof
  tally verify --since proof --checkpoint proof
  tally verify --store mysql://tally@db.example/tally

It may run beside a server: it reads the store as it was at one moment, an embedded store from a
copy that is deleted afterwards. Every row that disagrees is named. Exit code 1 if there is one.

--since begins at the end of an archived month, or at a file that --checkpoint wrote: of movements
it checks those after it alone. So a proof every night reads a day. A row that was changed before
the checkpoint is not found; a verification without --since finds it.")]
    Verify(VerifyArgs),
    /// Migrate the store to this version's schema, after making a copy
    #[command(after_help = "\
Examples:
  tally migrate
  tally migrate --data /var/lib/tally
  tally migrate --reshard --config /etc/tally/tally.toml
  tally migrate --reshard --config /etc/tally/tally.toml --from-file /etc/tally/databases-before
  tally migrate --from sqlite:/var/lib/tally/tally.db --config /etc/tally/tally.toml

With --from or --from-file alone, everything of that store is copied into the store of `store.url`,
which is empty, with all servers stopped: from a file to a database, back, or between databases. At
the end both are read again and compared. Cut short, the same command goes on; until it has ended no
server starts on the new store.

With --reshard the records of a store are moved to the databases of `store.url`, with all servers
stopped: from one to several, to more, or to fewer (then --from or --from-file names those that
have them now). The first stays the first. Cut short, the same command goes on; until it has ended
no server starts.")]
    Migrate(MigrateArgs),
    /// Copy the embedded store into one file, also while a server runs on it
    #[command(after_help = "\
Examples:
  tally backup monday.db
  tally backup --data /var/lib/tally /backups/tally.db
  tally backup --follow /backups/tally --keep 168h

With --follow it goes on until it is ended: a base, then every change within a second, so that
`tally restore DIR --at` brings any instant back. A process that starts again goes on where it
ended.

The copy is consistent, checked, and a complete store: everything acknowledged before the
command began is in it. It does not contain the secret of the store, the file `secret` of the
data directory: keep that as well, and apart. A store cannot be served without the secret it was
written with.")]
    Backup(BackupArgs),
    /// Restore a backup into the data directory
    #[command(after_help = "\
Examples:
  tally restore monday.db
  tally restore monday.db --data /var/lib/tally --force
  tally restore /backups/tally --at 2026-11-27T14:04:59Z

The copy is checked first. Of a directory, the last change at or before the instant is the last
that is restored, and the command says its instant. A missing data directory is made. One that
is in use is refused, and so is one that has a store, unless --force replaces it. The secret is
not in the copy: put the file `secret` beside the store.")]
    Restore(RestoreArgs),
    /// Repair an embedded store whose journal is damaged or missing: keep everything that is intact
    #[command(after_help = "\
Examples:
  tally repair
  tally repair --data /var/lib/tally

For a store that refuses to start and says so. Every batch before the damage is brought into the
tables, and the files of the journal are kept under other names. What was acknowledged after it
is lost, so look for a copy of the missing file first. Where nothing is wrong, nothing is
changed.")]
    Repair(ReasonArgs),
    /// Replace the secret of the store, also a lost one
    #[command(after_help = secret::SECRET)]
    Secret(SecretArgs),
    /// Open-loop load test of a running server
    #[command(after_help = load::LOAD)]
    Load(LoadArgs),
}

/// `tally serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen for HTTP [default: 127.0.0.1:8420]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) http: Option<String>,
    /// Where to listen for the Redis protocol, or `off` [default: 127.0.0.1:8421]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) resp: Option<String>,
    /// Where rankings are kept: memory, redis://HOST:PORT or redis-cluster://HOST:PORT,… [default: memory]
    #[arg(long, value_name = "URL")]
    pub(crate) ranking: Option<String>,
    /// Where contests without money have their applications: store, redis://HOST:PORT or redis-cluster://HOST:PORT,… [default: store]
    #[arg(long, value_name = "URL")]
    pub(crate) applications: Option<String>,
    /// When writes of the Redis protocol are answered: when they are durable, or up to a second before [default: commit]
    #[arg(long, value_name = "commit|relaxed")]
    pub(crate) resp_durability: Option<String>,
    /// Fill an empty data directory with football results first
    #[arg(long)]
    pub(crate) demo: bool,
}

/// Where a command works: the server of the data directory, or another place.
#[derive(Debug, Args, Default)]
pub(crate) struct TargetArgs {
    /// Address of a server elsewhere, such as `https://tally.example`, `http://10.0.0.5:8420` or `unix:/run/tally/http`
    #[arg(long, global = true, help_heading = COMMON, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// PEM file with the certificate authorities to trust; without it, those that browsers trust
    #[arg(long, global = true, help_heading = COMMON, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,
    /// Key for that server; --key-file keeps it out of the list of processes
    #[arg(long, global = true, help_heading = COMMON, value_name = "KEY", env = "TALLY_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// File with that key
    #[arg(long, global = true, help_heading = COMMON, value_name = "FILE", env = "TALLY_KEY_FILE")]
    pub(crate) key_file: Option<OsString>,
}

/// `tally import`
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What to import
    #[command(subcommand)]
    pub(crate) what: ImportWhat,
}

/// What can be imported.
#[derive(Debug, Subcommand)]
pub(crate) enum ImportWhat {
    /// Scores of one leaderboard
    #[command(after_help = "\
Examples:
  tally import scores goals goalscorers.csv --player scorer --score-value 1 --at date \\
        --where own_goal=FALSE --missing NA --create update=sum
  tally import scores speedrun runs.csv --player name --score millis --create order=ascending
  tally import scores season export.csv --delimiter ';' --player name --score points

Interrupted, the same command continues. The same file into the same leaderboard again says so
and changes nothing. Lines that cannot be taken go to goals.rejects.csv (for goals.csv) with
their number and the reason.")]
    Scores(Box<ImportScoresArgs>),
    /// Members, each with its wallet and its opening balance
    #[command(after_help = ledger::IMPORT_MEMBERS)]
    Members(ImportMembersArgs),
    /// Sorted sets of a Redis, each as a leaderboard
    #[command(after_help = redis::IMPORT_REDIS)]
    Redis(Box<ImportRedisArgs>),
}

/// `tally import scores`
#[derive(Debug, Args)]
pub(crate) struct ImportScoresArgs {
    /// The leaderboard
    pub(crate) board: String,
    /// A CSV file with a header line
    pub(crate) file: PathBuf,
    /// Column of the player
    #[arg(long, value_name = "COL")]
    pub(crate) player: String,
    /// Column of the score
    #[arg(long, value_name = "COL", required_unless_present = "score_value", conflicts_with = "score_value")]
    pub(crate) score: Option<String>,
    /// The same score for every line
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) score_value: Option<String>,
    /// Column that says when: RFC 3339 or a date
    #[arg(long, value_name = "COL")]
    pub(crate) at: Option<String>,
    /// Take only lines with (or without) this value; may be given several times
    #[arg(long = "where", value_name = "COL=VALUE|COL!=VALUE")]
    pub(crate) filters: Vec<String>,
    /// Text that stands for a missing value; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) missing: Vec<String>,
    /// What divides the columns: one character, or \t for a tab
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = csv_records::delimiter)]
    pub(crate) delimiter: u8,
    /// Create the leaderboard if it is not there: order=descending,update=sum,…
    #[arg(long, value_name = "KEY=VALUE,…", num_args = 0..=1, default_missing_value = "")]
    pub(crate) create: Option<String>,
    /// Why the leaderboard is made, for the audit log: at most 255 bytes
    #[arg(long, value_name = "TEXT", requires = "create", value_parser = keys::reason)]
    pub(crate) reason: Option<String>,
    /// Import the same file once more
    #[arg(long)]
    pub(crate) again: bool,
    /// Exit with 1 if any line was rejected
    #[arg(long)]
    pub(crate) strict: bool,
    /// Where
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// `tally doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Target rate for the advice on connections: rows per second, of scores or of money
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) target_rate: Option<u64>,
}

/// `tally migrate`
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Move the records to the databases of `store.url`; no server may run on any of them
    #[arg(long)]
    pub(crate) reshard: bool,
    /// The store to copy, sqlite:PATH or mysql://…, into that of `store.url`. With --reshard, a database that has records now: repeat it for each, in order
    #[arg(long, value_name = "URL")]
    pub(crate) from: Vec<String>,
    /// File with the URLs of --from, comma-separated: for those with a password
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(crate) from_file: Option<PathBuf>,
    /// Why
    #[command(flatten)]
    pub(crate) why: ReasonArgs,
}
