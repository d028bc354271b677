//! `cargo xtask ci`: everything that the build server runs, in the order that finds a mistake soonest.
//!
//! Each crate is compiled once. The tests, the commands of the README and the scenario share the profile `release`, with debug
//! assertions. The compiler of the workspace's crates is clippy, followed by rustdoc (`.ci/rustc`). Only Miri compiles for itself:
//! beside the tests, with the lowest priority, because tests wait for clocks, disks and other processes. A failed step ends the run.
//!
//! Not here: caching, artefacts, and anything of one build server, which only needs to run `.ci/run`.

use std::ffi::OsString;
use std::panic::resume_unwind;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::process::{self, Steps};
use crate::testing::Totals;
use crate::{bench, check, deny, packages, programs, readme, testing};

/// Cases of one property under Miri, which is some hundred times slower than native code.
const MIRI_CASES: &str = "4";

/// The variable that names the compiler of the crates of the workspace.
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// The profile of everything that a run compiles.
const PROFILE: &str = "release";

/// The variables of a run: what cargo compiles with, in every step.
fn variables() -> Result<Vec<(&'static str, OsString)>> {
    Ok(vec![
        (WRAPPER, process::root()?.join(".ci/rustc").into_os_string()),
        // Tests rely on them, and a server of the README that runs with them is checked the more.
        ("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true".into()),
        ("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true".into()),
        // What is built once gains nothing from it, and pays for smaller units and their files.
        ("CARGO_INCREMENTAL", "0".into()),
    ])
}

/// Runs the steps in a process of their own, because variables of a process cannot be set later.
pub(crate) fn main() -> Result<()> {
    let variables = variables()?;
    let is_set = |(name, value): &(&str, OsString)| std::env::var_os(name).as_ref() == Some(value);
    if variables.iter().all(is_set) {
        return steps();
    }
    let mut command = Command::new(std::env::current_exe().context("find this program")?);
    process::run(command.arg("ci").envs(variables).stdin(Stdio::null()))
}

fn steps() -> Result<()> {
    let steps = Steps::default();
    let mut totals = None;
    let result = all(&steps, &mut totals);
    print!("{}", steps.report());
    if let Err(error) = &result {
        eprintln!("xtask: {error:#}");
    }
    // The last line of a run is its totals, as in `cargo xtask test`.
    if let Some(totals) = totals {
        println!("{}", totals.closing_line());
    }
    if result.is_err() {
        std::process::exit(1);
    }
    Ok(())
}

fn all(steps: &Steps, totals: &mut Option<Totals>) -> Result<()> {
    steps.step("packages", packages::install_missing)?;
    let build = || {
        steps.step("format", || process::run(&mut process::cargo(&["fmt", "--all", "--check"])?))?;
        steps.step("check", check::main)?;
        steps.step("dependencies", deny::main)?;
        steps.step("test: build", || testing::build(&["--profile", PROFILE]))
    };
    // It waits for the network for some of its time.
    let fetch = || steps.step("packages of tests", packages::fetch);
    let tests = beside(fetch, build)?;
    beside(
        || steps.step("miri", miri),
        || {
            steps.step("test", || {
                let (sum, verdict) = testing::run(tests, &[]);
                *totals = Some(sum);
                verdict
            })
        },
    )?;
    // A fresh clone needs no copy.
    readme::run(steps, &process::root()?)?;
    steps.step("a million players", million)
}

/// Runs both at once. Reports both failures, because the run waits for both.
fn beside<T>(other: impl FnOnce() -> Result<()> + Send, work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let done = work();
        let other = other.join().unwrap_or_else(|panic| resume_unwind(panic));
        match (done, other) {
            (Err(done), Err(other)) => Err(done.context(format!("{other:#}"))),
            (done, other) => other.and(done),
        }
    })
}

/// The README's scenario of a hundred million players, with a million, on the server that its command has built. Its checks must
/// hold (every acknowledged score, ranks against a count of every stored row), whatever its figures.
fn million() -> Result<()> {
    let mut command = bench::command(PROFILE)?;
    command.args(["hundred-million", "--small"]);
    command.arg("--mysql").arg(programs::launcher("mariadbd"));
    command.arg("--redis").arg(programs::launcher("redis-server"));
    process::run(&mut command)
}

/// Miri on `crates/index`; the other crates with `unsafe` call into C, where Miri cannot follow. It needs a nightly compiler,
/// which a fresh clone does not have.
fn miri() -> Result<()> {
    if !miri_installed() {
        println!(
            "not installed, not run: the index is held to its model by the tests below; \
             undefined behaviour is only seen here, so run `rustup +nightly component add miri` before changing `unsafe` code"
        );
        return Ok(());
    }
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "miri", "test", "-p", "tally-index"])
        .current_dir(process::root()?)
        .stdin(Stdio::null())
        .env("PROPTEST_CASES", MIRI_CASES)
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        .env_remove(WRAPPER);
    process::run_beside(&command)
}

/// `cargo` by name, not the one that started this process: only the one on PATH supports `+nightly`.
fn miri_installed() -> bool {
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "miri", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles one file as cargo does on the build server.
    fn compiles(text: &str) -> bool {
        let folder = std::env::temp_dir().join(format!("xtask-rustc-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("lib.rs");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(process::root().unwrap().join(".ci/rustc"));
        command.args(["rustc", "--crate-type=lib", "--emit=metadata"]).arg(&file).current_dir(&folder);
        let compiled = command.stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap().success();
        std::fs::remove_dir_all(&folder).unwrap();
        compiled
    }

    #[test]
    fn work_beside_other_work_tells_both_failures() {
        let fails = |what: &'static str| move || -> Result<()> { anyhow::bail!("{what}") };
        assert_eq!(beside(|| Ok(()), || Ok(1)).unwrap(), 1);
        assert!(beside(fails("one"), || Ok(1)).is_err());
        assert!(beside(|| Ok(()), fails("two")).is_err());
        let both = format!("{:#}", beside(fails("one"), fails("two")).unwrap_err());
        assert!(both.contains("one") && both.contains("two"), "{both}");
    }

    #[test]
    fn the_compiler_of_the_build_server_refuses_what_clippy_and_rustdoc_warn_of() {
        assert!(compiles("pub fn is_so(x: bool) -> bool { x }"));
        assert!(!compiles("pub fn is_so(x: bool) -> bool { x == true }"));
        assert!(!compiles("pub fn is_so(x: bool) -> bool { let y = 1; x }"));
        assert!(compiles("/// See [`is_not`].\npub fn is_so() {}\n/// See [`is_so`].\npub fn is_not() {}"));
        assert!(!compiles("/// See [`is_not`].\npub fn is_so() {}"));
    }
}
