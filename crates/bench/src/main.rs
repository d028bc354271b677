//! `tally-bench`: runs scenarios, prints their tables, writes their reports. `cargo xtask bench` builds it with the server.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use tally_bench::{Error, Options, SCENARIOS, Size};

/// The allocator of the server, because some scenarios run the service in this process.
#[global_allocator]
static ALLOCATOR: tally_memory::Allocator = tally_memory::Allocator;

/// Measures tally beside a plain implementation in the same run
#[derive(Debug, Parser)]
#[command(
    name = "tally-bench",
    version,
    after_help = "\
Examples:
  cargo xtask bench index
  cargo xtask bench submit --report out
  cargo xtask bench store --rows 10000000
  cargo xtask bench resp --redis /opt/redis/bin/redis-server
  cargo xtask bench upsert --mysql mysql://root@127.0.0.1:3306
  cargo xtask bench mixed --players 1000000
  cargo xtask bench all --small"
)]
struct Args {
    /// A scenario, or all
    #[arg(value_parser = scenarios())]
    scenario: String,
    /// Sizes for a quick check instead of a measurement
    #[arg(long)]
    small: bool,
    /// Rows that the tables of `store`, `upsert`, `transfer` and `expiry` begin with
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,
    /// Write report.json and report.html into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Minutes of the load of `endurance` [default: 120]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_080))]
    minutes: Option<u32>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The redis-server to compare with: a path, or a name on PATH
    #[arg(long, value_name = "PROGRAM", default_value = "redis-server")]
    redis: PathBuf,
    /// The MariaDB or MySQL to work in: mysql://user:password@host:port, or a program, by path or name on PATH
    #[arg(long, value_name = "URL|PROGRAM", default_value = "mariadbd")]
    mysql: String,
    /// The program of other drivers that `drivers` compares with; `cargo xtask drivers` builds it
    #[arg(long, value_name = "PROGRAM", default_value = "bench/drivers/target/release/drivers")]
    drivers: PathBuf,
    /// Where `hundred-million` keeps its stores and what its steps have found; the same command goes on there
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Members of the boards of `resp`, `mixed`, `periods`, `hundred-million` and `followers`, instead of 1, 10, 1, 100 and 0.1 million
    #[arg(long, visible_alias = "players", value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    members: Option<u64>,
    /// How often `followers` stops its leader [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    handovers: Option<u32>,
    /// How often `followers` kills its leader [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    kills: Option<u32>,
    /// The server to measure: a path, or a name on PATH [default: `tally` beside this program]
    #[arg(long, value_name = "PROGRAM")]
    tally: Option<PathBuf>,
}

fn scenarios() -> PossibleValuesParser {
    let all = PossibleValue::new("all").help("every scenario that can run here");
    let named = SCENARIOS.iter().map(|one| PossibleValue::new(one.name).help(one.about));
    PossibleValuesParser::new([all].into_iter().chain(named))
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tally-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<(), Error> {
    let names = if args.scenario == "all" { Vec::new() } else { vec![args.scenario] };
    let size = if args.small { Size::Small } else { Size::Full };
    // As one would type it again, without the path of this program.
    let words = std::env::args().skip(1).map(|word| without_password(&word));
    let mut options = Options {
        rows: args.rows,
        report_dir: args.report,
        minutes: args.minutes,
        seed: args.seed,
        redis: args.redis,
        mysql: args.mysql,
        drivers: args.drivers,
        work: args.work,
        members: args.members,
        handovers: args.handovers,
        kills: args.kills,
        tally_bin: args.tally.or_else(beside),
        command: ["cargo xtask bench".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" "),
        ..Options::new(size)
    };
    if std::io::stderr().is_terminal() {
        options.on_step = |what| {
            bar().finish_and_clear();
            eprintln!("… {what}");
        };
        options.on_progress = |what, done, all| {
            let bar = bar();
            if bar.is_finished() {
                bar.reset();
            }
            bar.set_message(what.to_owned());
            bar.set_length(all);
            bar.set_position(done);
        };
    }
    for report in tally_bench::run(&names, &options)? {
        println!("{}", report.to_text());
    }
    Ok(())
}

/// The server that was built with this program.
fn beside() -> Option<PathBuf> {
    let server = std::env::current_exe().ok()?.with_file_name("tally");
    server.is_file().then_some(server)
}

/// The one progress bar, made at its first use, which is on a terminal only.
fn bar() -> &'static ProgressBar {
    static BAR: OnceLock<ProgressBar> = OnceLock::new();
    BAR.get_or_init(|| {
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("… {msg} {bar:40} {human_pos}/{human_len}, {eta} left")
        {
            bar.set_style(style);
        }
        bar
    })
}

/// A word of the command line for a report, without the password of a database's address.
fn without_password(word: &str) -> String {
    let hidden = || {
        let (before, address) = word.split_once("mysql://")?;
        // A password may contain any character, so its end is the last `@`.
        let (login, place) = address.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{before}mysql://{user}:…@{place}"))
    };
    hidden().unwrap_or_else(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_no_password() {
        for (word, shown) in [
            ("mysql://root:a:b@c@db:3306", "mysql://root:…@db:3306"),
            ("--mysql=mysql://root:secret@db", "--mysql=mysql://root:…@db"),
            ("mysql://root@db:3306", "mysql://root@db:3306"),
            ("mariadbd", "mariadbd"),
        ] {
            assert_eq!(without_password(word), shown);
        }
    }
}
