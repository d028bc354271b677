//! `cargo xtask readme`: runs the README's commands as written.
//!
//! Readers try the first page first, so it is a test. The commands run in a copy of the work tree without its ignored files.
//! That equals a clone, and works before the first commit. The copy is in the target folder and uses it, so that
//! dependencies are compiled once; each run makes it anew.
//!
//! Not here: the test command. It is the rest of `cargo xtask ci`; the README must name it exactly.

mod blocks;
mod demo;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::{self, Steps};
use crate::{check, packages};
pub(crate) use blocks::plan;
use demo::Demo;

/// Precedes each script: stop at the first failure, print commands, and make an HTTP error a failure of curl.
const PRELUDE: &str =
    "set -euo pipefail\ncurl() { command curl --silent --show-error --fail-with-body \"$@\"; }\nset -x\n";

pub(crate) fn main() -> Result<()> {
    packages::ensure()?;
    let steps = Steps::default();
    let result = copy(&steps).and_then(|copy| {
        steps.step("readme: build", || process::run(&mut build(&copy)?))?;
        run(&steps, &copy)
    });
    print!("{}", steps.report());
    result
}

/// The copy of the project in which the commands run.
fn copy(steps: &Steps) -> Result<PathBuf> {
    let copy = process::target_folder()?.join("readme");
    steps.step("readme: copy", || copy_project(&process::root()?, &copy))?;
    Ok(copy)
}

/// Builds the binary before its start, so that the timeout for `ready` does not include the build.
fn build(copy: &Path) -> Result<Command> {
    let mut command = process::cargo(&["build", "--release"])?;
    command.args(process::locked()).current_dir(copy).env("CARGO_TARGET_DIR", process::target_folder()?);
    Ok(command)
}

/// Runs the commands in this folder, which is a clone or a copy of one.
pub(crate) fn run(steps: &Steps, folder: &Path) -> Result<()> {
    let plan = plan(&std::fs::read_to_string(process::root()?.join("README.md")).context("read README.md")?)?;
    let demo =
        steps.step("readme: serve", || Demo::start(&plan.serve, folder, &process::target_folder()?))?;
    steps.step("readme: demo", || script(&plan.demo, folder))?;
    steps.step("readme: stop", || demo.stop())
}

/// Runs all demo blocks as one script, because a reader types them into one terminal.
fn script(text: &str, folder: &Path) -> Result<()> {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{PRELUDE}{text}")]).current_dir(folder).stdin(Stdio::null());
    let status = command.status().context("start bash")?;
    if !status.success() {
        bail!("the last command shown above ended the README's `sh demo` blocks with {status}");
    }
    println!();
    Ok(())
}

/// Copies the files of the project into an empty folder. It keeps modification times, so that cargo sees what did not
/// change.
fn copy_project(root: &Path, copy: &Path) -> Result<()> {
    if copy.exists() {
        std::fs::remove_dir_all(copy).context("remove the last copy")?;
    }
    for path in check::project_files(root)? {
        let (from, to) = (root.join(&path), copy.join(&path));
        if !from.is_file() {
            continue;
        }
        std::fs::create_dir_all(to.parent().context("find the folder of a file")?)?;
        std::fs::copy(&from, &to).with_context(|| format!("copy {path}"))?;
        let file = std::fs::File::options().append(true).open(&to).with_context(|| format!("open {path}"))?;
        file.set_modified(from.metadata()?.modified()?).with_context(|| format!("date {path}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http_error_and_a_failed_line_end_the_script() {
        let folder = std::env::temp_dir();
        assert!(script("true\nx=1\ntest \"$x\" = 1", &folder).is_ok());
        assert!(script("false\ntrue", &folder).is_err());
        assert!(script("curl http://127.0.0.1:1/", &folder).is_err());
    }

    #[test]
    fn the_copy_has_the_files_and_not_the_ignored_ones() {
        let copy = std::env::temp_dir().join(format!("xtask-readme-copy-{}", std::process::id()));
        copy_project(&process::root().unwrap(), &copy).unwrap();
        assert!(copy.join("Cargo.lock").is_file());
        assert!(!copy.join("target").exists());
        std::fs::remove_dir_all(&copy).unwrap();
    }
}
