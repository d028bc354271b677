//! `cargo xtask test`: every test of the workspace, and one closing line.
//!
//! Cargo builds the test binaries, and this runs them side by side. Cargo would run one after the other, so each would wait alone
//! for its slowest test, and so would each store of the API tests. Nothing stops at the first failure.
//!
//! Not here: starting servers. The tests do that themselves, so that `cargo test -p <crate>` works as well.

mod binaries;
mod memory;
mod schedule;
mod totals;

use std::process::Command;

use anyhow::{Result, bail};

use crate::{packages, process};
pub(crate) use binaries::Binary;
use memory::MemoryFolder;
use schedule::Job;
pub(crate) use totals::Totals;

/// The binary with the API tests, which run on every store.
const EVERY_STORE: (&str, &str) = ("tally", "api");

/// The other stores and rankings of its servers, beside SQLite (the test kit defines the words), and the modules that are skipped
/// there.
const ALSO_ON: &[(&str, &[&str])] = &[("mariadb", WITH_REDIS), ("mariadb+redis", AT_THE_LISTENER)];
/// These do not depend on the ranking. They run on a database once, with Redis.
const WITH_REDIS: &[&str] = &["events::", "traces::"];
/// Their requests are rejected before they reach a store or a ranking, and take as long as all others together. They run on
/// another store once, without Redis.
const AT_THE_LISTENER: &[&str] = &["bad_input::", "openapi::", "http_permissions::"];

/// The variable that selects the store of servers.
const ON_VARIABLE: &str = "TALLY_TEST_ON";
/// The number of tests of a binary that run at once.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// The slowest binaries, which start first. The others are short, in any order.
const LONGEST_FIRST: &[(&str, &str)] = &[
    ("store", "backends"),
    ("tally", "api"),
    ("tally", "faults"),
    ("service", "use_cases"),
    ("tally", "server"),
    ("tally", "clients"),
    ("store", "tally_store"),
    ("ranking", "backends"),
    ("bench", "scenarios"),
    ("service", "simulation"),
];

pub(crate) fn main(args: &[String]) -> Result<()> {
    let harness = match args.split_first() {
        None => &[],
        Some((dashes, rest)) if dashes == "--" => rest,
        Some((other, _)) => bail!("unexpected `{other}`; a filter goes after `--`"),
    };
    packages::ensure()?;
    let (totals, verdict) = match build(&[]) {
        Ok(binaries) => run(binaries, harness),
        // The totals are never better than the truth.
        Err(error) => (Totals { passed: 0, failed: 1 }, Err(error)),
    };
    if let Err(error) = &verdict {
        eprintln!("xtask: {error:#}");
    }
    println!("{}", totals.closing_line());
    if verdict.is_err() {
        std::process::exit(1);
    }
    Ok(())
}

/// Builds the tests of the workspace, with more arguments of cargo.
pub(crate) fn build(more: &[&str]) -> Result<Vec<Binary>> {
    binaries::build(more)
}

/// Runs the tests; a failed run also has totals.
pub(crate) fn run(binaries: Vec<Binary>, harness: &[String]) -> (Totals, Result<()>) {
    match run_all(binaries, harness) {
        Ok(totals) => (totals, totals.verdict()),
        Err(error) => (Totals { passed: 0, failed: 1 }, Err(error)),
    }
}

fn run_all(mut binaries: Vec<Binary>, harness: &[String]) -> Result<Totals> {
    binaries.sort_by_key(|binary| {
        let is = |name: &(&str, &str)| *name == (binary.package.as_str(), binary.target.as_str());
        LONGEST_FIRST.iter().position(is).unwrap_or(LONGEST_FIRST.len())
    });
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let folder = MemoryFolder::new();
    let jobs = binaries.iter().flat_map(jobs).map(|(name, mut command)| {
        command.args(harness).envs(folder.variable());
        // Tests wait for disks, servers and clocks for a third of their time; other tests use the processors meanwhile.
        if std::env::var_os(THREADS_VARIABLE).is_none() {
            command.env(THREADS_VARIABLE, (2 * processors).to_string());
        }
        Job { name, command }
    });
    schedule::run(jobs.collect(), processors, &process::target_folder()?.join("tests"))
}

/// The runs of a binary: one for each store.
fn jobs(binary: &Binary) -> Vec<(String, Command)> {
    let name = format!("{}/{}", binary.package, binary.target);
    let command = || {
        let mut command = Command::new(&binary.program);
        command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder).env_remove(ON_VARIABLE);
        command
    };
    let mut jobs = vec![(name.clone(), command())];
    if EVERY_STORE == (binary.package.as_str(), binary.target.as_str()) {
        jobs.extend(ALSO_ON.iter().map(|(on, without)| {
            let mut command = command();
            command.env(ON_VARIABLE, on).args(without.iter().flat_map(|module| ["--skip", module]));
            (format!("{name} on {on}"), command)
        }));
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(package: &str, target: &str) -> Vec<String> {
        let (package, target) = (package.to_owned(), target.to_owned());
        let binary = Binary { package, target, program: "/t/one".into(), folder: "/p".into() };
        jobs(&binary).iter().map(|(name, command)| format!("{name}: {}", process::line_of(command))).collect()
    }

    #[test]
    fn the_api_runs_on_every_store_and_the_rest_once() {
        assert_eq!(lines("store", "backends"), ["store/backends: CARGO_MANIFEST_DIR=/p one"]);
        assert_eq!(
            lines("tally", "api"),
            [
                "tally/api: CARGO_MANIFEST_DIR=/p one",
                "tally/api on mariadb: CARGO_MANIFEST_DIR=/p TALLY_TEST_ON=mariadb one --skip events:: --skip traces::",
                "tally/api on mariadb+redis: CARGO_MANIFEST_DIR=/p TALLY_TEST_ON=mariadb+redis one \
                 --skip bad_input:: --skip openapi:: --skip http_permissions::",
            ]
        );
    }

    #[test]
    fn a_filter_without_dashes_is_refused() {
        assert!(main(&["transfer".to_owned()]).unwrap_err().to_string().contains("after `--`"));
    }
}
