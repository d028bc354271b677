//! `tally doctor`: versions, settings that lose data or cost speed, the pool's size, and ranks against the stored rows.
//!
//! It reads the server and the store separately, so it checks what is in the server's memory. Without a running server it starts
//! one that loads the store, which checks the next start as well.
//!
//! - `clock`: the server's; `settings`: of the database; `pool`: its connections; `redis`: those of rankings and of
//!   applications; `traces`: their collector; `ranks`: the rankings; `files`: which other accounts may read
//! - `repeated`: the checks that a running server repeats
//!
//! Not here: repairs.

mod clock;
pub(crate) mod files;
mod pool;
mod ranks;
mod redis;
mod repeated;
mod settings;
mod traces;

pub(crate) use repeated::RepeatedChecks;

use crate::cli::{Cli, DoctorArgs, TargetArgs};
use crate::colours;
use crate::config::Config;
use crate::copies::Copies;
use crate::data_dir::DataDir;
use crate::store::{self, Opening, StoreAddress, connect, options};
use crate::target::TargetServer;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tally_ranking::RedisApplications;
use tally_server::Finding;
use tally_service::RankingBackend;
use tally_store::Maintenance;
use tally_store::mysql::MySqlStore;
use tally_store::shards::Shards;

/// The findings, line by line: the command prints them, and a running server keeps them.
#[derive(Default)]
pub(crate) struct DoctorReport {
    prints: bool,
    findings: Vec<Finding>,
}

impl DoctorReport {
    fn printed() -> Self {
        Self { prints: true, ..Self::default() }
    }

    /// No problem, or information.
    fn ok(&self, text: &str) {
        self.print("ok   ", text);
    }

    /// A possible problem; `code` is its kind in metrics.
    fn warn(&mut self, code: &'static str, text: &str) {
        self.print("warn ", text);
        self.findings.push(Finding { wrong: false, code, text: text.to_owned() });
    }

    /// Loss of data, or a wrong result.
    fn wrong(&mut self, code: &'static str, text: &str) {
        self.print("WRONG", text);
        self.findings.push(Finding { wrong: true, code, text: text.to_owned() });
    }

    fn print(&self, kind: &str, text: &str) {
        if self.prints {
            colours::print(&format!("{kind} {text}"));
        }
    }

    fn is_wrong(&self) -> bool {
        self.findings.iter().any(|one| one.wrong)
    }
}

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &DoctorArgs) -> Result<ExitCode> {
    let config = Config::load(cli)?;
    let data = DataDir::with_store(&config)?;
    let place = data.place(&config)?;
    let mut report = DoctorReport::printed();
    report.ok(&format!("tally {}", env!("CARGO_PKG_VERSION")));
    files::examine(&mut report, &data, &place);
    redis_of(&mut report, &place.ranking(&config)?, store::applications(&config)?.as_ref());
    traces::examine(&mut report, &config)?;
    let target = TargetServer::find(cli, &TargetArgs::default())?;
    let examined = examine(&mut report, (&config, &place, data.path()), &target, args);
    target.finish();
    examined?;
    Ok(if report.is_wrong() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Compares the ranks of a running server, or of one that it starts, with the stored rows; returns whether they agree.
pub(crate) fn ranks_agree(cli: &Cli) -> Result<bool> {
    let config = Config::load(cli)?;
    let data = DataDir::with_store(&config)?;
    let mut report = DoctorReport::printed();
    let target = TargetServer::find(cli, &TargetArgs::default())?;
    let compared = compare(&mut report, (&config, &data.place(&config)?, data.path()), &target);
    target.finish();
    compared?;
    Ok(!report.is_wrong())
}

/// Checks the Redis of rankings and that of applications.
fn redis_of(report: &mut DoctorReport, ranking: &RankingBackend, applications: Option<&RedisApplications>) {
    match ranking {
        RankingBackend::Memory => report.ok("ranking: in memory"),
        RankingBackend::Redis(redis) => {
            redis::examine(report, redis::Of::Ranking, &redis.address(), redis.probe());
        }
    }
    match applications {
        None => report.ok("applications: in the store"),
        Some(redis) => redis::examine(report, redis::Of::Applications, &redis.address(), redis.probe()),
    }
}

fn compare(
    report: &mut DoctorReport,
    (config, place, data): (&Config, &StoreAddress, &Path),
    target: &TargetServer,
) -> Result<()> {
    match place {
        StoreAddress::MySql(url) => {
            let store = connect(url, config, Opening::AsItIs, None)?;
            ranks::compare(report, &target.client, &mut || Ok(Arc::<MySqlStore>::clone(&store)))
        }
        StoreAddress::Shards(urls) => {
            let store =
                Shards::observe(urls, &options(config, Opening::AsItIs, None)?).context("open the store")?;
            let store = Arc::new(store);
            ranks::compare(report, &target.client, &mut || Ok(Arc::<Shards>::clone(&store)))
        }
        StoreAddress::Sqlite(path) => {
            // Only the server's process can open a file, so this reads a copy, as of a backup.
            let copies = Copies::new(data, "doctor");
            ranks::compare(report, &target.client, &mut || copies.make(path, None, &mut |_, _| ()))
        }
    }
}

fn examine(
    report: &mut DoctorReport,
    (config, place, data): (&Config, &StoreAddress, &Path),
    target: &TargetServer,
    args: &DoctorArgs,
) -> Result<()> {
    clock::examine(report, &target.client)?;
    match place {
        StoreAddress::MySql(url) => {
            let store = connect(url, config, Opening::AsItIs, None)?;
            database(report, "store", &store)?;
            let set = pool::check(report, config)?;
            pool::measured(report, target, args.target_rate, Some(set))?;
        }
        StoreAddress::Shards(urls) => {
            let store =
                Shards::observe(urls, &options(config, Opening::AsItIs, None)?).context("open the store")?;
            for (shard, one) in (1..).zip(store.each()) {
                database(report, &format!("shard {shard} of {}", urls.len()), one)?;
            }
            let set = pool::check(report, config)?;
            pool::measured(report, target, args.target_rate, Some(set))?;
        }
        StoreAddress::Sqlite(path) => {
            file(report, path);
            pool::measured(report, target, args.target_rate, None)?;
        }
    }
    compare(report, (config, place, data), target)
}

fn database(report: &mut DoctorReport, what: &str, store: &MySqlStore) -> Result<()> {
    let probe = store.probe().context("ask the database for its settings")?;
    report.ok(&format!("{what} {}: {} {}", store.url(), store.name(), probe.version));
    settings::check(report, &probe);
    Ok(())
}

fn file(report: &DoctorReport, path: &Path) {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    report.ok(&format!("store sqlite:{}: {} bytes", path.display(), length(path)));
    let prefix = format!("{}.journal-", path.file_name().unwrap_or_default().to_string_lossy());
    let journal = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let journal = journal.into_iter().flatten().flatten();
    let ours = journal.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    let bytes: u64 = ours.map(|entry| length(&entry.path())).sum();
    report.ok(&format!("its journal: {bytes} bytes, flushed into it when the server ends"));
}
