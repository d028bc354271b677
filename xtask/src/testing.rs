//! `cargo xtask test`: every test of the workspace, and one closing line.
//!
//! Cargo prints a result for each test binary and no sum, and stops at the first binary that fails; so it runs with
//! `--no-fail-fast`, its output passes through unchanged, and the results are added up. A binary that dies without a
//! result (an abort, a crash, code that does not compile) counts as one failure: the sum never looks better than the truth.
//!
//! Not here: starting servers. The tests do that themselves, so that `cargo test -p <crate>` works as well.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::{packages, process};

/// What a run of all tests came to.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Totals {
    /// The line a build server looks for.
    pub(crate) fn closing_line(self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }

    /// Adds one line of cargo's output, if it is a result.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        for part in counts.split([';', '.']) {
            let mut words = part.split_whitespace();
            let Some(count) = words.next().and_then(|word| word.parse::<u64>().ok()) else { continue };
            match words.next() {
                Some("passed") => self.passed += count,
                Some("failed") => self.failed += count,
                Some(_) | None => {}
            }
        }
    }

    /// The verdict, once cargo has ended.
    fn judge(mut self, cargo_succeeded: bool) -> (Totals, Result<()>) {
        if cargo_succeeded && self.passed == 0 && self.failed == 0 {
            return (self, Err(anyhow::anyhow!("no test ran: does the filter match anything?")));
        }
        if !cargo_succeeded && self.failed == 0 {
            self.failed = 1;
            return (
                self,
                Err(anyhow::anyhow!("the tests did not compile, or one of them died without a result")),
            );
        }
        if self.failed > 0 {
            return (self, Err(anyhow::anyhow!("{} failed", self.failed)));
        }
        (self, Ok(()))
    }
}

pub(crate) fn main(args: &[String]) -> Result<()> {
    let harness = match args.split_first() {
        None => &[],
        Some((dashes, rest)) if dashes == "--" => rest,
        Some((other, _)) => bail!("unexpected `{other}`; a filter goes after `--`"),
    };
    packages::ensure()?;
    let (totals, verdict) = run(harness)?;
    if let Err(error) = &verdict {
        eprintln!("xtask: {error:#}");
    }
    println!("{}", totals.closing_line());
    if verdict.is_err() {
        std::process::exit(1);
    }
    Ok(())
}

/// The test binary that says what a client sees, whatever the server keeps its data on.
const EVERY_STORE: [&str; 4] = ["-p", "tally", "--test", "api"];

/// What else its servers run on, beside SQLite (the test kit knows each word), and the modules that are left out there.
const ALSO_ON: &[(&str, &[&str])] = &[("mariadb", WITH_REDIS), ("mariadb+redis", AT_THE_LISTENER)];
/// These do not depend on the ranking. They run on a database once, with Redis.
const WITH_REDIS: &[&str] = &["events::", "traces::"];
/// These requests are refused before a store or a ranking is asked, and take as long as all others together. They run on
/// another store once, without Redis.
const AT_THE_LISTENER: &[&str] = &["bad_input::", "openapi::", "http_permissions::"];
/// The variable that says so.
const ON_VARIABLE: &str = "TALLY_TEST_ON";
/// The variable that says how many tests of a binary run at once.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// Runs the tests, and those of users again on everything else; the totals are there for a failed run as well.
pub(crate) fn run(harness: &[String]) -> Result<(Totals, Result<()>)> {
    let (mut totals, mut verdict) = run_on(None, harness)?;
    for (on, without) in ALSO_ON {
        println!("\nthe tests of the binary again, on {on}");
        let (more, also) = run_on(Some((on, without)), harness)?;
        // A filter may mean other tests.
        let also = if more == Totals::default() && !harness.is_empty() { Ok(()) } else { also };
        totals.passed += more.passed;
        totals.failed += more.failed;
        verdict = verdict.and(also.with_context(|| format!("on {on}")));
    }
    Ok((totals, verdict))
}

fn run_on(on: Option<(&str, &[&str])>, harness: &[String]) -> Result<(Totals, Result<()>)> {
    let mut command = process::cargo(&["test", "--no-fail-fast"])?;
    match on {
        None => command.arg("--workspace").env_remove(ON_VARIABLE),
        Some((on, _)) => command.args(EVERY_STORE).env(ON_VARIABLE, on),
    };
    // Tests wait for disks, servers and clocks for a third of their time: others may have the processors meanwhile.
    if std::env::var_os(THREADS_VARIABLE).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        command.env(THREADS_VARIABLE, (2 * processors).to_string());
    }
    command.args(process::locked()).arg("--").args(harness).stdout(Stdio::piped());
    command.args(on.into_iter().flat_map(|(_, without)| without).flat_map(|module| ["--skip", module]));
    let mut child = command.spawn().context("start cargo test")?;
    let mut totals = Totals::default();
    let mut reader = BufReader::new(child.stdout.take().context("read what cargo test prints")?);
    let mut out = std::io::stdout().lock();
    let mut line = Vec::new();
    // Bytes, not strings: a test may print what is not text, and that must not end the run.
    while reader.read_until(b'\n', &mut line).context("read what cargo test prints")? > 0 {
        out.write_all(&line).and_then(|()| out.flush()).context("pass on what cargo test prints")?;
        totals.add(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let status = child.wait().context("wait for cargo test")?;
    Ok(totals.judge(status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(lines: &str) -> Totals {
        let mut totals = Totals::default();
        lines.lines().for_each(|line| totals.add(line));
        totals
    }

    #[test]
    fn results_of_all_binaries_are_added() {
        let totals = sum("running 3 tests\n\
             test a ... ok\n\
             test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.10s\n\
             test result: FAILED. 1 passed; 2 failed; 7 ignored; 0 measured; 0 filtered out; finished in 12.00s\n");
        assert_eq!(totals, Totals { passed: 4, failed: 2 });
        assert_eq!(totals.closing_line(), "4 passed, 2 failed");
    }

    #[test]
    fn a_result_after_a_line_without_end_is_still_found() {
        let totals =
            sum("a test printed thistest result: ok. 1 passed; 0 failed; 0 ignored; finished in 0.00s");
        assert_eq!(totals.passed, 1);
    }

    #[test]
    fn the_verdict_is_never_better_than_the_truth() {
        let all = Totals { passed: 5, failed: 0 };
        assert!(all.judge(true).1.is_ok());
        let (died, verdict) = all.judge(false);
        assert_eq!(died.failed, 1);
        assert!(verdict.unwrap_err().to_string().contains("died"));
        assert!(Totals { passed: 5, failed: 1 }.judge(false).1.is_err());
        assert!(Totals { passed: 5, failed: 1 }.judge(true).1.is_err());
        assert!(Totals::default().judge(true).1.unwrap_err().to_string().contains("no test ran"));
    }

    #[test]
    fn a_filter_without_dashes_is_refused() {
        assert!(main(&["transfer".to_owned()]).unwrap_err().to_string().contains("after `--`"));
    }
}
