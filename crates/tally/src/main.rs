//! The tally binary: one file per subcommand. Only here: printing, exit codes and the settings' sources.
//!
//! Results go to stdout, messages to stderr, progress to a terminal only. Exit codes: 0 success, 1 failure, 2
//! wrong usage.

#[macro_use]
mod printing;

mod archive;
mod backup;
mod chunks;
mod cli;
mod client;
mod colours;
mod compare;
mod config;
mod copies;
mod csv_members;
mod csv_records;
mod csv_scores;
mod csv_text;
mod data_dir;
mod demo;
mod descriptors;
mod doctor;
mod export;
mod football;
#[cfg(test)]
mod fuzzing;
mod import;
mod import_file;
mod import_members;
mod import_redis;
mod keys;
mod lead_or_follow;
mod limit_settings;
mod load;
mod log;
mod member_settings;
mod memory;
mod migrate;
mod money_settings;
mod repair;
mod secret;
mod seed;
mod serve;
mod settings;
mod sorted_sets;
mod sources;
mod store;
mod target;
mod trace_settings;
mod verify;
mod version;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use cli::{Cli, Command, LogFormat};
use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tally_memory::Allocator = tally_memory::Allocator;

fn main() -> ExitCode {
    // A command writes data of players and money, or a secret: other accounts of the machine must not read it.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    if let Some(text) = version::requested_text(std::env::args().skip(1)) {
        return print(text.as_bytes()).unwrap_or(ExitCode::SUCCESS);
    }
    // clap itself exits with 2 for wrong usage and 0 for help.
    let cli = Cli::parse();
    let done = match &cli.command {
        Command::Serve(args) => serve::run(&cli, args),
        Command::Import(args) => import::run(&cli, args),
        Command::Compare(args) => compare::run(&cli, args),
        Command::Seed(args) => seed::run(&cli, args),
        Command::Export(args) => export::run(&cli, args),
        Command::Audit(args) => export::audit(&cli, args),
        Command::Ledger(args) => export::ledger(&cli, args),
        Command::Archive(args) => archive::run(&cli, args),
        Command::Keys(args) => keys::run(&cli, args),
        Command::Config => print(config::reference().as_bytes()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "tally", &mut script);
            print(&script)
        }
        Command::Doctor(args) => doctor::run(&cli, args),
        Command::Verify(args) => verify::run(&cli, args),
        Command::Migrate(args) => migrate::run(&cli, args),
        Command::Backup(args) => backup::backup(&cli, args),
        Command::Restore(args) => backup::restore(&cli, args),
        Command::Repair(why) => repair::run(&cli, why),
        Command::Secret(args) => secret::run(&cli, args),
        Command::Load(args) => load::run(&cli, args),
    };
    let code = match done.and_then(|code| printing::check().map(|()| code)) {
        Ok(code) => code,
        Err(error) if printing::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            log::fatal(&format!("{error:#}"), asks_for_json(&cli));
            ExitCode::from(if error.is::<config::Usage>() { 2 } else { 1 })
        }
    };
    log::flush();
    code
}

/// Whether the log is to be JSON, as far as that is known without the configuration file: the error may be in that.
fn asks_for_json(cli: &Cli) -> bool {
    match (cli.log, &cli.command) {
        (Some(format), _) => matches!(format, LogFormat::Json),
        (None, Command::Serve(_)) => std::env::var("TALLY_LOG_FORMAT").is_ok_and(|format| format == "json"),
        (None, _) => false,
    }
}

fn print(bytes: &[u8]) -> anyhow::Result<ExitCode> {
    printing::stdout().write_all(bytes).context("write to stdout")?;
    Ok(ExitCode::SUCCESS)
}
