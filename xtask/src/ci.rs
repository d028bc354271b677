//! `cargo xtask ci`: everything that the build server runs, in the order that finds a mistake soonest.
//!
//! It uses one target folder and as few configurations as possible. Clippy and the documentation share the metadata of the
//! dependencies, the tests build them once, and the README builds the one release binary. A failed step ends the run.
//!
//! Tests wait for clocks, disks and other processes. Steps that only compile run beside them with the lowest priority: they use
//! processors that tests leave idle, and take none from a test.
//!
//! Not here: caching, artefacts, and anything of one build server, which only needs to run `.ci/run`.

use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::process::{self, Steps};
use crate::testing::Totals;
use crate::{bench, check, deny, packages, programs, readme, testing};

/// Cases of one property under Miri, which is some hundred times slower than native code.
const MIRI_CASES: &str = "4";

pub(crate) fn main() -> Result<()> {
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
    steps.step("packages", packages::ensure)?;
    steps.step("format", || process::run(&mut process::cargo(&["fmt", "--all", "--check"])?))?;
    steps.step("check", check::main)?;
    steps.step("dependencies", deny::main)?;
    let tests = steps.step("test: build", testing::build)?;
    let copy = readme::copy(steps)?;
    std::thread::scope(|scope| {
        let compiled = scope.spawn(|| beside_tests(steps, &copy));
        let tested = steps.step("test", || {
            let (sum, verdict) = testing::run(tests, &[]);
            *totals = Some(sum);
            verdict
        });
        let compiled = compiled.join().unwrap_or_else(|panic| resume_unwind(panic));
        // Reports both failures, because the run waited for both.
        match (tested, compiled) {
            (Err(tested), Err(compiled)) => Err(tested.context(format!("{compiled:#}"))),
            (tested, compiled) => tested.and(compiled),
        }
    })?;
    readme::run(steps, &copy)?;
    steps.step("a million players", million)
}

/// The steps that run while tests wait.
fn beside_tests(steps: &Steps, copy: &Path) -> Result<()> {
    steps.step("clippy", || {
        let mut command = process::cargo(&["clippy", "--workspace", "--all-targets"])?;
        process::run_beside(command.args(process::locked()).args(["--", "-D", "warnings"]))
    })?;
    steps.step("documentation", || {
        let mut command = process::cargo(&["doc", "--workspace", "--no-deps"])?;
        process::run_beside(command.args(process::locked()).env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    steps.step("miri", miri)?;
    steps.step("readme: build", || process::run_beside(&readme::build(copy)?))
}

/// The README's scenario of a hundred million players, with a million, on the server that its command has built. Its checks must
/// hold (every acknowledged score, ranks against a count of every stored row), whatever its figures.
fn million() -> Result<()> {
    let mut command = bench::command("release")?;
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
        .env("MIRIFLAGS", "-Zmiri-disable-isolation");
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
