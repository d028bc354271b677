//! `cargo xtask soak`: the random tests and the kill tests in rounds, each with the next seed.
//!
//! It runs the same tests as `cargo xtask test`, with larger numbers, because a second set of tests that only runs at night would
//! rot. Tests read two variables, `TALLY_SOAK` (a factor for the number of cases) and `TALLY_SEED`. proptest has two of its own,
//! set from the same numbers. A failing round prints the command that repeats it.
//!
//! `--cell` runs only cells of the fault matrix (`crates/tally/tests/faults/matrix`) and prints their table. A round without it
//! runs all of them.
//!
//! Not here: shrinking, and keeping seeds. A seed that found a fault becomes a test in its crate.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::{packages, process};

/// The factor for the number of cases in a round.
const TIMES: u64 = 20;

/// Cases of one property by proptest's default.
const PROPTEST_CASES_USUAL: u64 = 256;

/// Crates whose tests all run: they are models, interleavings and contracts from end to end.
const WHOLE: [&str; 5] = ["tally-index", "tally-rules", "tally-lanes", "tally-store", "tally-wire"];

/// Crates of which only the long tests run, chosen by name.
const BY_NAME: [&str; 3] = ["tally-ranking", "tally-service", "tally"];
const NAMES: [&str; 2] = ["soak_", "kill"];

/// The fault matrix, and the variable that names its cells.
const MATRIX: [&str; 7] = ["test", "-p", "tally", "--test", "faults", "--", "matrix::soak_"];
const MATRIX_VARIABLE: &str = "TALLY_MATRIX";

/// Minutes of a run without `--minutes`.
const MINUTES: u64 = 10;

#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) seed: Option<u64>,
    pub(crate) minutes: Option<u64>,
}

pub(crate) fn main(args: &[String]) -> Result<()> {
    if let Some((cells, seed)) = cells(args)? {
        packages::ensure()?;
        return matrix(&cells, seed);
    }
    let options = parse("soak", args)?;
    packages::ensure()?;
    let first = options.seed.map_or_else(seed_from_clock, Ok)?;
    let end = Instant::now() + Duration::from_secs(options.minutes.unwrap_or(MINUTES) * 60);
    let mut rounds = 0;
    loop {
        let seed = first.wrapping_add(rounds);
        println!("== round {}, seed {seed}", rounds + 1);
        if let Err(error) = round(seed) {
            println!("repeat it: cargo xtask soak --seed {seed} --minutes 0");
            return Err(error.context(format!("round {} with seed {seed}", rounds + 1)));
        }
        rounds += 1;
        if Instant::now() >= end {
            println!("{rounds} rounds passed, seeds from {first}");
            return Ok(());
        }
    }
}

/// The named cells of the fault matrix and the seed, if the arguments begin with them.
fn cells(args: &[String]) -> Result<Option<(String, Option<u64>)>> {
    let [first, rest @ ..] = args else { return Ok(None) };
    let (name, rest) = match (first.as_str(), first.strip_prefix("--cell="), rest) {
        ("--list", _, rest) => ("list", rest),
        ("--cell", _, [name, rest @ ..]) => (name.as_str(), rest),
        ("--cell", _, []) => bail!("`--cell` needs the name of a cell; `cargo xtask soak --list` has them"),
        (_, Some(name), rest) => (name, rest),
        _ => return Ok(None),
    };
    let options = parse("soak", rest)?;
    if options.minutes.is_some() {
        bail!("cells run once; leave `--minutes` out");
    }
    Ok(Some((name.to_owned(), options.seed)))
}

/// Runs cells of the fault matrix by their name.
fn matrix(cells: &str, seed: Option<u64>) -> Result<()> {
    let mut command = process::cargo(&MATRIX)?;
    command.arg("--nocapture").env(MATRIX_VARIABLE, cells);
    process::run(command.envs(seed.map(|seed| ("TALLY_SEED", seed.to_string()))))
}

fn round(seed: u64) -> Result<()> {
    for args in [arguments(&WHOLE, &[]), arguments(&BY_NAME, &NAMES)] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = process::cargo(&args)?;
        command
            .env("TALLY_SOAK", TIMES.to_string())
            .env("TALLY_SEED", seed.to_string())
            .env("PROPTEST_CASES", (TIMES * PROPTEST_CASES_USUAL).to_string())
            .env("PROPTEST_RNG_SEED", seed.to_string());
        process::run(&mut command)?;
    }
    Ok(())
}

fn arguments(crates: &[&str], names: &[&str]) -> Vec<String> {
    let mut args = vec!["test".to_owned()];
    args.extend(crates.iter().flat_map(|name| ["-p".to_owned(), (*name).to_owned()]));
    args.push("--".to_owned());
    args.extend(names.iter().map(|name| (*name).to_owned()));
    args
}

/// The options of a task with rounds.
pub(crate) fn parse(task: &str, args: &[String]) -> Result<Options> {
    let mut options = Options { seed: None, minutes: None };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => (arg.as_str(), rest.next().with_context(|| format!("`{arg}` needs a number"))?.clone()),
        };
        let number =
            || value.parse::<u64>().with_context(|| format!("`{name}` needs a number, not `{value}`"));
        match name {
            "--seed" => options.seed = Some(number()?),
            "--minutes" => options.minutes = Some(number()?.min(60 * 24 * 30)),
            other => bail!("unexpected `{other}`; `cargo xtask {task} --help` lists the options"),
        }
    }
    Ok(options)
}

/// A seed that is short enough to type.
pub(crate) fn seed_from_clock() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("read the clock")?;
    Ok(u64::from(now.subsec_nanos()) / 1000 + now.as_secs() % 1000 * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse("soak", &args).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn options_are_read_in_both_spellings() {
        assert_eq!(parsed("").unwrap(), Options { seed: None, minutes: None });
        assert_eq!(parsed("--seed 7 --minutes=0").unwrap(), Options { seed: Some(7), minutes: Some(0) });
    }

    #[test]
    fn wrong_options_are_refused_by_name() {
        assert!(parsed("--seed").unwrap_err().contains("`--seed` needs a number"));
        assert!(parsed("--minutes soon").unwrap_err().contains("not `soon`"));
        assert!(parsed("--rounds 3").unwrap_err().contains("unexpected `--rounds`"));
    }

    #[test]
    fn cells_are_named_first() {
        let cells_of = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            cells(&args).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(cells_of("--seed 7"), Ok(None));
        assert_eq!(cells_of("--list"), Ok(Some(("list".into(), None))));
        assert_eq!(cells_of("--cell a --seed 7"), Ok(Some(("a".into(), Some(7)))));
        assert_eq!(cells_of("--cell=a"), Ok(Some(("a".into(), None))));
        assert!(cells_of("--cell").unwrap_err().contains("needs the name"));
        assert!(cells_of("--cell a --minutes 3").unwrap_err().contains("`--minutes`"));
    }

    #[test]
    fn names_go_to_the_harness() {
        assert_eq!(arguments(&["a", "b"], &["kill"]).join(" "), "test -p a -p b -- kill");
    }
}
