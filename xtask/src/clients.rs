//! Client libraries of other languages, from their own registries, for the tests that run them against the server.
//!
//! They are the releases that a user gets: `pip`, `npm` and `cargo` fetch those that the lists beside the tests name, each with
//! its digest, into the target folder. This runs once, and again when a list changes; a copy of the list records it. So a test
//! needs no network, and `cargo clean` removes everything. The Rust client is built here, with the program that uses it. It is a
//! workspace of its own, so that its dependencies stay out of ours. The tools are generators of clients over HTTP, and what compiles and checks clients.
//!
//! Not here: running any of them (the tests do), and the programs that they need (`packages.rs`).

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::process;

/// The folder of the lists.
const LISTS: &str = "crates/tally/tests/clients/libraries";
/// Its folder in the target folder; the tests have the same name.
const FOLDER: &str = "clients";

/// Installs all that are missing.
pub(crate) fn ensure() -> Result<()> {
    let (lists, folder) = (process::root()?.join(LISTS), process::target_folder()?.join(FOLDER));
    make(&folder.join("python"), &lists, &["requirements.txt"], python)?;
    make(&folder.join("node"), &lists, &["package-lock.json", "package.json"], node)?;
    let tools = lists.join("tools");
    make(&folder.join("tools-python"), &tools, &["requirements.txt"], python)?;
    make(&folder.join("tools-node"), &tools, &["package-lock.json", "package.json"], node)?;
    make(&folder.join("rust"), &lists.join("rust"), &["Cargo.lock", "Cargo.toml", "story.rs"], rust)
}

/// Makes a folder from lists, unless it was made from the same ones.
pub(crate) fn make(
    folder: &Path,
    lists: &Path,
    names: &[&str],
    fetch: fn(&Path) -> Result<()>,
) -> Result<()> {
    let texts = names.iter().map(|name| {
        let path = lists.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
    });
    let texts: Vec<String> = texts.collect::<Result<_>>()?;
    let (wanted, done) = (texts.concat(), folder.join("done"));
    if std::fs::read_to_string(&done).is_ok_and(|made| made == wanted) {
        return Ok(());
    }
    eprintln!("fetching what {} names into {}", names.join(" and "), folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).context("remove what was fetched before")?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("make the folder {}", folder.display()))?;
    for (name, text) in names.iter().zip(&texts) {
        std::fs::write(folder.join(name), text).with_context(|| format!("copy {name}"))?;
    }
    fetch(folder)?;
    std::fs::write(&done, wanted).context("say that it is done")
}

pub(crate) fn python(folder: &Path) -> Result<()> {
    let make = ["-m", "venv", "environment"];
    process::run(Command::new("python3").args(make).current_dir(folder).stdin(Stdio::null()))?;
    let fetch = ["-m", "pip", "install", "--quiet", "--require-hashes", "-r", "requirements.txt"];
    let mut pip = Command::new(folder.join("environment/bin/python"));
    process::run(pip.args(fetch).current_dir(folder).stdin(Stdio::null()))
}

fn node(folder: &Path) -> Result<()> {
    let fetch = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    process::run(Command::new("npm").args(fetch).current_dir(folder).stdin(Stdio::null()))
}

fn rust(folder: &Path) -> Result<()> {
    let mut build = process::cargo(&["build", "--quiet", "--locked", "--manifest-path"])?;
    process::run(build.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(folder.join("build")))
}

/// Whether a Python can make virtual environments.
pub(crate) fn python_makes_environments() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import venv, ensurepip"]).stdin(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_once_for_each_list() {
        let scratch = std::env::temp_dir().join(format!("xtask-clients-{}", std::process::id()));
        let (lists, folder) = (scratch.join("lists"), scratch.join("made"));
        std::fs::create_dir_all(&lists).unwrap();
        let fetch = |folder: &Path| {
            let list = std::fs::read_to_string(folder.join("list"))?;
            std::fs::write(folder.join("fetched"), list).context("write")
        };
        let fetched = || std::fs::read_to_string(folder.join("fetched")).unwrap_or_default();
        for list in ["a", "b"] {
            std::fs::write(lists.join("list"), list).unwrap();
            make(&folder, &lists, &["list"], fetch).unwrap();
            assert_eq!(fetched(), list);
            std::fs::remove_file(folder.join("fetched")).unwrap();
            make(&folder, &lists, &["list"], fetch).unwrap();
            assert_eq!(fetched(), "", "what is there is not fetched again");
        }
        // A failed run does not count as done.
        std::fs::write(lists.join("list"), "c").unwrap();
        assert!(make(&folder, &lists, &["list"], |_| anyhow::bail!("no network")).is_err());
        make(&folder, &lists, &["list"], fetch).unwrap();
        assert_eq!(fetched(), "c");
        std::fs::remove_dir_all(&scratch).unwrap();
    }
}
